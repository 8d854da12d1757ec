"""Switches between two clusters of ours, which copy to each other without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interpulse.client import Client
from interpulse.failover.commands import Result, initialise, switch
from interpulse.failover.journal import Operation
from interpulse.failover.operation import Evidence, Step
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig
from interpulse.rules.failover_role import Role
from tests.support.copying_pair import TOPIC, CopyingPair, copying_pair
from tests.support.waiting import SECONDS_MAX, eventually


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[CopyingPair]:
    async with copying_pair(tmp_path) as made:
        await run_init(made.config())
        yield made


async def run_init(config: PairConfig) -> None:
    async with opened_pair(config) as opened:
        await initialise(opened)


async def run_switch(config: PairConfig, to: str, *, is_resumed: bool = False, waits: bool = False) -> Result:
    async with opened_pair(config) as opened:
        return await switch(opened, to, Shown(), is_resumed=is_resumed, waits=waits)


class Shown:
    """Progress that is kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begins(self, operation: Operation) -> None:
        self.lines.append(f"switch to {operation.to}, epoch {operation.epoch}")

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        self.lines.append(f"{number} {step.name}: {evidence.text}")


async def test_switch_when_clients_publish_then_goes_on_at_the_other_site_without_loss(pair: CopyingPair) -> None:
    """F20 of the specification, in small."""
    sent: list[str] = []
    client = Client(pair.addresses["east"].service_url, operation_timeout_ms=10_000)
    producer = await client.create_producer(str(TOPIC), batching_enabled=False)
    stop = asyncio.Event()

    async def publish() -> None:
        number = 0
        while not stop.is_set():
            await producer.send(str(number))
            sent.append(str(number))
            number += 1
            await asyncio.sleep(0.005)

    publishing = asyncio.create_task(publish())
    await eventually(lambda: len(sent) > 50)
    result = await asyncio.wait_for(run_switch(pair.config(), "west"), SECONDS_MAX)
    count = len(sent)
    await eventually(lambda: len(sent) > count + 50)
    stop.set()
    await publishing
    await client.close()
    assert result.outcome in (Outcome.DONE, Outcome.NOTICED)
    roles = await pair.roles()
    assert (roles["west"].role, roles["east"].role) == (Role.ACTIVE, Role.MOVED)
    assert roles["west"].epoch == roles["east"].epoch == 2
    west = await pair.contents("west")
    assert sorted(value for part in west for value in part) == sorted(sent)
    assert all(part == sorted(part, key=int) for part in west)
    await same_contents(pair)


async def same_contents(pair: CopyingPair) -> None:
    """Wait until each site has what the other one took."""

    async def contents(site: str) -> list[list[str]]:
        return [sorted(part) for part in await pair.contents(site)]

    async with asyncio.timeout(SECONDS_MAX):
        while await contents("east") != await contents("west"):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.1)

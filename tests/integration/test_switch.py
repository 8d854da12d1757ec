"""Switches between two clusters of ours, which copy to each other without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import Client
from interpulse.failover import commands
from interpulse.failover.commands import initialise, switch, undo
from interpulse.failover.journal import Journal, Operation
from interpulse.failover.operation import Evidence, Step
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.running import Result
from interpulse.failover.steps import switch_steps
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


STEPS = ("lease", "preflight", "ways open", "fence", "drain", "settle", "promote", "move clients", "stand by", "report")
WITH_ACTS = ("fence", "promote", "move clients", "stand by", "report")


class Killed(BaseException):
    """End of the process."""


class KilledStep:
    """A step whose process is killed when it holds, or directly after its act."""

    def __init__(self, step: Step, moment: str) -> None:
        self._step = step
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._step, name)

    async def holds(self) -> Evidence | None:
        evidence = await self._step.holds()
        if self._moment == "holds" and evidence is not None:
            raise Killed
        return evidence

    async def act(self) -> None:
        await self._step.act()
        if self._moment == "act":
            raise Killed


async def killed_switch(
    config: PairConfig, to: str, step: str, moment: str, monkeypatch: pytest.MonkeyPatch, *, is_resumed: bool = False
) -> None:
    """Begin a switch whose process is killed at a step."""

    def steps(*arguments: Any, **options: Any) -> list[Any]:
        found = switch_steps(*arguments, **options)
        return [KilledStep(each, moment) if each.name == step else each for each in found]

    with monkeypatch.context() as patched:
        patched.setattr(commands, "switch_steps", steps)
        with pytest.raises(Killed):
            await run_switch(config, to, is_resumed=is_resumed)


MOMENTS = [*((step, "holds") for step in STEPS), *((step, "act") for step in WITH_ACTS)]


@pytest.mark.slow
async def test_switch_when_killed_at_each_step_then_the_same_command_ends_it(
    pair: CopyingPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F23 of the specification, to and fro: each kill is in the next switch of the same pair."""
    config, sent = pair.config(), 0
    for number, (step, moment) in enumerate(MOMENTS):
        to, origin = ("west", "east") if number % 2 == 0 else ("east", "west")
        sent = await publish(pair, origin, sent)
        await killed_switch(config, to, step, moment, monkeypatch)
        result = await run_switch(config, to)
        assert result.outcome is Outcome.DONE, (step, moment, result.warnings)
        roles = await pair.roles()
        assert (roles[to].role, roles[origin].role) == (Role.ACTIVE, Role.MOVED), (step, moment)
        assert roles[to].epoch == roles[origin].epoch == number + 2, (step, moment)
        assert sorted(int(value) for part in await pair.contents(to) for value in part) == list(range(sent))
    await same_contents(pair)
    ended = [
        Journal(path).outcome for path in (config.state / "operations").glob("*.jsonl") if path.name.count(".") == 1
    ]
    assert ended == ["DONE"] * len(MOMENTS)


async def publish(pair: CopyingPair, site: str, begin: int, count: int = 20) -> int:
    """Publish numbered messages at a site and return the number of the next one."""
    producer = await pair.clients[site].create_producer(str(TOPIC), batching_enabled=False)
    async with producer:
        for number in range(begin, begin + count):
            await producer.send(str(number))
    return begin + count


async def test_undo_when_the_target_is_not_promoted_then_the_origin_serves_as_before(
    pair: CopyingPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = pair.config()
    await killed_switch(config, "west", "drain", "holds", monkeypatch)
    roles = await pair.roles()
    assert (roles["east"].role, roles["west"].role) == (Role.FENCED, Role.STANDBY)
    async with opened_pair(config) as opened:
        assert (await undo(opened, Shown())).outcome is Outcome.TAKEN_BACK
    roles = await pair.roles()
    assert (str(roles["east"]), str(roles["west"])) == ("active;epoch=1", "standby;epoch=1")
    await publish(pair, "east", 0)
    async with opened_pair(config) as opened:
        with pytest.raises(OperationFailed, match="no unfinished switch to take back"):
            await undo(opened, Shown())
    await killed_switch(config, "west", "promote", "act", monkeypatch)
    async with opened_pair(config) as opened:
        with pytest.raises(OperationFailed, match=r"too late for undo\. Finish with switch --to west"):
            await undo(opened, Shown())
    assert (await run_switch(config, "west")).outcome is Outcome.DONE
    assert (await pair.roles())["west"].epoch == 3  # an epoch is used once, also by a switch that was taken back


async def test_switch_when_the_lane_is_held_then_is_taken_back(pair: CopyingPair) -> None:
    """F22 of the specification: the producers go on, under the epoch of before."""
    await publish(pair, "east", 0)
    await same_contents(pair)
    pair.held.add("east")
    await publish(pair, "east", 20)
    with pytest.raises(
        OperationFailed, match=r"drain was not reached in 2 s: persistent://\S+ has not arrived"
    ) as caught:
        await run_switch(pair.config(drain_s=2), "west")
    assert caught.value.outcome is Outcome.TAKEN_BACK
    roles = await pair.roles()
    assert (str(roles["east"]), str(roles["west"])) == ("active;epoch=1", "standby;epoch=1")
    await publish(pair, "east", 40)


async def test_second_operator_then_is_refused_until_the_first_has_ended_and_may_resume(
    pair: CopyingPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24 of the specification; the second operator works on another machine, without the journal of the first."""
    config = pair.config()
    elsewhere = replace(config, state=tmp_path / "elsewhere")
    pair.held.add("east")
    await publish(pair, "east", 0)
    first = asyncio.create_task(run_switch(config, "west", waits=True))

    async with asyncio.timeout(SECONDS_MAX):
        while (await pair.roles())["east"].role is not Role.FENCED:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.05)
    with pytest.raises(OperationFailed, match=r"holds the lease at west: \S+@.*, since 20") as caught:
        await run_switch(elsewhere, "west")
    assert caught.value.outcome is Outcome.LEASED
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    pair.held.clear()
    with pytest.raises(OperationFailed, match=r"go on with --resume, or take it back with undo") as caught:
        await run_switch(elsewhere, "west")
    assert caught.value.outcome is Outcome.REFUSED
    result = await run_switch(elsewhere, "west", is_resumed=True)
    assert result.outcome is Outcome.DONE
    assert (await pair.roles())["west"].epoch == 2
    with pytest.raises(OperationFailed, match="east does not serve public/default, its role is moved"):
        await run_switch(config, "west")  # the journal here knows from the control topic that it has ended
    assert Journal.unfinished(config.state) is None


async def same_contents(pair: CopyingPair) -> None:
    """Wait until each site has what the other one took."""

    async def contents(site: str) -> list[list[str]]:
        return [sorted(part) for part in await pair.contents(site)]

    async with asyncio.timeout(SECONDS_MAX):
        while await contents("east") != await contents("west"):  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.1)

"""A switch and a takeover by hand between two clusters that copy, whose recorded histories are judged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from interpulse.client import AutoFailover, Client
from interpulse.failover.commands import initialise, switch
from interpulse.failover.history.events import Cause, Publish
from interpulse.failover.history.judging import judge
from interpulse.failover.history.reading import read_log, watch_rest
from interpulse.failover.history.record import Incident, Listed, Log, Stake
from interpulse.failover.journal import Operation
from interpulse.failover.operation import Evidence, Step
from interpulse.failover.pair import opened_pair
from interpulse.model.ids import Position
from tests.support.recorded_pair import NAMESPACE, TOPIC, Play, playing


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Play]:
    async with playing(tmp_path) as started:
        yield started


async def test_switch_by_hand_when_recorded_then_its_history_is_clean(play: Play) -> None:
    await play.begin()
    await play.until_sent(60)
    await play.switch()
    await play.until_sent(60)
    await play.end()
    history = await play.history()
    assert judge(history) == []
    published = {event.site for event in history.events if isinstance(event, Publish)}
    assert published == {"east", "west"}
    east, west = history.logs
    shorter = replace(history, logs=[east, Log("west", TOPIC, west.messages[:-1])])
    assert {violation.rule for violation in judge(shorter)} == {"kept"}


class RecordedSteps:
    """Progress of a switch, of which the fence and the promotion are recorded."""

    def __init__(self, play: Play, state: Path) -> None:
        self._play = play
        self._state = state
        self.names: list[str] = []

    def begins(self, operation: Operation) -> None:
        self.epoch = operation.epoch

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        self.names.append(step.name)
        recorder = self._play.recorder
        if step.name == "fence":
            (path,) = (self._state / "operations").glob("*.fence.jsonl")
            rows = map(json.loads, path.read_text().splitlines())
            recorder.fence("east", {row["topic"]: Position.parse(row["position"]) for row in rows})
            recorder.see_role("east", NAMESPACE, "fenced", self.epoch)
        elif step.name == "promote":
            self._play.active = "west"
            recorder.promote("west", Cause.SWITCH)
            recorder.see_role("west", NAMESPACE, "active", self.epoch)


async def test_switch_by_the_command_when_recorded_then_its_history_is_clean(play: Play, tmp_path: Path) -> None:
    steps = RecordedSteps(play, tmp_path / "state")
    async with opened_pair(play.file(tmp_path / "state")) as sites:
        await initialise(sites)
        play.recorder.see_role("east", NAMESPACE, "active", 1)
        await play.begin()
        await play.until_sent(60)
        confirming = asyncio.create_task(play.confirm_always("east"))
        await switch(sites, "west", steps)
        confirming.cancel()
        await play.until_sent(60)
        await play.end()
    assert steps.names[-1] == "report"
    assert judge(await play.history()) == []


@pytest.mark.slow
async def test_rest_when_clients_are_idle_then_logs_do_not_grow(play: Play) -> None:
    await play.begin()
    await play.until_sent(10)
    await play.end()
    rests = await watch_rest(play.clients, [TOPIC])
    assert [rest.first == rest.last for rest in rests] == [True, True]
    assert judge(replace(await play.history(), rests=rests)) == []


async def end_of(play: Play, site: str) -> Position:
    return (await read_log(play.clients[site].client, site, TOPIC)).messages[-1].position


async def tail_of(play: Play) -> tuple[Listed, ...]:
    """Return the messages that only east has."""
    east, west = [await read_log(play.clients[site].client, site, TOPIC) for site in ("east", "west")]
    copied = {logged.source for logged in west.messages}
    return tuple(
        Listed(position, index, message)
        for position, index, message, source in east.messages
        if source is None and position not in copied
    )


@pytest.mark.slow
async def test_takeover_by_hand_when_recorded_then_the_tail_is_the_difference(play: Play) -> None:
    addresses = [play.pair.brokers[site].service_url for site in ("east", "west")]
    failover = AutoFailover(addresses, fail_after=3, interval_s=0.05, timeout_s=2)
    async with Client(addresses[0], failover=failover, backoff_max_ms=200) as client:
        await play.begin(client)
        await play.until_sent(30)
        await play.confirm("east")
        await play.copied_upto(await end_of(play, "east"))
        lag_from_ms = play.recorder.now_ms
        await asyncio.to_thread(play.pair.stop_copying, "east")
        await play.until_sent(20)
        reported, known = await end_of(play, "east"), len(await tail_of(play))
        await play.until_sent(10)
        await asyncio.to_thread(play.pair.lose, "east")
        closed = await end_of(play, "west")
        play.active = "west"
        play.recorder.promote("west", Cause.TAKEOVER)
        lag_ms = play.recorder.now_ms - lag_from_ms
        await play.set_role("west", "active")
        await play.until_sent(30)
        await asyncio.to_thread(play.pair.return_, "east")
        await play.set_role("east", "standby")
        end, tail = await end_of(play, "east"), await tail_of(play)
        await asyncio.to_thread(play.pair.start_copying, "east")
        await play.end()
        stake = Stake(TOPIC, known, reported, end, closed)
        incident = Incident("east", 1, (stake,), tail)
        history = await play.history(incidents=[incident], lag_ms=lag_ms)
    assert len(tail) >= 30
    assert judge(history) == []
    forgotten = replace(history, incidents=[replace(incident, tail=tail[1:])])
    assert {violation.rule for violation in judge(forgotten)} >= {"stake", "late"}

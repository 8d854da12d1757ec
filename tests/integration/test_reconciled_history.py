"""A takeover and its reconcile by the commands under load, whose recorded history is judged."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from interpulse.client import AutoFailover, Client
from interpulse.failover.commands import initialise
from interpulse.failover.history.events import Cause
from interpulse.failover.history.judging import judge
from interpulse.failover.history.reading import read_log
from interpulse.failover.history.record import Incident, Listed, Stake
from interpulse.failover.outcome import Outcome
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig
from interpulse.model.ids import Position
from tests.integration.test_failover_history import end_of, tail_of
from tests.integration.test_reconcile import run_reconcile
from tests.integration.test_takeover import run_takeover
from tests.support.recorded_pair import SITES, TOPIC, Play, playing


@pytest.mark.slow
async def test_reconcile_when_clients_go_on_then_the_list_is_the_difference_and_the_history_is_clean(
    tmp_path: Path,
) -> None:
    """F28 and F30 of the specification: consumers and producers are at west all the time."""
    async with playing(tmp_path / "sites") as play:
        config = play.file(tmp_path / "state")
        config = replace(config, limits=replace(config.limits, probes=1))
        async with opened_pair(config) as pair:
            await initialise(pair)
        addresses = [play.pair.brokers[site].service_url for site in SITES]
        failover = AutoFailover(addresses, fail_after=3, interval_s=0.05, timeout_s=2)
        async with Client(addresses[0], failover=failover, backoff_max_ms=200) as client:
            await play.begin(client)
            await play.until_sent(30)
            await play.confirm("east")
            await play.copied_upto(await end_of(play, "east"))
            lag_from_ms = play.recorder.now_ms
            await asyncio.to_thread(play.pair.stop_copying, "east")
            await play.until_sent(20)
            await play.confirm("east")
            reported, known = await end_of(play, "east"), len(await tail_of(play))
            await play.until_sent(10)
            await asyncio.to_thread(play.pair.lose, "east")
            closed = await end_of(play, "west")
            play.active = "west"
            play.recorder.promote("west", Cause.TAKEOVER)
            lag_ms = play.recorder.now_ms - lag_from_ms
            await run_takeover(config)
            await play.until_sent(30)
            await asyncio.to_thread(play.pair.return_, "east")
            await asyncio.to_thread(play.pair.start_copying, "east")
            result = await run_reconcile(config)
            await play.end()
            stake = Stake(TOPIC, known, reported, end_at_the_list(config), closed)
            incident = Incident("east", 2, (stake,), await listed(play, config))
            history = await play.history(incidents=[incident], lag_ms=lag_ms)
    assert result.outcome in (Outcome.DONE, Outcome.NOTICED)  # keys are taken at both sites
    assert incident.tail is not None
    assert len(incident.tail) >= 30
    assert judge(history) == []


def end_at_the_list(config: PairConfig) -> Position:
    body = json.loads((config.state / "incidents" / "2" / "reconcile.json").read_text())
    return Position.parse(body["ends"][TOPIC])


async def listed(play: Play, config: PairConfig) -> tuple[Listed, ...]:
    """Return the messages of the list that the command wrote, with their names in the log of east."""
    log = await read_log(play.clients["east"].client, "east", TOPIC)
    names = {(logged.position, logged.batch_index): logged.message for logged in log.messages}
    rows = map(json.loads, (config.state / "incidents" / "2" / "tail.jsonl").read_text().splitlines())
    places = [(Position.parse(row["position"]), max(row["batch_index"], 0)) for row in rows]
    return tuple(Listed(*place, names[place]) for place in places)

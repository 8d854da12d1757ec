"""Reports of what is not copied yet, between two clusters that copy without Spark."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interpulse.cli.failover.status import _lines
from interpulse.failover.commands import initialise
from interpulse.failover.pair import opened_pair
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.reporting.reporter import Reporter
from interpulse.failover.reporting.reports import AtStake
from interpulse.failover.reporting.stored import last_reports, read_reports, reports_topic, stake_of
from interpulse.failover.reporting.watching import Watch
from interpulse.failover.site import SiteAccess
from interpulse.failover.status import pair_status
from interpulse.model.names import TopicName
from interpulse.testing import ClusterPair
from tests.scenarios.compacted_reports import newest_reports_survive_compaction
from tests.support.copying_pair import PARTITIONS, TOPIC, CopyingPair, copying_pair
from tests.support.waiting import SECONDS_MAX, eventually

COUNT = 25
KEYS = ("cluster", "service_url", "admin_url")


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[CopyingPair]:
    async with copying_pair(tmp_path) as made:
        async with opened_pair(made.config()) as opened:
            await initialise(opened)
        yield made


@asynccontextmanager
async def watched(config: PairConfig, lines: list[str]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    watching = asyncio.create_task(Watch(config, lines.append).run(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(SECONDS_MAX):
            await watching


async def publish(pair: CopyingPair, partition: int, count: int) -> None:
    producer = await pair.clients["east"].create_producer(str(TOPIC.partition(partition)), batching_enabled=False)
    for number in range(count):
        await producer.send(str(number))
    await producer.close()


async def until_copied(pair: CopyingPair, count: int) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while sum(map(len, await pair.contents("west"))) < count:  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.05)


async def stake(config: PairConfig) -> AtStake | None:
    async with SiteAccess.of(config, "west") as west:
        return await stake_of("east", west, config)


async def until_at_stake(config: PairConfig, messages: int) -> AtStake:
    async with asyncio.timeout(SECONDS_MAX):
        while (found := await stake(config)) is None or found.messages != messages:  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.1)
    return found


async def test_reports_when_copies_stop_then_name_what_is_at_stake(pair: CopyingPair) -> None:
    config, lines = pair.config(report_interval_ms=100), list[str]()
    assert await stake(config) is None
    assert "no report about east; interpulse failover watch makes them" in (await pair_status(config)).stake_problem
    async with watched(config, lines):
        await publish(pair, 0, 10)
        await until_copied(pair, 10)
        at_rest = await until_at_stake(config, 0)
        assert (at_rest.topics, at_rest.stakes) == (PARTITIONS, [])
        pair.held.add("east")
        await publish(pair, 1, COUNT)
        found = await until_at_stake(config, COUNT)
        (row,) = found.stakes
        assert (row.topic, row.messages) == (TOPIC.partition(1), COUNT)
        shown = await pair_status(config)
        assert (shown.stake_problem, shown.to_json()["atStake"]["messages"]) == ("", COUNT)
        lines_shown = list(_lines(shown))
        assert f": {COUNT} messages in 1 of {PARTITIONS} topic-partitions." in lines_shown[-4]
        assert str(TOPIC.partition(1)) in lines_shown[-3]
        assert row.published_up_to.entry - row.copied_up_to.entry >= COUNT or row.copied_up_to.ledger < 0
        pair.held.clear()
        await until_at_stake(config, 0)
    assert lines == ["orders: east serves; what west has not copied is reported"]
    async with SiteAccess.of(config, "east") as east:
        assert (await last_reports(east, config)).keys() == {TOPIC.partition(index) for index in range(PARTITIONS)}


async def test_stake_when_the_site_is_lost_then_counts_what_arrived_after_the_report(pair: CopyingPair) -> None:
    config = pair.config(report_interval_ms=100)
    await publish(pair, 0, 1)
    await until_copied(pair, 1)
    async with watched(config, []):
        await until_at_stake(config, 0)
        pair.held.add("east")
        await publish(pair, 0, COUNT)
        await until_at_stake(config, COUNT)
    pair.held.clear()
    await until_copied(pair, 1 + COUNT)
    found = await stake(config)
    assert found is not None
    assert (found.messages, found.stakes) == (0, [])
    assert found.sentences()[1].startswith("Not known: what was published after ")


async def test_site_when_it_goes_away_and_comes_back_then_is_said_once(tmp_path: Path) -> None:
    lines: list[str] = []
    with ClusterPair(tmp_path) as sites:
        pair = {"name": "orders", "sites": ["east", "west"], "namespaces": ["public/default"], "state": str(tmp_path)}
        addresses = {name: vars(sites.address(name)) for name in ("east", "west")}
        tables = {name: {key: fields[key] for key in KEYS} for name, fields in addresses.items()}
        config = parse_pair_config({"pair": pair, "limits": {"report_interval_ms": 50}, **tables})
        await asyncio.to_thread(sites.east.admin.topics.create, "persistent://public/default/first")
        async with watched(config, lines):
            await until_at_stake(config, 0)
            await asyncio.to_thread(sites.lose, "west")
            await asyncio.to_thread(sites.east.admin.topics.create, "persistent://public/default/second")
            await eventually(lambda: len(lines) == 2)
            await asyncio.to_thread(sites.return_, "west")
            await eventually(lambda: len(lines) == 3)
            assert (await until_at_stake(config, 0)).topics == 2
    assert lines[1].startswith("orders: west does not answer since ")
    assert lines[2].startswith("orders: west answers again after ")


async def test_site_when_it_answers_and_stores_nothing_then_is_said_once(pair: CopyingPair) -> None:
    config, lines = pair.config(report_interval_ms=20), list[str]()
    topic = reports_topic(config)
    holder = await pair.clients["west"].create_producer(str(topic), access_mode="exclusive")
    async with watched(config, lines):
        await eventually(lambda: len(lines) == 2)
        for number in range(5):
            await publish(pair, 0, 1)
            async with SiteAccess.of(config, "east") as east, asyncio.timeout(SECONDS_MAX):
                while True:
                    reports, _ = await read_reports(east, topic)
                    if TOPIC.partition(0) in reports and reports[TOPIC.partition(0)].messages == number + 1:
                        break
        assert len(lines) == 2, lines
        await holder.close()
        await eventually(lambda: len(lines) == 3)
        await until_at_stake(config, 0)
    assert lines[1].startswith("orders: west stores no reports since ")
    assert lines[2].startswith("orders: west stores reports again after ")


async def test_topic_when_deleted_then_its_report_and_looks_are_dropped(pair: CopyingPair) -> None:
    config, name = pair.config(report_interval_ms=20), TopicName.parse("persistent://public/default/short")
    topic = reports_topic(config)
    await pair.admins["east"].topics.create(name)
    async with watched(config, []), SiteAccess.of(config, "west") as west, asyncio.timeout(SECONDS_MAX):
        while name not in (await read_reports(west, topic))[0]:
            pass
        await pair.admins["east"].topics.delete(name, force=True)
        while name in (await read_reports(west, topic))[0]:
            pass
    async with SiteAccess.of(config, "east") as east, SiteAccess.of(config, "west") as west:
        await pair.admins["east"].topics.create(name)
        reporter = Reporter(east, west, requests_per_second=10_000)
        await reporter.look()
        assert name in reporter._looks
        await pair.admins["east"].topics.delete(name, force=True)
        await reporter.look()
        assert (reporter.gone, name in reporter._looks, name in reporter.reports) == ({name}, False, False)


async def test_looks_when_nothing_changes_then_cost_one_request_for_each_topic(pair: CopyingPair) -> None:
    config = pair.config()
    await publish(pair, 0, 5)
    await until_copied(pair, 5)
    async with SiteAccess.of(config, "east") as east, SiteAccess.of(config, "west") as west:
        reporter = Reporter(east, west, requests_per_second=10_000)
        async with asyncio.timeout(SECONDS_MAX):
            while not (await reporter.look() == {} and not reporter.totals().behind_messages):
                pass
        before = reporter.paced.count
        assert await reporter.look() == {}
        assert reporter.paced.count - before == 1 + 1  # the list of the namespace, and the partitioned topic
        assert reporter.reports.keys() == {TOPIC.partition(index) for index in range(PARTITIONS)}


async def test_reports_when_compacted_then_the_newest_are_kept(pair: CopyingPair) -> None:
    config = pair.config()
    async with SiteAccess.of(config, "west") as west:
        await newest_reports_survive_compaction(west, reports_topic(config))


async def test_watch_when_terminated_then_ends_with_0(pair: CopyingPair, tmp_path: Path) -> None:
    file = tmp_path / "pair.toml"
    tables = {
        name: "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
        for name, table in pair.tables().items()
    }
    file.write_text("\n".join(f"[{name}]\n{table}" for name, table in tables.items()))
    command = (sys.executable, "-m", "interpulse.cli", "failover", "watch", "--config", str(file))
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(SECONDS_MAX):
        assert await process.stderr.readline() == b"orders: east serves; what west has not copied is reported\n"
        await until_at_stake(pair.config(), 0)
        process.terminate()
        assert (await process.wait(), await process.stderr.read()) == (0, b"")

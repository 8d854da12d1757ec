"""One suite over every log store: memory, segments and BookKeeper must not be told apart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.api import (
    CommitConflict,
    Delete,
    FenceCause,
    LedgerRecord,
    LogFenced,
    LogNotFound,
    LogTerminated,
    MetadataUnavailable,
    Put,
)
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.logs.journal import Journal, JournalClient
from interpulse.storage.logs.topic_log import LogConfig, TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.logs.topic_records import with_ledgers
from interpulse.storage.segments.journal import open_log_store
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.memory_storage import MemoryJournal, MemoryMetadataStore, memory_log_store
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.unit.storage.listeners import Listener, read_all

NAME = "public/default/persistent/a%2Fb"


class LogBench:
    """A store that can be restarted over what it kept."""

    def __init__(self, kind: str, directory: Path, nodes: ZooKeeperClient | None = None) -> None:
        """``nodes``: of a ZooKeeper where bookies are registered."""
        self.kind = kind
        self.nodes = nodes
        self.metadata = MemoryMetadataStore()
        self.config = LogConfig()
        self.now_ms = 1_000_000
        journal = MemoryJournal()

        async def memory() -> TopicLogStore:
            return memory_log_store(self.metadata, self.config, journal)

        async def segments() -> TopicLogStore:
            return await open_log_store(directory / "log", self.metadata, config=self.config, segment_bytes_max=300)

        async def bookkeeper() -> TopicLogStore:
            assert nodes is not None
            journal = BookKeeperJournal(BookKeeperClient(nodes), LogQuorums(Quorum(3, 3, 2)))
            return TopicLogStore(self.metadata, journal, self.config)

        openers = {"memory": memory, "segments": segments, "bookkeeper": bookkeeper}
        self._open: Callable[[], Awaitable[TopicLogStore]] = openers[kind]
        self.store: TopicLogStore

    async def start(self) -> None:
        self.store = await self._open()
        self.store.now_ms = lambda: self.now_ms

    async def restart(self) -> None:
        await self.store.close()
        await self.start()

    async def open(self, name: str = NAME, *, create: bool = True) -> tuple[TopicLog, Listener]:
        listener = Listener()
        return await self.store.open(name, listener, create=create), listener

    async def ledgers_left(self) -> list[str]:
        """What the metadata have of ledgers, beside the counter of their ids."""
        if self.nodes is not None:
            return (await self.nodes.children("/ledgers/00/0000")).names
        return [each for each in await self.metadata.children("/ledgers") if each != "id-counter"]

    async def record(self, name: str = NAME) -> dict[str, object]:
        found = await self.metadata.get(f"/managed-ledgers/{name}")
        assert found is not None
        fields: dict[str, object] = json.loads(found.value)
        return fields


@pytest.fixture(params=["memory", "segments", "bookkeeper"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LogBench]:
    async with AsyncExitStack() as engines:
        nodes = None
        if request.param == "bookkeeper":
            zookeeper = await engines.enter_async_context(scripted_zookeeper())
            nodes = await ZooKeeperClient.connect(await zookeeper.listen())
            engines.push_async_callback(nodes.close)
            await engines.enter_async_context(scripted_bookies(nodes, 3))
        made = LogBench(request.param, tmp_path, nodes)
        await made.start()
        yield made
        await made.store.close()


async def fill(log: TopicLog, listener: Listener, *payloads: bytes) -> list[Position]:
    positions = [log.append(each) for each in payloads]
    await listener.durable(positions[-1])
    return positions


async def test_append_when_durable_then_positions_are_dense_from_zero_and_readable(bench: LogBench) -> None:
    log, listener = await bench.open()
    ledger = log.last_position.ledger
    assert log.last_position == Position(ledger, -1)
    assert log.first_position is None
    assert await log.read(EARLIEST, entries_max=9, bytes_max=99) == []
    positions = [log.append(b"one"), log.append(b"two"), log.append(b"")]
    assert positions == [Position(ledger, 0), Position(ledger, 1), Position(ledger, 2)]
    assert log.last_appended == positions[-1]
    assert log.last_position == Position(ledger, -1), "nothing is durable yet"
    assert log.read_cached(EARLIEST, entries_max=9, bytes_max=99) == []
    await listener.durable(positions[-1])
    assert log.last_position == positions[-1]
    assert log.first_position == positions[0]
    entries = await log.read(EARLIEST, entries_max=9, bytes_max=99)
    assert entries == [(positions[0], b"one"), (positions[1], b"two"), (positions[2], b"")]
    assert log.read_cached(EARLIEST, entries_max=9, bytes_max=99) == entries
    assert [(each.entries, each.size) for each in log.ledgers] == [(3, 6)]


async def test_append_when_many_in_one_turn_then_one_group_per_log(bench: LogBench) -> None:
    one, heard_one = await bench.open("t/n/persistent/one")
    two, heard_two = await bench.open("t/n/persistent/two")
    for number in range(200):
        last_one = one.append(b"1-%d" % number)
        last_two = two.append(b"2-%d" % number)
    await heard_one.durable(last_one)
    await heard_two.durable(last_two)
    assert heard_one.calls == [last_one]
    assert heard_two.calls == [last_two]
    assert await read_all(one) == [b"1-%d" % number for number in range(200)]
    assert await read_all(two) == [b"2-%d" % number for number in range(200)]


async def test_append_of_several_then_as_one_by_one_and_durable_together(bench: LogBench) -> None:
    log, listener = await bench.open()
    first = log.append(b"one")
    last = log.append(b"two", b"", b"four")
    assert (last, log.last_appended) == (Position(first.ledger, 3), last)
    assert log.append(b"five") == Position(first.ledger, 4)
    await listener.durable(Position(first.ledger, 4))
    assert await read_all(log) == [b"one", b"two", b"", b"four", b"five"]
    assert listener.calls == [Position(first.ledger, 4)]
    await log.terminate()
    with pytest.raises(LogTerminated):
        log.append(b"six", b"seven")


async def test_read_when_bounded_then_never_more_but_at_least_one(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, *[b"x" * 10 for _ in range(10)])
    for read in (log.read, log.read_cached):
        for bounds, expected in {(3, 1000): 3, (100, 35): 3, (100, 1): 1, (100, 1000): 10}.items():
            found = read(EARLIEST, entries_max=bounds[0], bytes_max=bounds[1])
            entries = found if isinstance(found, list) else await found  # type: ignore[misc]
            assert len(entries) == expected, (read, bounds)


async def test_roll_when_not_empty_then_next_ledger_and_reads_cross(bench: LogBench) -> None:
    log, listener = await bench.open()
    await log.roll()
    assert len(log.ledgers) == 1, "an empty ledger is not rolled"
    await fill(log, listener, b"a", b"b")
    log.append(b"c")
    await log.roll()
    assert listener.last.entry == 2, "what was appended before is durable"
    await fill(log, listener, b"d")
    first, second = (row.ledger_id for row in log.ledgers)
    assert second > first
    assert log.last_position == Position(second, 0)
    assert [row.entries for row in log.ledgers] == [3, 1]
    entries = await log.read(Position(first, 1), entries_max=9, bytes_max=99)
    assert [each.entry for each in entries] == [b"b", b"c", b"d"]
    assert log.read_cached(Position(first, 1), entries_max=9, bytes_max=99) == entries
    assert log.next_position(Position(first, 2)) == Position(second, 0)
    assert log.next_position(Position(second, 0)) is None
    assert log.entries_between(Position(first, 0), Position(second, 0)) == 3
    assert log.entries_between(EARLIEST, LATEST) == 4


async def test_append_when_roll_is_under_way_then_order_is_kept(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"0")
    rolling = asyncio.ensure_future(log.roll())
    sent = [b"0"]
    for number in range(1, 40):
        sent.append(b"%d" % number)
        last = log.append(sent[-1])
        await asyncio.sleep(0)
    await rolling
    await listener.durable(last)
    assert await read_all(log) == sent
    assert len(log.ledgers) == 2


@pytest.mark.parametrize(
    ("config", "age_ms"),
    [
        (LogConfig(ledger_entries_max=2, ledger_age_min_ms=0), 0),
        (LogConfig(ledger_bytes_max=2, ledger_age_min_ms=0), 0),
        (LogConfig(ledger_entries_max=2, ledger_age_min_ms=500), 500),
        (LogConfig(ledger_age_max_ms=1000), 1000),
    ],
    ids=["entries", "bytes", "entries-old-enough", "age"],
)
async def test_ledger_when_a_limit_is_reached_then_rolled_by_itself(
    bench: LogBench, config: LogConfig, age_ms: int
) -> None:
    bench.config = config
    await bench.restart()
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    assert len(log.ledgers) == 1
    bench.now_ms += age_ms
    await fill(log, listener, b"b")
    assert log._rolling is not None
    await log._rolling
    assert len(log.ledgers) == 2


async def test_ledger_when_full_but_young_then_not_rolled(bench: LogBench) -> None:
    bench.config = LogConfig(ledger_entries_max=1, ledger_age_min_ms=60_000)
    await bench.restart()
    log, listener = await bench.open()
    await fill(log, listener, b"a", b"b")
    assert log._rolling is None


async def test_open_when_loaded_again_then_new_ledger_and_empty_ones_are_dropped(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a", b"b")
    last = log.last_position
    await log.close()
    seen = {last.ledger}
    for _ in range(3):
        await bench.restart()
        log, _ = await bench.open(create=False)
        assert log.last_position == last
        assert log.last_appended == last
        assert [row.entries for row in log.ledgers] == [2, 0]
        newest = log.ledgers[-1].ledger_id
        assert newest not in seen
        seen.add(newest)
        assert await read_all(log) == [b"a", b"b"]
    assert log.append(b"c") == Position(newest, 0)


async def test_trim_when_ledgers_lie_before_then_only_these_go(bench: LogBench) -> None:
    log, listener = await bench.open()
    for payload in (b"a", b"b", b"c"):
        await fill(log, listener, payload * 200, payload * 200)
        await log.roll()
    first, second, third, _ = (row.ledger_id for row in log.ledgers)
    await log.trim(Position(second, 1))
    assert log.first_position == Position(second, 0), "the position itself lies in it"
    await log.trim(Position(second, 2))
    assert log.first_position == Position(third, 0)
    assert await read_all(log) == [b"c" * 200, b"c" * 200]
    assert log.read_cached(Position(first, 0), entries_max=9, bytes_max=9999) == await log.read(
        EARLIEST, entries_max=9, bytes_max=9999
    )
    await bench.restart()
    log, _ = await bench.open()
    assert await read_all(log) == [b"c" * 200, b"c" * 200]
    await log.trim(LATEST)
    assert log.first_position is None
    assert len(log.ledgers) == 1


async def test_close_when_a_trim_is_being_stored_then_waits_for_it(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a" * 200, b"b" * 200)
    await log.roll()
    commit, may_commit, asked = bench.metadata.commit, asyncio.Event(), asyncio.Event()

    async def slow_commit(*arguments: Any) -> None:
        asked.set()
        await may_commit.wait()
        await commit(*arguments)

    monkeypatch.setattr(bench.metadata, "commit", slow_commit)
    trimming = asyncio.create_task(log.trim(LATEST))
    await asyncio.wait_for(asked.wait(), 60)
    closing = asyncio.create_task(log.close())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not closing.done()
    may_commit.set()
    await asyncio.gather(trimming, closing)
    log, _ = await bench.open()
    assert log.first_position is None


async def test_terminate_when_done_then_no_more_appends_ever(bench: LogBench) -> None:
    log, listener = await bench.open()
    positions = [log.append(b"a"), log.append(b"b")]
    assert await log.terminate() == positions[-1]
    assert listener.last == positions[-1], "terminated after the last entry was durable"
    assert await log.terminate() == positions[-1]
    assert (await bench.record())["terminated"] == {"ledgerId": positions[-1].ledger, "entryId": 1}
    for _ in range(2):
        assert log.terminated
        with pytest.raises(LogTerminated):
            log.append(b"c")
        with pytest.raises(LogTerminated):
            await log.roll()
        await bench.restart()
        log, _ = await bench.open()
        assert log.last_position == positions[-1]
        assert await read_all(log) == [b"a", b"b"]
    await log.trim(LATEST)
    await bench.restart()
    log, _ = await bench.open()
    assert log.terminated


async def test_terminate_when_metadata_is_down_then_log_goes_on_or_is_opened_again(bench: LogBench) -> None:
    log, listener = await bench.open()
    metadata, bench.store.records._metadata = bench.store.records._metadata, MemoryMetadataStore()
    await bench.store.records._metadata.close()
    with pytest.raises(MetadataUnavailable):
        await log.terminate()
    bench.store.records._metadata = metadata
    assert not log.terminated
    if bench.kind == "bookkeeper":  # an answer can be lost there, so only the record knows
        assert isinstance(listener.error, MetadataUnavailable)
        await log.close()
        log, listener = await bench.open()
        assert not log.terminated
    await fill(log, listener, b"a")


async def test_open_when_absent_then_created_or_refused(bench: LogBench) -> None:
    with pytest.raises(LogNotFound):
        await bench.open(create=False)
    assert not await bench.store.exists(NAME)
    await bench.open()
    assert await bench.store.exists(NAME)


async def test_delete_when_open_then_everything_goes_and_ids_are_not_reused(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    await bench.metadata.commit([Put(f"/managed-ledgers/{NAME}/sub", b"{}")])
    await bench.store.delete(NAME)
    await bench.store.delete(NAME)
    with pytest.raises(LogFenced):
        log.append(b"b")
    assert not await bench.store.exists(NAME)
    assert await bench.metadata.children("/managed-ledgers") == []
    assert await bench.ledgers_left() == []
    again, _ = await bench.open()
    assert again.ledgers[0].ledger_id > log.ledgers[0].ledger_id
    assert await read_all(again) == []
    await bench.restart()
    third, _ = await bench.open()
    assert third.ledgers[0].ledger_id > again.ledgers[0].ledger_id


async def test_delete_of_several_then_all_go_with_other_changes_or_none(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    other = f"{NAME}-other"
    await bench.metadata.commit([Put(f"/managed-ledgers/{other}", b'{"ledgers": []}'), Put("/mine", b"1")])
    with pytest.raises(CommitConflict):
        await bench.store.delete(NAME, other, also=[Delete("/mine")], expect={"/mine": None})
    assert await bench.store.exists(NAME)
    assert await bench.store.exists(other)
    log, listener = await bench.open()
    assert await read_all(log) == [b"a"]
    await bench.store.delete(NAME, other, f"{NAME}-absent", also=[Delete("/mine")])
    assert await bench.metadata.children("/managed-ledgers") == []
    assert await bench.ledgers_left() == []
    assert await bench.metadata.get("/mine") is None


async def test_delete_when_record_vanished_before_roll_then_roll_does_not_bring_it_back(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    await bench.store.records.delete(NAME)
    with pytest.raises(LogNotFound):
        await log.roll()
    assert not await bench.store.exists(NAME)


async def test_log_when_another_process_began_a_ledger_then_fenced_without_changes(
    bench: LogBench,
) -> None:
    for change in ("roll", "trim", "terminate"):
        log, listener = await bench.open()
        await fill(log, listener, b"a")
        await log.roll()
        await fill(log, listener, b"b")
        newer = LedgerRecord(log.ledgers[-1].ledger_id + 100, 0, 0, 0)
        await bench.store.records.change(NAME, lambda old: with_ledgers(old, [newer]))  # noqa: B023
        before = await bench.record()
        work = log.trim(LATEST) if change == "trim" else getattr(log, change)()
        with pytest.raises(LogFenced, match=f"began ledger {newer.ledger_id}") as refusal:
            await work
        assert refusal.value.cause is FenceCause.OWNED_ELSEWHERE
        assert listener.error is refusal.value
        with pytest.raises(LogFenced) as later:
            log.append(b"c")
        assert later.value.cause is FenceCause.OWNED_ELSEWHERE
        assert await bench.record() == before
        assert not log.terminated
        await bench.store.delete(NAME)


async def test_open_when_another_is_faster_then_refused_and_its_record_stays(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    await log.close()
    newer = LedgerRecord(log.ledgers[-1].ledger_id + 100, 0, 0, 0)
    create = bench.store.journal.create

    async def create_late(*arguments: Any) -> int:
        await bench.store.records.change(NAME, lambda old: with_ledgers(old, [*log.ledgers, newer]))
        return await create(*arguments)

    monkeypatch.setattr(bench.store.journal, "create", create_late)
    with pytest.raises(LogFenced) as refusal:
        await bench.open()
    assert refusal.value.cause is FenceCause.OWNED_ELSEWHERE
    record = await bench.store.records.get(NAME)
    assert record is not None
    assert record.newest == newer.ledger_id


async def test_change_when_the_session_ends_meanwhile_then_not_tried_again(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    before, commit = await bench.record(), bench.metadata.commit

    async def conflict_and_renew(*arguments: Any) -> None:
        monkeypatch.setattr(bench.metadata, "commit", commit)
        bench.metadata.session.lose()
        bench.metadata.session.resume(bench.metadata.session.id + 1)
        raise CommitConflict(f"/managed-ledgers/{NAME}")

    monkeypatch.setattr(bench.metadata, "commit", conflict_and_renew)
    with pytest.raises(LogFenced, match="session") as refusal:
        await log.terminate()
    assert refusal.value.cause is FenceCause.OWNED_ELSEWHERE
    assert await bench.record() == before


async def test_close_when_entries_are_pending_then_durable_and_fenced(bench: LogBench) -> None:
    log, listener = await bench.open()
    last = log.append(b"a")
    await log.close()
    assert listener.last == last
    assert listener.error is None
    with pytest.raises(LogFenced):
        log.append(b"b")
    log, _ = await bench.open()
    assert await read_all(log) == [b"a"]


class Broken:
    """A journal on which every group fails."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def enqueue(self, client: JournalClient) -> None:
        asyncio.get_running_loop().call_soon(client.failed, OSError("broken"))

    def __getattr__(self, name: str) -> object:
        return getattr(self._journal, name)


async def test_log_when_a_write_fails_then_reported_once_and_pending_entries_fail(bench: LogBench) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    log._journal = Broken(bench.store.journal)  # type: ignore[assignment]
    log.append(b"b")
    ending = asyncio.ensure_future(log.terminate())
    with pytest.raises(LogFenced, match="broken"):
        await ending
    assert isinstance(listener.error, OSError)
    log.failed(OSError("again"))
    assert log.last_appended == log.last_position
    assert not log.terminated
    for refused in (log.roll(), log.trim(LATEST), log.terminate()):
        with pytest.raises(LogFenced):
            await refused
    await log.close()
    again, _ = await bench.open()
    assert await read_all(again) == [b"a"]


async def test_close_when_the_last_write_fails_then_returns_and_log_can_be_opened(bench: LogBench) -> None:
    log, listener = await bench.open()
    log._journal = Broken(bench.store.journal)  # type: ignore[assignment]
    log.append(b"a")
    await log.close()
    assert isinstance(listener.error, OSError)
    await bench.open()


async def test_roll_by_itself_when_metadata_is_down_then_tried_again_and_entries_are_durable_meanwhile(
    bench: LogBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.logs.topic_log._AGAIN_S", 0.01)
    bench.config = LogConfig(ledger_entries_max=1, ledger_age_min_ms=0)
    await bench.restart()
    log, listener = await bench.open()
    commit, tried = bench.metadata.commit, asyncio.Event()

    async def unavailable(*arguments: Any) -> None:
        tried.set()
        raise MetadataUnavailable("it is away")

    monkeypatch.setattr(bench.metadata, "commit", unavailable)
    await fill(log, listener, b"a")
    await tried.wait()
    if bench.kind != "bookkeeper":
        await fill(log, listener, b"b", b"c")
        assert len(log.ledgers) == 1
    assert log._rolling is not None
    assert not log._rolling.done()
    monkeypatch.setattr(bench.metadata, "commit", commit)
    await log._rolling
    assert len(log.ledgers) == 2
    assert listener.error is None
    await fill(log, listener, b"d")


async def test_roll_by_itself_when_the_log_has_no_record_any_more_then_it_fails(bench: LogBench) -> None:
    bench.config = LogConfig(ledger_entries_max=1, ledger_age_min_ms=0)
    await bench.restart()
    log, listener = await bench.open()
    await bench.store.records.delete(NAME)
    await fill(log, listener, b"a")
    assert log._rolling is not None
    await log._rolling
    assert isinstance(listener.error, LogNotFound)


async def test_close_when_a_roll_is_under_way_then_it_is_ended(bench: LogBench) -> None:
    bench.config = LogConfig(ledger_entries_max=1, ledger_age_min_ms=0)
    await bench.restart()
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    assert log._rolling is not None
    await log.close()
    assert log._rolling.done()
    log, _ = await bench.open()
    assert await read_all(log) == [b"a"]


async def test_record_when_log_changes_then_foreign_properties_stay(bench: LogBench) -> None:
    key = f"/managed-ledgers/{NAME}"
    await bench.metadata.commit([Put(key, json.dumps({"ledgers": [], "properties": {"k": "v"}, "x": 1}).encode())])
    log, listener = await bench.open(create=False)
    await fill(log, listener, b"a")
    await log.roll()
    record = await bench.record()
    assert record["properties"] == {"k": "v"}
    assert record["x"] == 1
    rows = record["ledgers"]
    assert isinstance(rows, list)
    assert [row["ledgerId"] for row in rows] == [row.ledger_id for row in log.ledgers]


async def test_open_when_record_is_not_understood_then_refused_naming_the_log(bench: LogBench) -> None:
    for value in (b"{", b"[]", b'{"ledgers":[{}]}'):
        await bench.metadata.commit([Put(f"/managed-ledgers/{NAME}", value)])
        with pytest.raises(MetadataUnavailable, match="a%2Fb"):
            await bench.open()


async def test_cache_when_bound_is_reached_then_oldest_go_and_reads_still_work(bench: LogBench) -> None:
    bench.config = LogConfig(cache_bytes_max=1000)
    await bench.restart()
    log, listener = await bench.open()
    for number in range(20):
        await fill(log, listener, b"%02d" % number + b"x" * 98)
    assert bench.store.cache.bytes_held <= 1000
    assert log.read_cached(EARLIEST, entries_max=9, bytes_max=9999) is None
    ledger = log.last_position.ledger
    tail = log.read_cached(Position(ledger, 18), entries_max=9, bytes_max=9999)
    assert tail is not None
    assert [each.entry[:2] for each in tail] == [b"18", b"19"]
    assert [payload[:2] for payload in await read_all(log)] == [b"%02d" % number for number in range(20)]
    await log.close()
    assert bench.store.cache.bytes_held == 0


async def test_last_appended_when_rolled_while_entries_are_on_their_way_then_still_the_last_one(
    bench: LogBench,
) -> None:
    log, listener = await bench.open()
    await fill(log, listener, b"a")
    rolling = asyncio.ensure_future(log.roll())
    last = log.last_position
    while len(log.ledgers) == 1:
        last = log.append(b"b")
        await asyncio.sleep(0)
        assert log.last_appended >= last
    assert log.last_appended == last
    await log.close()
    assert listener.last == last
    await asyncio.wait([rolling])


async def test_roll_when_the_first_entry_is_on_its_way_then_waits_for_it(bench: LogBench) -> None:
    log, listener = await bench.open()
    first = log.append(b"first")
    await log.roll()
    assert log.last_position == first
    assert listener.last == first
    await log.trim(Position(log.ledgers[-1].ledger_id, -1))
    second = log.append(b"second")
    await listener.durable(second)
    assert await read_all(log) == [b"second"]
    await log.close()

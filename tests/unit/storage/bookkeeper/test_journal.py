"""Topic logs on bookies in the process: what fails, who is fenced, and what is never lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.api import (
    Change,
    FenceCause,
    LogDamaged,
    LogFenced,
    MetadataUnavailable,
    NotReadableNow,
    Put,
)
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import (
    EntryTooLarge,
    LedgerFailed,
    NoLedger,
    RecoveryStopped,
)
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.bookkeeper.records import LedgerMetadata, LedgerState, LogQuorums, Quorum, path_of
from interpulse.storage.logs.journal import LedgerPurpose, LedgerUse
from interpulse.storage.logs.topic_log import LogConfig, TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.logs.topic_records import with_ledgers
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NotConnected
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.scripted_bookie import ScriptedBookies
from tests.support.waiting import eventually
from tests.unit.storage.bookkeeper.conftest import Connect
from tests.unit.storage.listeners import Listener, read_all

NAME = "t/n/persistent/a%2Fb"
Q332 = Quorum(3, 3, 2)
RECORDS = PulsarTopicRecords()


class CheckedMetadata(MemoryMetadataStore):
    """Only the last ledger of a record may be without a count: real brokers delete the others for empty ones."""

    def __init__(self) -> None:
        super().__init__()
        self.before_commit: Callable[[], Awaitable[None]] | None = None

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        for change in changes:
            if isinstance(change, Put) and change.key == f"/managed-ledgers/{NAME}":
                rows = RECORDS.decode(change.value).ledgers
                assert all(row.entries for row in rows[:-1]), rows
        if self.before_commit is not None:
            await self.before_commit()
        await super().commit(changes, expect)


class Broker:
    """The logs of one broker, on the metadata and bookies of all."""

    def __init__(self, client: BookKeeperClient, metadata: MemoryMetadataStore, config: LogConfig | None) -> None:
        self.client = client
        self.journal = BookKeeperJournal(client, LogQuorums(Q332))
        self.store = TopicLogStore(metadata, self.journal, config, codec=RECORDS)

    async def open(self) -> tuple[TopicLog, Listener]:
        listener = Listener()
        return await self.store.open(NAME, listener, create=True), listener


Start = Callable[..., Awaitable[Broker]]


@pytest.fixture
def metadata() -> CheckedMetadata:
    return CheckedMetadata()


@pytest.fixture
async def start(connect: Connect, metadata: CheckedMetadata) -> AsyncIterator[Start]:
    """`await start()`: one more broker."""
    started: list[Broker] = []

    async def start_one(config: LogConfig | None = None, **settings: Any) -> Broker:
        started.append(Broker(await connect(**settings), metadata, config))
        return started[-1]

    yield start_one
    for broker in started:
        await broker.store.close()
        assert broker.journal._open == {}
        assert broker.journal._senders == {}


@pytest.fixture
def ledgers(nodes: ZooKeeperClient) -> LedgerMetadataStore:
    return LedgerMetadataStore(nodes)


async def state(ledgers: LedgerMetadataStore, ledger_id: int) -> LedgerMetadata:
    return (await ledgers.read(ledger_id)).ledger


async def exists(ledgers: LedgerMetadataStore, ledger_id: int) -> bool:
    try:
        await ledgers.read(ledger_id)
    except NoLedger:
        return False
    return True


async def fill(log: TopicLog, listener: Listener, count: int, first: int = 0) -> list[bytes]:
    sent = [b"%d" % each for each in range(first, first + count)]
    await listener.durable([log.append(each) for each in sent][-1])
    return sent


async def test_log_when_another_broker_opens_it_then_fenced_without_loss(
    start: Start,
) -> None:
    first, second = await start(), await start()
    log, listener = await first.open()
    sent: list[bytes] = []

    async def go_on() -> None:
        while True:
            sent.append(b"%d" % len(sent))
            position = log.append(sent[-1])
            if len(sent) % 10 == 0:
                await listener.durable(position)

    writing = asyncio.create_task(go_on())
    await eventually(lambda: len(listener.calls) > 5)
    taken, _ = await second.open()
    with pytest.raises(LogFenced) as fenced:
        await writing
    assert fenced.value.cause is FenceCause.OWNED_ELSEWHERE
    assert isinstance(listener.error, LogFenced)
    acknowledged = listener.last.entry + 1
    found = await read_all(taken, entries_max=1000)
    assert found == sent[: len(found)]
    assert len(found) >= acknowledged
    with pytest.raises(LogFenced):
        await log.roll()
    await log.close()
    more = taken.append(b"more")
    assert more > listener.last


async def test_zombie_when_it_rolls_then_it_is_fenced_and_the_record_stays(
    start: Start, metadata: CheckedMetadata, ledgers: LedgerMetadataStore
) -> None:
    zombie, other = await start(), await start()
    log, listener = await zombie.open()
    await fill(log, listener, 3)
    await log.roll()
    await fill(log, listener, 3)
    await other.open()
    record = await metadata.get(f"/managed-ledgers/{NAME}")
    for change in (log.trim(LATEST), log.roll(), log.terminate()):
        with pytest.raises(LogFenced) as fenced:
            await change
        assert fenced.value.cause is FenceCause.OWNED_ELSEWHERE
    assert await metadata.get(f"/managed-ledgers/{NAME}") == record
    assert isinstance(listener.error, LogFenced)


async def test_two_brokers_when_they_open_a_log_at_once_then_one_wins_and_the_other_leaves_no_ledger(
    start: Start, metadata: CheckedMetadata, nodes: ZooKeeperClient
) -> None:
    brokers = [await start(), await start()]
    opened = await asyncio.gather(*(each.open() for each in brokers), return_exceptions=True)
    won = [each for each in opened if not isinstance(each, BaseException)]
    lost = [each for each in opened if isinstance(each, LogFenced)]
    assert (len(won), len(lost)) == (1, 1)
    assert lost[0].cause is FenceCause.OWNED_ELSEWHERE
    log, listener = won[0]
    await fill(log, listener, 3)
    ids = [int(each[1:]) for each in (await nodes.children("/ledgers/00/0000")).names]
    assert ids == [row.ledger_id for row in log.ledgers]


async def test_ledgers_when_a_log_goes_on_then_closed_one_by_one_and_empty_ones_deleted(
    start: Start, ledgers: LedgerMetadataStore
) -> None:
    broker = await start()
    log, listener = await broker.open()
    empty = log.ledgers[0].ledger_id
    await log.close()
    assert (await state(ledgers, empty)).closed
    log, listener = await broker.open()
    assert not await exists(ledgers, empty)
    first = log.ledgers[0].ledger_id
    assert (await state(ledgers, first)).custom == {
        "application": b"pulsar",
        "component": b"managed-ledger",
        "pulsar/managed-ledger": NAME.encode(),
    }
    sent = await fill(log, listener, 5)
    await log.roll()
    second = log.ledgers[1].ledger_id
    await eventually(lambda: first not in broker.journal._open)
    assert (await state(ledgers, first)).last_entry == 4
    assert (await state(ledgers, second)).state is LedgerState.OPEN
    sent += await fill(log, listener, 5, first=5)
    await log.close()
    assert (await state(ledgers, second)).last_entry == 4
    log, _ = await broker.open()
    assert [row.entries for row in log.ledgers] == [5, 5, 0]
    assert await read_all(log) == sent
    await log.trim(Position(second, 0))
    assert not await exists(ledgers, first)
    await broker.store.delete(NAME)
    for ledger_id in (second, log.ledgers[-1].ledger_id):
        assert not await exists(ledgers, ledger_id)


async def test_roll_when_the_record_waits_then_new_entries_are_held_in_order(
    start: Start, metadata: CheckedMetadata
) -> None:
    broker = await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    asked, may_commit = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        asked.set()
        await may_commit.wait()

    metadata.before_commit = wait
    log.append(b"5")
    rolling = asyncio.create_task(log.roll())
    await asked.wait()
    rolling.cancel()  # its caller is gone; the log goes on
    await asyncio.gather(rolling, return_exceptions=True)
    sent += [b"5", b"6", b"7"]
    last = log.append(b"6", b"7")
    assert last == Position(log.ledgers[1].ledger_id, 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert listener.last == Position(log.ledgers[0].ledger_id, 5)
    metadata.before_commit = None
    may_commit.set()
    await listener.durable(last)
    assert await read_all(log) == sent


async def test_roll_when_no_entry_is_durable_yet_then_the_record_waits_for_the_first_one(
    start: Start, bookies: ScriptedBookies
) -> None:
    broker = await start()
    log, listener = await broker.open()
    for bookie in bookies:
        bookie.mute = True
    first = log.append(b"first")
    rolling = asyncio.create_task(log.roll())
    await eventually(lambda: len(log.ledgers) == 2)
    second = log.append(b"second")
    for bookie in bookies:
        bookie.go_on()
    await rolling
    assert log.last_position >= first
    await log.trim(Position(second.ledger, -1))
    await listener.durable(second)
    assert await read_all(log) == [b"second"]


@pytest.mark.parametrize("held", [[], [b"5", b"6"]])
async def test_log_when_terminated_while_its_roll_waits_then_both_end_and_nothing_is_lost(
    start: Start, metadata: CheckedMetadata, ledgers: LedgerMetadataStore, held: list[bytes]
) -> None:
    broker, next_one = await start(), await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    asked, may_commit = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        asked.set()
        await may_commit.wait()

    metadata.before_commit = wait
    rolling = asyncio.create_task(log.roll())
    await asked.wait()
    for entry in held:
        log.append(entry)
    terminating = asyncio.create_task(log.terminate())
    for _ in range(20):
        await asyncio.sleep(0)
    metadata.before_commit = None
    may_commit.set()
    async with asyncio.timeout(30):
        end = await terminating
        await rolling
    assert not log._held
    old, new = (row.ledger_id for row in log.ledgers)
    assert end == (Position(new, 1) if held else Position(old, 4))
    await eventually(lambda: not broker.journal._open)
    assert [(await state(ledgers, each)).closed for each in (old, new)] == [True, True]
    log, _ = await next_one.open()
    assert log.terminated
    assert log.last_position == end
    assert await read_all(log) == sent + held


@pytest.mark.parametrize("applied", [True, False])
async def test_log_when_its_termination_is_unknown_then_fails_and_the_record_decides(
    start: Start, metadata: CheckedMetadata, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    broker = await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    commit = metadata.commit

    async def answer_lost(changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        if applied:
            await commit(changes, expect)
        raise MetadataUnavailable("no answer")

    monkeypatch.setattr(metadata, "commit", answer_lost)
    with pytest.raises(MetadataUnavailable):
        await log.terminate()
    monkeypatch.setattr(metadata, "commit", commit)
    assert isinstance(listener.error, MetadataUnavailable)
    with pytest.raises(LogFenced) as fenced:
        log.append(b"5")
    assert fenced.value.cause is FenceCause.FAILED
    await log.close()
    log, listener = await broker.open()
    assert log.terminated is applied
    if not applied:
        sent += await fill(log, listener, 5, first=5)
    assert await read_all(log) == sent


async def test_roll_when_metadata_is_away_for_too_long_then_the_log_fails_and_can_be_opened_again(
    start: Start, metadata: CheckedMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.logs.topic_log._AGAIN_S", 0.01)
    monkeypatch.setattr("interpulse.storage.logs.topic_log._STALL_S", 0.05)
    broker = await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)

    async def away() -> None:
        raise MetadataUnavailable("it is away")

    metadata.before_commit = away
    with pytest.raises(MetadataUnavailable):
        await log.roll()
    assert isinstance(listener.error, MetadataUnavailable)
    await log.close()
    assert broker.journal._open == {}
    metadata.before_commit = None
    log, _ = await broker.open()
    assert await read_all(log) == sent


async def test_full_ledger_when_no_other_can_be_created_then_it_grows_on_and_ends_later(
    start: Start, bookies: ScriptedBookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.logs.topic_log._AGAIN_S", 0.01)
    broker = await start(LogConfig(ledger_entries_max=2, ledger_age_min_ms=0))
    log, listener = await broker.open()
    await bookies.unregister(bookies["bookie-0"])
    await fill(log, listener, 5)
    await fill(log, listener, 5, first=5)
    assert len(log.ledgers) == 1
    await bookies.register(bookies["bookie-0"])
    await eventually(lambda: len(log.ledgers) == 2)
    assert listener.error is None
    assert await read_all(log) == [b"%d" % each for each in range(10)]


async def test_ledger_when_its_end_cannot_be_written_then_tried_again_and_read_all_the_same(
    start: Start, ledgers: LedgerMetadataStore, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.logs.topic_log._AGAIN_S", 0.01)
    broker, next_one = await start(), await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    written, tried = nodes.set, 0

    async def away(path: str, *arguments: Any) -> Any:
        nonlocal tried
        tried += 1
        raise NotConnected("nowhere", 1, path)

    monkeypatch.setattr(nodes, "set", away)
    await log.roll()
    sent += await fill(log, listener, 5, first=5)
    await eventually(lambda: tried > 2)
    first = log.ledgers[0].ledger_id
    assert (await state(ledgers, first)).state is LedgerState.OPEN
    assert await read_all(log) == sent
    monkeypatch.setattr(nodes, "set", written)
    await eventually(lambda: first not in broker.journal._open)
    assert (await state(ledgers, first)).closed
    log, _ = await next_one.open()
    assert await read_all(log) == sent


async def test_ledger_when_trimmed_before_its_end_is_written_then_its_log_goes_on(
    start: Start, ledgers: LedgerMetadataStore, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.logs.topic_log._AGAIN_S", 0.01)
    broker = await start()
    log, listener = await broker.open()
    await fill(log, listener, 5)
    tried = 0

    async def away(path: str, *arguments: Any) -> Any:
        nonlocal tried
        tried += 1
        raise NotConnected("nowhere", 1, path)

    monkeypatch.setattr(nodes, "set", away)
    await log.roll()
    await eventually(lambda: tried > 0)
    old, new = (row.ledger_id for row in log.ledgers)
    sent = await fill(log, listener, 5, first=5)
    log.append(b"on its way")
    await log.trim(Position(new, 0))
    assert not await exists(ledgers, old)
    await eventually(lambda: not broker.store._tasks)  # nobody writes its end any more
    sent += [b"on its way", *await fill(log, listener, 5, first=10)]
    assert listener.error is None
    assert await read_all(log) == sent


async def test_log_when_closed_without_zookeeper_then_the_next_one_recovers_its_ledger(
    start: Start, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, next_one = await start(), await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    written = nodes.set

    async def away(path: str, *arguments: Any) -> Any:
        raise NotConnected("nowhere", 1, path)

    monkeypatch.setattr(nodes, "set", away)
    await log.close()
    monkeypatch.setattr(nodes, "set", written)
    log, _ = await next_one.open()
    assert await read_all(log) == sent


async def test_middle_ledger_when_its_end_is_not_recorded_then_the_reader_recovers_it(
    start: Start, ledgers: LedgerMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, next_one = await start(), await start()
    log, listener = await broker.open()

    async def never(ledger_id: int) -> Any:
        raise LedgerFailed(ledger_id, "killed before")

    monkeypatch.setattr(broker.journal, "seal", never)
    sent = await fill(log, listener, 5)
    await log.roll()
    sent += await fill(log, listener, 5, first=5)
    first = log.ledgers[0].ledger_id
    taken, _ = await next_one.open()
    assert (await state(ledgers, first)).state is LedgerState.OPEN
    assert await read_all(taken) == sent
    assert (await state(ledgers, first)).closed


async def test_log_when_too_few_bookies_live_then_it_fails_and_recovers_when_they_return(
    start: Start, bookies: ScriptedBookies
) -> None:
    broker = await start(stall_s=0.05, retry_s=0.02, reconnect_s=0.0)
    log, listener = await broker.open()
    sent = await fill(log, listener, 20)
    for each in ("bookie-0", "bookie-1"):
        await bookies[each].kill()
    log.append(b"nobody has it twice")
    await eventually(lambda: listener.error is not None)
    assert isinstance(listener.error, LedgerFailed)
    with pytest.raises(LogFenced) as fenced:
        log.append(b"x")
    assert fenced.value.cause is FenceCause.FAILED
    assert broker.journal.statistics.failed_groups == 1
    await log.close()
    with pytest.raises(RecoveryStopped):
        await broker.open()
    for each in ("bookie-0", "bookie-1"):
        await bookies[each].start()
    log, listener = await broker.open()
    assert (await read_all(log))[:20] == sent
    await fill(log, listener, 5)


async def test_log_when_a_bookie_is_replaced_while_it_writes_then_it_goes_on(
    start: Start, bookies: ScriptedBookies, ledgers: LedgerMetadataStore
) -> None:
    broker = await start(reconnect_s=0.0)
    log, listener = await broker.open()
    sent = await fill(log, listener, 20)
    await bookies.start()
    await bookies["bookie-1"].kill()
    sent += await fill(log, listener, 20, first=20)
    ledger = log.ledgers[0].ledger_id
    await eventually(lambda: len(broker.journal._open[ledger].writer.metadata.segments) == 2)
    sent += await fill(log, listener, 20, first=40)
    await log.close()
    assert "bookie-1" not in (await state(ledgers, ledger)).last_segment.ensemble
    log, _ = await broker.open()
    assert await read_all(log) == sent


async def test_ledger_when_deleted_by_hand_then_last_is_dropped_and_others_are_damage(
    start: Start, nodes: ZooKeeperClient
) -> None:
    broker, next_one = await start(), await start()
    log, listener = await broker.open()
    for first in (0, 5, 10):
        await fill(log, listener, 5, first=first)
        await log.roll()
    await log.close()
    one, two, three, _ = (row.ledger_id for row in log.ledgers)
    log, listener = await broker.open()
    await log.close()
    for gone in (log.ledgers[-1].ledger_id, two):
        await nodes.delete(path_of(gone))
    log, listener = await next_one.open()
    assert [row.ledger_id for row in log.ledgers][:-1] == [one, two, three]
    assert len(await log.read(Position(one, 0), entries_max=5, bytes_max=99)) == 5
    with pytest.raises(LogDamaged, match=f"ledger {two}: the ledger is missing"):
        await log.read(Position(two, 0), entries_max=5, bytes_max=99)
    assert isinstance(listener.error, LogDamaged)


async def test_entry_when_damaged_everywhere_then_log_damaged_and_when_away_then_read_later(
    start: Start, bookies: ScriptedBookies
) -> None:
    broker = await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    await log.close()
    ledger = log.ledgers[0].ledger_id
    log, listener = await broker.open()
    for bookie in bookies:
        await bookie.kill()
    with pytest.raises(NotReadableNow, match="cannot be read now"):
        await log.read(EARLIEST, entries_max=5, bytes_max=99)
    assert listener.error is None
    for bookie in bookies:
        await bookie.start()
        bookie.old = True
    assert await read_all(log) == sent
    for bookie in bookies:
        bookie.damage(ledger, 3)
    with pytest.raises(LogDamaged, match=f"damaged in entry {ledger}:3: bookie"):
        await log.read(Position(ledger, 3), entries_max=1, bytes_max=99)


async def test_ledger_when_its_end_is_unknown_then_earlier_ones_are_readable(
    start: Start, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await start()
    log, listener = await broker.open()
    sent = await fill(log, listener, 5)
    await log.roll()
    sent += await fill(log, listener, 5, first=5)
    await log.close()
    log, listener = await broker.open()
    second = log.ledgers[1].ledger_id
    read, away = broker.client.recover, {second}

    async def recover(ledger_id: int) -> Any:
        if ledger_id in away:
            raise RecoveryStopped(ledger_id, "too few bookies")
        return await read(ledger_id)

    monkeypatch.setattr(broker.client, "recover", recover)
    broker.journal._readers.clear()
    assert [each.entry for each in await log.read(EARLIEST, entries_max=50, bytes_max=999)] == sent[:5]
    with pytest.raises(NotReadableNow, match="too few bookies"):
        await log.read(Position(second, 0), entries_max=50, bytes_max=999)
    away.clear()
    assert await read_all(log) == sent
    assert listener.error is None


async def test_record_when_its_count_exceeds_the_ledger_then_damage(start: Start, metadata: CheckedMetadata) -> None:
    broker = await start()
    log, listener = await broker.open()
    await fill(log, listener, 5)
    await log.roll()
    await log.close()
    first = log.ledgers[0].ledger_id
    key = f"/managed-ledgers/{NAME}"
    record = await metadata.get(key)
    assert record is not None
    found = RECORDS.decode(record.value)
    wrong = with_ledgers(found, [found.ledgers[0]._replace(entries=9), *found.ledgers[1:]])
    await metadata.commit([Put(key, RECORDS.encode(wrong))])
    log, _ = await broker.open()
    with pytest.raises(LogDamaged, match=f"entry {first}:7: the ledger ends with entry 4"):
        await log.read(Position(first, 7), entries_max=1, bytes_max=99)


async def test_ledgers_when_they_cannot_be_deleted_now_then_later(
    start: Start, ledgers: LedgerMetadataStore, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.bookkeeper.journal._AGAIN_S", 0.01)
    broker = await start()
    log, listener = await broker.open()
    await fill(log, listener, 5)
    await log.roll()
    first = log.ledgers[0].ledger_id
    await eventually(lambda: first not in broker.journal._open)
    delete, tried = nodes.delete, 0

    async def away(path: str, *arguments: Any) -> None:
        nonlocal tried
        tried += 1
        raise NotConnected("nowhere", 1, path)

    monkeypatch.setattr(nodes, "delete", away)
    await log.trim(LATEST)
    await eventually(lambda: tried > 1)
    assert await exists(ledgers, first)
    monkeypatch.setattr(nodes, "delete", delete)
    await eventually(lambda: not broker.journal._undeleted)
    assert not await exists(ledgers, first)
    await eventually(lambda: broker.journal._deleting is None)


async def test_log_when_much_is_on_its_way_then_the_rest_waits_and_comes_in_order(
    start: Start, bookies: ScriptedBookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.storage.bookkeeper.journal._ON_ITS_WAY_ENTRIES", 10)
    broker = await start()
    log, listener = await broker.open()
    await fill(log, listener, 1)
    for bookie in bookies:
        bookie.silent = True
    writer = broker.journal._open[log.ledgers[0].ledger_id].writer
    for group in range(20):
        last = log.append(*(b"%d" % (1 + group * 3 + each) for each in range(3)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert writer.last_appended < 20
    for bookie in bookies:
        bookie.go_on()
    await listener.durable(last)
    assert await read_all(log, entries_max=100) == [b"%d" % each for each in range(61)]
    statistics = broker.journal.statistics
    assert 2 < statistics.groups < 20
    assert (statistics.group_bytes, statistics.failed_groups) == (sum(len(b"%d" % each) for each in range(61)), 0)
    assert statistics.group_seconds.count == statistics.groups
    assert statistics.group_seconds.sum > 0


async def test_entry_when_larger_than_bookies_take_then_the_log_fails_and_says_so(start: Start) -> None:
    broker = await start(frame_bytes_max=1000)
    log, listener = await broker.open()
    sent = await fill(log, listener, 3)
    log.append(b"x" * 2000)
    await eventually(lambda: listener.error is not None)
    assert isinstance(listener.error, EntryTooLarge)
    await log.close()
    log, _ = await broker.open()
    assert await read_all(log) == sent


async def test_listener_when_it_fails_then_its_log_alone_does(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = await start()
    log, listener = await broker.open()

    def broken(last: Position) -> None:
        raise KeyError("broken")

    monkeypatch.setattr(listener, "on_durable", broken)
    log.append(b"x")
    await eventually(lambda: listener.error is not None)
    assert "broken after a write" in str(listener.error)


async def test_terminated_log_when_opened_by_another_then_its_last_ledger_is_recovered(
    start: Start, ledgers: LedgerMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, next_one = await start(), await start()
    log, listener = await broker.open()
    ledger = log.ledgers[0].ledger_id

    async def never(ledger_id: int) -> Any:
        raise LedgerFailed(ledger_id, "killed before")

    monkeypatch.setattr(broker.journal, "seal", never)
    sent = await fill(log, listener, 5)
    assert await log.terminate() == Position(ledger, 4)
    assert (await state(ledgers, ledger)).state is LedgerState.OPEN
    log, _ = await next_one.open()
    assert (await state(ledgers, ledger)).closed
    assert log.terminated
    assert await read_all(log) == sent
    assert [row.entries for row in log.ledgers] == [5]


async def test_compacted_ledger_then_it_says_so_and_has_the_digest_that_readers_of_it_expect(
    start: Start, ledgers: LedgerMetadataStore
) -> None:
    broker = await start()
    ledger_id = await broker.journal.create(NAME, LedgerPurpose(LedgerUse.COMPACTED, Position(27, 19)))
    found = await state(ledgers, ledger_id)
    assert found.digest is DigestType.CRC32
    assert found.custom == {
        "application": b"pulsar",
        "component": b"compacted-ledger",
        "pulsar/compactedTopic": b"persistent://t/n/a/b",
        "pulsar/compactedTo": bytes.fromhex("081b10133000"),
    }

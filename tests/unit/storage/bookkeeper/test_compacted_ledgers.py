"""Compacted ledgers on bookies in the process: their form, and what is left wherever a compaction ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import CompactedLedger, LogDamaged, LogEntry, LogFenced, MetadataUnavailable
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.errors import NoLedger
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted, PulsarTopicRecords
from tests.support.memory_storage import MemoryMetadataStore
from tests.unit.storage.bookkeeper.conftest import Connect
from tests.unit.storage.listeners import Listener

NAME = "t/n/persistent/a%2Fb"


class Pointer:
    """What a cursor would say, and faults at will."""

    def __init__(self) -> None:
        self.named: tuple[int, Position] | None = None
        self.before: Exception | None = None
        """Instead of naming."""
        self.after: Exception | None = None
        """Though it was named."""
        self.tried: list[int] = []
        self.on_name: Callable[[int], Awaitable[None]] | None = None

    async def name(self, ledger: CompactedLedger | None) -> None:
        if ledger is not None:
            self.tried.append(ledger.ledger_id)
            if self.on_name is not None:
                await self.on_name(ledger.ledger_id)
        if self.before is not None:
            raise self.before
        self.named = None if ledger is None else (ledger.ledger_id, ledger.horizon)
        if self.after is not None:
            raise self.after


class Cluster:
    """Brokers that open one log after another."""

    def __init__(self, connect: Connect) -> None:
        self.connect = connect
        self.metadata = MemoryMetadataStore()
        self.pointer = Pointer()
        self.client: BookKeeperClient
        self.stores: list[TopicLogStore] = []

    async def open(self) -> TopicLog:
        """By one more broker; the one before knows nothing of it."""
        self.client = await self.connect()
        journal = BookKeeperJournal(self.client, LogQuorums(Quorum(3, 3, 2)))
        self.stores.append(
            TopicLogStore(self.metadata, journal, codec=PulsarTopicRecords(), compacted_form=PulsarCompacted())
        )
        self.listener = Listener()
        log = await self.stores[-1].open(NAME, self.listener, create=True)
        await log.compacted.follow(self.pointer)
        return log

    async def filled(self, count: int = 10) -> TopicLog:
        log = await self.open()
        await self.listener.durable([log.append(b"payload %d" % number) for number in range(count)][-1])
        return log

    async def exists(self, ledger_id: int) -> bool:
        try:
            await self.client.open(ledger_id)
        except NoLedger:
            return False
        return True


@pytest.fixture
async def cluster(connect: Connect) -> AsyncIterator[Cluster]:
    made = Cluster(connect)
    yield made
    for store in made.stores:
        await store.close()


async def parts(*given: Sequence[LogEntry]) -> AsyncIterator[Sequence[LogEntry]]:
    for part in given:
        yield part


async def compact(log: TopicLog, *kept: int) -> list[LogEntry]:
    """Keep the entries of these numbers."""
    whole = await log.read(EARLIEST, entries_max=1000, bytes_max=10**9)
    entries = [whole[number] for number in kept]
    await log.compacted.replace(log.last_position, parts(entries[:2], [], entries[2:]))
    return entries


async def kept(log: TopicLog) -> list[LogEntry]:
    return await log.compacted.read(EARLIEST, entries_max=1000, bytes_max=10**9)


def current(log: TopicLog) -> CompactedLedger:
    found = log.compacted.current
    assert found is not None
    return found


async def test_compacted_ledger_when_named_then_is_closed_and_in_pulsars_form(cluster: Cluster) -> None:
    log = await cluster.filled()
    closed: list[bool] = []

    async def look(ledger_id: int) -> None:
        closed.append((await cluster.client.open(ledger_id)).metadata.closed)

    cluster.pointer.on_name = look
    entries = await compact(log, 1, 4, 9)
    assert closed == [True]
    ledger_id, horizon = current(log).ledger_id, log.last_position
    reader = await cluster.client.open(ledger_id)
    assert reader.metadata.digest is DigestType.CRC32
    topic = b"persistent://t/n/a/b"
    assert (reader.metadata.custom["pulsar/compactedTopic"], reader.last_confirmed) == (topic, 2)
    assert await reader.read(0, entries_max=9, bytes_max=10**9) == [PulsarCompacted().pack(each) for each in entries]
    assert cluster.pointer.named == (ledger_id, horizon)
    assert (current(log).entries, current(log).size) == (3, reader.metadata.length)


async def test_log_when_another_broker_opens_it_then_has_the_compacted_ledger_and_replaces_it(cluster: Cluster) -> None:
    first = await cluster.filled()
    entries = await compact(first, 1, 4, 9)
    made = current(first)
    log = await cluster.open()
    assert current(log)[:3] == made[:3]
    assert current(log).horizon == made.horizon
    assert await kept(log) == entries
    assert await log.compacted.last() == entries[-1]
    assert await compact(log, 2) == await kept(log)
    assert not await cluster.exists(made.ledger_id)


async def test_compaction_when_cut_off_before_its_ledger_is_closed_then_the_old_one_stays_valid(
    cluster: Cluster,
) -> None:
    log = await cluster.filled()
    entries = await compact(log, 1, 4)
    reached = asyncio.Event()

    async def source() -> AsyncIterator[Sequence[LogEntry]]:
        yield entries[:1]
        reached.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(log.compacted.replace(log.last_position, source()))
    await reached.wait()
    again = await cluster.open()
    assert await kept(again) == entries
    running.cancel()
    await asyncio.wait([running])
    assert await kept(again) == entries


async def test_compaction_when_cut_off_before_its_ledger_is_named_then_the_old_one_stays_valid(
    cluster: Cluster,
) -> None:
    log = await cluster.filled()
    entries = await compact(log, 1, 4)
    old = current(log)
    cluster.pointer.before = MetadataUnavailable("ZooKeeper is away")
    with pytest.raises(MetadataUnavailable):
        await compact(log, 5)
    assert current(log) == old
    assert await kept(log) == entries
    assert await kept(await cluster.open()) == entries


async def test_ledger_when_it_was_named_without_an_answer_then_it_and_the_old_one_stay(cluster: Cluster) -> None:
    log = await cluster.filled()
    entries = await compact(log, 1, 4)
    cluster.pointer.after = MetadataUnavailable("no answer")
    with pytest.raises(MetadataUnavailable):
        await compact(log, 5)
    assert await kept(log) == entries
    again = await cluster.open()
    assert [each.entry for each in await kept(again)] == [b"payload 5"]


async def test_ledgers_when_the_named_one_was_unknown_then_deleted_after_the_next_one(cluster: Cluster) -> None:
    log = await cluster.filled()
    await compact(log, 1, 4)
    tried = cluster.pointer.tried
    cluster.pointer.before = MetadataUnavailable("ZooKeeper is away")
    for _ in range(2):
        with pytest.raises(MetadataUnavailable):
            await compact(log, 5)
    assert [await cluster.exists(each) for each in tried] == [True, True, True]
    cluster.pointer.before = None
    entries = await compact(log, 6)
    assert [await cluster.exists(each) for each in tried] == [False, False, False, True]
    assert await kept(log) == entries


async def test_compaction_when_cut_off_before_the_old_ledger_is_deleted_then_the_new_one_is_valid(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await cluster.filled()
    await compact(log, 1, 4)
    old = current(log).ledger_id

    async def cut_off(ledger_ids: Sequence[int]) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(log._journal, "forget", cut_off)
        with pytest.raises(asyncio.CancelledError):
            await compact(log, 5)
    assert await cluster.exists(old)
    assert [each.entry for each in await kept(await cluster.open())] == [b"payload 5"]


async def test_log_when_its_compacted_ledger_is_missing_then_is_not_opened(cluster: Cluster) -> None:
    log = await cluster.filled()
    await compact(log, 1)
    await log._journal.forget([current(log).ledger_id])
    with pytest.raises(LogDamaged, match="the ledger is missing"):
        await kept(log)
    with pytest.raises(LogFenced):
        log.append(b"x")
    with pytest.raises(LogDamaged, match="the ledger is missing"):
        await cluster.open()


async def test_entry_when_it_is_no_compacted_one_then_the_log_is_damaged(cluster: Cluster) -> None:
    log = await cluster.filled()
    cluster.pointer.named = log.ledgers[0].ledger_id, log.last_position
    log = await cluster.open()
    with pytest.raises(LogDamaged, match=f"compacted ledger {log.ledgers[0].ledger_id}, entries 5 to 5"):
        await kept(log)
    with pytest.raises(LogFenced):
        log.append(b"x")


async def test_drop_when_shared_then_nothing_is_named(cluster: Cluster) -> None:
    log = await cluster.filled()
    await compact(log, 1)
    made = current(log)
    await log.compacted.drop()
    assert cluster.pointer.named is None
    assert log.compacted.current is None
    assert not await cluster.exists(made.ledger_id)

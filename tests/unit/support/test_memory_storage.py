"""Several brokers over one store in memory: sessions of their own, and ledgers that are fenced when another opens."""

from __future__ import annotations

import pytest

from interpulse.model.ids import Position
from interpulse.storage.api import CommitConflict, LogFenced, MetadataUnavailable, Put
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.sessions import SessionState
from tests.support.memory_storage import MemoryJournal, MemoryLedgers, MemoryMetadataStore, MemoryTree, memory_log_store
from tests.support.waiting import eventually

LOG = "t/ns/persistent/x"


class Listener:
    def __init__(self) -> None:
        self.durable: list[Position] = []
        self.failure: Exception | None = None

    def on_durable(self, last: Position) -> None:
        self.durable.append(last)

    def on_log_failed(self, error: Exception) -> None:
        self.failure = error


async def test_session_when_one_of_two_ends_then_only_its_keys_go() -> None:
    tree = MemoryTree()
    first, second = MemoryMetadataStore(tree), MemoryMetadataStore(tree)
    assert first.session.id != second.session.id
    await first.commit([Put("/a", b"1", ephemeral=True)])
    await second.commit([Put("/b", b"2", ephemeral=True)])
    with pytest.raises(CommitConflict):
        await second.commit([Put("/a", b"2", ephemeral=True)])
    told: list[str] = []
    second.watch("/", told.append)
    first.expire_session()
    assert told == ["/a"]
    assert set(await first.get_many(["/a", "/b"])) == {"/b"}
    await second.close()
    assert await first.get("/b") is None


async def test_cut_off_when_the_servers_end_the_session_then_it_notices_last() -> None:
    tree = MemoryTree()
    broker, other = MemoryMetadataStore(tree), MemoryMetadataStore(tree)
    await broker.commit([Put("/lock", b"", ephemeral=True)])
    told: list[str] = []
    broker.watch("/lock", told.append)
    first = broker.session.id
    broker.cut_off()
    assert not broker.session.holds()
    assert not broker.unchanged({"/lock": 1})
    with pytest.raises(MetadataUnavailable):
        await broker.get("/lock")
    broker.expire_unseen()
    await other.commit([Put("/lock", b"", ephemeral=True)], {"/lock": None})
    assert told == []
    broker.reconnect()
    assert (told, broker.session.state, broker.session.id == first) == (["/lock"], SessionState.CONNECTED, False)


async def test_cut_off_when_it_was_short_then_the_session_is_the_same() -> None:
    broker = MemoryMetadataStore()
    await broker.commit([Put("/lock", b"", ephemeral=True)])
    first = broker.session.id
    broker.cut_off()
    broker.reconnect()
    assert broker.session.id == first
    assert await broker.get("/lock") is not None


def two_brokers() -> tuple[TopicLogStore, TopicLogStore]:
    tree, ledgers = MemoryTree(), MemoryLedgers()
    first, second = (
        memory_log_store(MemoryMetadataStore(tree), journal=MemoryJournal(ledgers=ledgers)) for _ in range(2)
    )
    return first, second


async def test_log_when_a_second_broker_opens_it_then_the_first_writes_no_more() -> None:
    first, second = two_brokers()
    was, now = Listener(), Listener()
    old = await first.open(LOG, was, create=True)
    old.append(b"1")
    await eventually(lambda: was.durable)
    new = await second.open(LOG, now, create=False)
    old.append(b"lost")
    new.append(b"2")
    await new.close()
    assert isinstance(was.failure, LogFenced)
    assert len(was.durable) == 1
    await old.abandon()
    again = await first.open(LOG, Listener(), create=False)
    assert [each.entry for each in await again.read(Position(0, 0), entries_max=9, bytes_max=99)] == [b"1", b"2"]


async def test_log_when_abandoned_then_nothing_more_is_announced_and_it_can_be_opened() -> None:
    store, _ = two_brokers()
    listener = Listener()
    log = await store.open(LOG, listener, create=True)
    log.append(b"1")
    await log.abandon()
    assert (listener.durable, listener.failure) == ([], None)
    with pytest.raises(LogFenced):
        log.append(b"2")
    assert (await store.open(LOG, Listener(), create=False)).last_position.entry == -1

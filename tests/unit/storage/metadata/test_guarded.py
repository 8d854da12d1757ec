"""Commits about an open topic rest on the lock of its bundle."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from interpulse.storage.api import CommitConflict, Delete, Put
from interpulse.storage.logs.topic_records import TopicRecords
from interpulse.storage.metadata.guarded import GuardedMetadata, LockLost
from tests.support.memory_storage import MemoryMetadataStore, MemoryTree

LOG = "t/ns/persistent/x"
RECORD = f"/managed-ledgers/{LOG}"
CURSOR = f"{RECORD}/s"
LOCK = "/namespace/t/ns/0x00000000_0xffffffff"


@pytest.fixture
def tree() -> MemoryTree:
    return MemoryTree()


@pytest.fixture
async def store(tree: MemoryTree) -> MemoryMetadataStore:
    """With the record of the log, and the lock of its bundle."""
    store = MemoryMetadataStore(tree)
    await store.commit([Put(LOCK, b"me", ephemeral=True), Put(RECORD, b"{}")])
    return store


@pytest.fixture
async def guarded(store: MemoryMetadataStore) -> GuardedMetadata:
    """The log is open under that lock."""
    guarded = GuardedMetadata(store)
    lock = await store.get(LOCK)
    assert lock is not None
    guarded.bind(LOG, lambda: {LOCK: lock.version})
    return guarded


async def test_commit_when_the_lock_stands_then_is_applied(guarded: GuardedMetadata) -> None:
    await guarded.commit([Put(RECORD, b"1"), Put(CURSOR, b"2")])
    assert set(await guarded.get_many([RECORD, CURSOR])) == {RECORD, CURSOR}


@pytest.mark.parametrize("key", [RECORD, CURSOR])
async def test_commit_when_the_lock_is_gone_then_nothing_is_written(
    guarded: GuardedMetadata, store: MemoryMetadataStore, key: str
) -> None:
    await store.commit([Delete(LOCK)])
    with pytest.raises(LockLost):
        await guarded.commit([Put("/other", b""), Put(key, b"1")])
    assert await store.get("/other") is None


async def test_commit_when_another_broker_has_the_lock_then_nothing_is_written(
    guarded: GuardedMetadata, store: MemoryMetadataStore, tree: MemoryTree
) -> None:
    store.expire_session()
    await MemoryMetadataStore(tree).commit([Put(LOCK, b"another", ephemeral=True)], {LOCK: None})
    with pytest.raises(LockLost):
        await TopicRecords(guarded).change(LOG, lambda record: record or pytest.fail("there is a record"))
    with pytest.raises(LockLost):
        await TopicRecords(guarded).delete(LOG)
    assert await store.get(RECORD) is not None


async def test_commit_when_its_own_expectation_fails_then_is_a_conflict(guarded: GuardedMetadata) -> None:
    with pytest.raises(CommitConflict) as conflict:
        await guarded.commit([Put(RECORD, b"1")], {RECORD: 77})
    assert conflict.value.key == RECORD


@pytest.mark.parametrize("key", ["/admin/x", "/managed-ledgers/t/ns/persistent/xy", "/managed-ledgers/t/ns", LOCK])
async def test_commit_when_it_concerns_another_key_then_needs_no_lock(
    guarded: GuardedMetadata, store: MemoryMetadataStore, key: str
) -> None:
    await store.commit([Delete(LOCK)])
    await guarded.commit([Put(key, b"1")])
    assert await store.get(key) is not None


async def test_commit_when_the_log_is_closed_then_needs_no_lock(
    guarded: GuardedMetadata, store: MemoryMetadataStore
) -> None:
    guarded.unbind(LOG)
    await store.commit([Delete(LOCK)])
    await guarded.commit([Put(RECORD, b"1")])


async def test_record_when_only_written_here_then_is_as_left(
    guarded: GuardedMetadata, store: MemoryMetadataStore
) -> None:
    assert not await guarded.is_as_left(LOG)
    await guarded.remember(LOG)
    assert await guarded.is_as_left(LOG)
    await guarded.commit([Put(RECORD, b"1"), Put(CURSOR, b"")])
    assert await guarded.is_as_left(LOG)
    await store.commit([Put(RECORD, b"1")])
    assert not await guarded.is_as_left(LOG)


async def test_commit_when_the_broker_is_not_sure_of_the_lock_then_the_store_is_not_asked(
    store: MemoryMetadataStore,
) -> None:
    guarded = GuardedMetadata(store)

    def unsure() -> Mapping[str, int]:
        raise LockLost("it may be lost")

    guarded.bind(LOG, unsure)
    with pytest.raises(LockLost):
        await guarded.commit([Put(RECORD, b"1")])
    found = await store.get(RECORD)
    assert found is not None
    assert found.value == b"{}"

"""One suite over both places of schemas, and what is special about ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.ledger_schemas import LedgerSchemas
from interpulse.broker.topics.schema_store import History, RecordedSchemas, SchemaStore
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import CommitConflict, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.records import Quorum
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("persistent://t/n/x")
FIRST = SchemaVersion(0, SchemaInfo(SchemaType.AVRO, b"one", {"a": "b"}), 5)
DELETION = SchemaVersion(1, None, 6)


class Ledger:
    def __init__(self, ledger_id: int, custom: Mapping[str, bytes]) -> None:
        self.ledger_id = ledger_id
        self.custom = custom
        self.entries: list[bytes] = []
        self.closed = False
        self.reads = 0

    async def add(self, payload: bytes) -> int:
        self.entries.append(payload)
        return len(self.entries) - 1

    async def close(self) -> None:
        self.closed = True

    async def read(self, first: int, *, entries_max: int, bytes_max: int) -> list[bytes]:
        assert self.closed
        self.reads += 1
        return self.entries[first : first + entries_max]


class Ledgers:
    def __init__(self) -> None:
        self.there: dict[int, Ledger] = {}
        self.ids = count(1)

    async def create(self, quorum: Quorum, *, custom: Mapping[str, bytes] | None = None) -> Ledger:
        ledger = Ledger(next(self.ids), custom or {})
        self.there[ledger.ledger_id] = ledger
        return ledger

    async def open(self, ledger_id: int) -> Ledger:
        return self.there[ledger_id]

    async def delete(self, ledger_id: int) -> None:
        del self.there[ledger_id]


@pytest.fixture
def metadata() -> MemoryMetadataStore:
    return MemoryMetadataStore()


@pytest.fixture
def ledgers() -> Ledgers:
    return Ledgers()


@pytest.fixture(params=["record", "ledgers"])
def store(request: Any, metadata: MemoryMetadataStore, ledgers: Ledgers) -> SchemaStore:
    if request.param == "record":
        return RecordedSchemas(metadata)
    return LedgerSchemas(metadata, ledgers, Quorum(2, 2, 2))


async def test_history_when_versions_are_added_then_has_them_in_order(store: SchemaStore) -> None:
    assert await store.read(X) == History()
    await store.append(X, History(), FIRST, {})
    history = await store.read(X)
    assert list(history.versions) == [FIRST]
    await store.append(X, history, DELETION, {})
    assert list((await store.read(X)).versions) == [FIRST, DELETION]
    assert await store.read(X.partition(3)) == await store.read(X)


async def test_version_when_another_was_faster_then_is_not_added(store: SchemaStore) -> None:
    await store.append(X, History(), FIRST, {})
    with pytest.raises(CommitConflict):
        await store.append(X, History(), FIRST, {})
    assert list((await store.read(X)).versions) == [FIRST]


async def test_version_when_something_else_has_changed_then_is_not_added(
    store: SchemaStore, metadata: MemoryMetadataStore, ledgers: Ledgers
) -> None:
    await metadata.commit([Put("/policies", b"")])
    with pytest.raises(CommitConflict):
        await store.append(X, History(), FIRST, {"/policies": None})
    assert await store.read(X) == History()
    assert ledgers.there == {}


async def test_history_when_forgotten_then_is_empty(store: SchemaStore, ledgers: Ledgers) -> None:
    await store.append(X, History(), FIRST, {})
    await store.forget(X)
    assert await store.read(X) == History()
    assert ledgers.there == {}
    await store.forget(X)


async def test_ledger_of_a_version_says_what_it_is_and_is_read_once(
    metadata: MemoryMetadataStore, ledgers: Ledgers
) -> None:
    await LedgerSchemas(metadata, ledgers, Quorum(2, 2, 2)).append(X, History(), FIRST, {})
    (ledger,) = ledgers.there.values()
    assert ledger.custom == {"component": b"schema", "application": b"pulsar", "pulsar/schemaId": b"t/n/x"}
    schemas = LedgerSchemas(metadata, ledgers, Quorum(2, 2, 2))
    for _ in range(3):
        await schemas.read(X)
    assert ledger.reads == 1


async def test_locator_or_entry_that_cannot_be_understood_is_refused_with_the_topic(
    metadata: MemoryMetadataStore, ledgers: Ledgers
) -> None:
    schemas = LedgerSchemas(metadata, ledgers, Quorum(2, 2, 2))
    await schemas.append(X, History(), FIRST, {})
    (ledger,) = ledgers.there.values()
    ledger.entries = [b"{}"]
    with pytest.raises(MetadataUnavailable, match="version 0 of the schema of persistent://t/n/x is invalid"):
        await schemas.read(X)
    await metadata.commit([Put(keys.schema(X), b"{}")])
    with pytest.raises(MetadataUnavailable, match="the schemas of persistent://t/n/x are invalid"):
        await schemas.read(X)

"""The schema store: versions, races, deletion, the switches of broker and namespace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from itertools import count
from typing import Any, cast

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.ledger_schemas import LedgerSchemas
from interpulse.broker.topics.schemas import History, RecordedSchemas, Schemas, SchemaStore
from interpulse.model.errors import IncompatibleSchema, NamespaceNotFound, SchemaNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import CommitConflict, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.records import Quorum
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("persistent://t/n/x")
FIRST = SchemaVersion(0, SchemaInfo(SchemaType.AVRO, b"one", {"a": "b"}), 5)
DELETION = SchemaVersion(1, None, 6)

TOPIC = TopicName.parse("persistent://public/default/flights-partition-2")
AVRO = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"a","fields":[]}', {"k": "v"}, "a")
AVRO_2 = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"b","fields":[]}')
GROWN = SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"a","fields":[{"name":"f","type":"int"}]}')
STRING = SchemaInfo(SchemaType.STRING)
CLIENT, ADMIN, REPLICATOR = Requester.CLIENT, Requester.ADMIN, Requester.REPLICATOR


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
    return LedgerSchemas(metadata, cast(BookKeeperClient, ledgers), Quorum(2, 2, 2))


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
    await LedgerSchemas(metadata, cast(BookKeeperClient, ledgers), Quorum(2, 2, 2)).append(X, History(), FIRST, {})
    (ledger,) = ledgers.there.values()
    assert ledger.custom == {"component": b"schema", "application": b"pulsar", "pulsar/schemaId": b"t/n/x"}
    schemas = LedgerSchemas(metadata, cast(BookKeeperClient, ledgers), Quorum(2, 2, 2))
    for _ in range(3):
        await schemas.read(X)
    assert ledger.reads == 1


async def test_locator_or_entry_that_cannot_be_understood_is_refused_with_the_topic(
    metadata: MemoryMetadataStore, ledgers: Ledgers
) -> None:
    schemas = LedgerSchemas(metadata, cast(BookKeeperClient, ledgers), Quorum(2, 2, 2))
    await schemas.append(X, History(), FIRST, {})
    (ledger,) = ledgers.there.values()
    ledger.entries = [b"{}"]
    with pytest.raises(MetadataUnavailable, match="version 0 of the schema of persistent://t/n/x is invalid"):
        await schemas.read(X)
    await metadata.commit([Put(keys.schema(X), b"{}")])
    with pytest.raises(MetadataUnavailable, match="the schemas of persistent://t/n/x are invalid"):
        await schemas.read(X)


class OneNamespace:
    def __init__(self, policies: NamespacePolicies) -> None:
        self.policies = policies

    async def get_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        if str(namespace) not in ("public/default", "pulsar/system"):
            raise NamespaceNotFound(f"Namespace {namespace} does not exist")
        return self.policies

    async def expected_versions(self, namespace: NamespaceName) -> dict[str, int]:
        return {}


class SchemasBench:
    """A schema store whose policies and settings a test can change."""

    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.namespace = OneNamespace(NamespacePolicies())
        self.settings = BrokerConfig()
        self.schemas = Schemas(self.store, cast("Namespaces", self.namespace), lambda: self.settings, FakeClock(1.234))

    def policies(self, **values: object) -> None:
        self.namespace.policies = NamespacePolicies().changed(**values)

    async def topic_policies(self, policies: TopicPolicies) -> None:
        await self.store.commit([Put(keys.topic_policies(TOPIC), TopicPolicyRecord(policies).dump())])


@pytest.fixture
def bench() -> SchemasBench:
    return SchemasBench()


async def test_register_when_schemas_differ_then_versions_are_consecutive(bench: SchemasBench) -> None:
    versions = [await bench.schemas.register(TOPIC, schema, by=CLIENT) for schema in (AVRO, AVRO_2, AVRO)]
    assert versions == [0, 1, 0]
    assert await bench.schemas.get(TOPIC.base) == (AVRO_2, 1)
    assert await bench.schemas.get(TopicName.parse("non-persistent://public/default/flights"), 0) == (AVRO, 0)


async def test_register_when_stored_then_lies_under_pulsars_key_as_json(bench: SchemasBench) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    stored = await bench.store.get("/schemas/public/default/flights")
    assert stored is not None
    body = json.loads(stored.value)["versions"][0]
    assert (body["version"], body["type"], body["timestamp"], body["deleted"]) == (0, "AVRO", 1234, False)


async def test_register_when_many_race_then_each_schema_gets_one_version(bench: SchemasBench) -> None:
    schemas = [SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"n%d","fields":[]}' % n) for n in range(8)] * 2
    versions = await asyncio.gather(*(bench.schemas.register(TOPIC, schema, by=CLIENT) for schema in schemas))
    assert versions[:8] == versions[8:]
    assert sorted(versions[:8]) == list(range(8))


async def test_register_when_namespace_is_missing_then_refused(bench: SchemasBench) -> None:
    with pytest.raises(NamespaceNotFound):
        await bench.schemas.register(TopicName.parse("a/b/c"), AVRO, by=CLIENT)


async def test_get_when_nothing_is_registered_then_not_found(bench: SchemasBench) -> None:
    for version in (None, 0):
        with pytest.raises(SchemaNotFound, match="Topic not found or no-schema"):
            await bench.schemas.get(TOPIC, version)


async def test_delete_when_repeated_then_each_marker_takes_a_version(bench: SchemasBench) -> None:
    assert await bench.schemas.delete(TOPIC) == 0
    assert await bench.schemas.register(TOPIC, AVRO, by=CLIENT) == 1
    assert await bench.schemas.delete(TOPIC) == 2
    for version in (None, 1, 2):
        with pytest.raises(SchemaNotFound):
            await bench.schemas.get(TOPIC, version)
    assert await bench.schemas.version_of(TOPIC, AVRO) is None
    assert [entry.version for entry in await bench.schemas.versions(TOPIC)] == [0, 1, 2]


async def test_delete_when_forced_then_history_starts_again(bench: SchemasBench) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    assert await bench.schemas.delete(TOPIC, force=True) == -1
    assert await bench.store.get(keys.schema(TOPIC)) is None
    assert await bench.schemas.register(TOPIC, STRING, by=CLIENT) == 0


@pytest.mark.parametrize(
    ("broker_allows", "namespace_allows", "with_replicator", "by", "admitted"),
    [
        (True, None, True, CLIENT, True),
        (True, False, True, CLIENT, False),
        (False, None, True, CLIENT, False),
        (False, True, True, CLIENT, True),
        (False, None, True, ADMIN, True),
        (False, None, True, REPLICATOR, True),
        (False, None, False, REPLICATOR, False),
        (True, False, False, REPLICATOR, False),
    ],
)
async def test_register_when_switches_say_so_then_admitted(
    bench: SchemasBench,
    broker_allows: bool,
    namespace_allows: bool | None,
    with_replicator: bool,
    by: Requester,
    admitted: bool,
) -> None:
    bench.settings = BrokerConfig(is_allow_auto_update_schema_enabled=broker_allows)
    bench.policies(allow_auto_update_schema=namespace_allows, allow_auto_update_schema_with_replicator=with_replicator)
    if admitted:
        assert await bench.schemas.register(TOPIC, AVRO, by=by) == 0
    else:
        with pytest.raises(IncompatibleSchema, match="schema auto updating is disabled"):
            await bench.schemas.register(TOPIC, AVRO, by=by)


async def test_register_when_topic_is_a_system_topic_then_switches_do_not_count(bench: SchemasBench) -> None:
    bench.settings = BrokerConfig(is_allow_auto_update_schema_enabled=False)
    topic = TopicName.parse("public/default/__change_events")
    assert await bench.schemas.register(topic, AVRO, by=CLIENT) == 0
    assert await bench.schemas.register(topic, STRING, by=CLIENT) == 1


@pytest.mark.parametrize(
    ("policies", "refused"),
    [
        ({}, True),
        ({"schema_compatibility_strategy": "ALWAYS_COMPATIBLE"}, False),
        ({"other": {"schema_auto_update_compatibility_strategy": "AlwaysCompatible"}}, False),
        ({"other": {"schema_auto_update_compatibility_strategy": "Full"}}, True),
    ],
)
async def test_register_when_type_changes_then_strategy_of_the_namespace_decides(
    bench: SchemasBench, policies: dict[str, object], refused: bool
) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    bench.policies(**policies)
    if refused:
        with pytest.raises(IncompatibleSchema):
            await bench.schemas.register(TOPIC, STRING, by=CLIENT)
    else:
        assert await bench.schemas.register(TOPIC, STRING, by=CLIENT) == 1


async def test_producer_when_without_schema_then_refused_only_if_enforced_and_topic_has_one(
    bench: SchemasBench,
) -> None:
    bench.policies(schema_validation_enforced=True)
    assert await bench.schemas.admit_producer(TOPIC, None, by=CLIENT) is None
    assert await bench.schemas.admit_producer(TOPIC, AVRO, by=CLIENT) == 0
    with pytest.raises(IncompatibleSchema):
        await bench.schemas.admit_producer(TOPIC, None, by=CLIENT)
    bench.policies()
    assert await bench.schemas.admit_producer(TOPIC, None, by=CLIENT) is None
    bench.settings = BrokerConfig(is_schema_validation_enforced=True)
    with pytest.raises(IncompatibleSchema):
        await bench.schemas.admit_producer(TOPIC, None, by=CLIENT)


async def test_producer_when_its_topic_says_something_about_schemas_then_the_namespace_is_not_asked(
    bench: SchemasBench,
) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    bench.policies(schema_validation_enforced=True)
    await bench.topic_policies(TopicPolicies(schema_validation_enforced=False))
    assert await bench.schemas.admit_producer(TOPIC, None, by=CLIENT) is None
    bench.policies()
    await bench.topic_policies(TopicPolicies(schema_validation_enforced=True))
    with pytest.raises(IncompatibleSchema):
        await bench.schemas.admit_producer(TOPIC, None, by=CLIENT)


async def test_register_when_its_topic_has_a_strategy_then_that_decides(bench: SchemasBench) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    bench.policies(schema_compatibility_strategy="ALWAYS_INCOMPATIBLE")
    with pytest.raises(IncompatibleSchema):
        await bench.schemas.register(TOPIC, GROWN, by=CLIENT)
    await bench.topic_policies(TopicPolicies(schema_compatibility_strategy="ALWAYS_COMPATIBLE"))
    assert await bench.schemas.strategy(TOPIC) == "ALWAYS_COMPATIBLE"
    assert await bench.schemas.register(TOPIC, GROWN, by=CLIENT) == 1


async def test_consumer_when_topic_is_idle_then_its_schema_is_registered(bench: SchemasBench) -> None:
    await bench.schemas.admit_consumer(TOPIC, AVRO, topic_active=False)
    assert await bench.schemas.get(TOPIC) == (AVRO, 0)


async def test_consumer_when_topic_is_active_without_schema_then_refused(bench: SchemasBench) -> None:
    with pytest.raises(IncompatibleSchema, match="Failed to add schema to an active topic with empty"):
        await bench.schemas.admit_consumer(TOPIC, AVRO, topic_active=True)


async def test_consumer_when_topic_has_a_schema_then_checked_and_never_registered(bench: SchemasBench) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    await bench.schemas.admit_consumer(TOPIC, AVRO_2, topic_active=True)
    assert await bench.schemas.get(TOPIC) == (AVRO, 0)
    with pytest.raises(IncompatibleSchema):
        await bench.schemas.admit_consumer(TOPIC, STRING, topic_active=False)


@pytest.mark.parametrize(
    ("policies", "strategy", "compatible"),
    [
        ({}, "FULL", False),
        ({"schema_compatibility_strategy": "FORWARD"}, "FORWARD", True),
        ({"schema_compatibility_strategy": "BACKWARD_TRANSITIVE"}, "BACKWARD_TRANSITIVE", False),
        ({"other": {"schema_auto_update_compatibility_strategy": "Forward"}}, "FORWARD", True),
    ],
)
async def test_check_when_asked_then_strategy_of_the_namespace_decides_and_nothing_is_stored(
    bench: SchemasBench, policies: dict[str, object], strategy: str, compatible: bool
) -> None:
    await bench.schemas.register(TOPIC, AVRO, by=CLIENT)
    bench.policies(**policies, allow_auto_update_schema=False)
    assert await bench.schemas.strategy(TOPIC) == strategy
    if compatible:
        assert await bench.schemas.check(TOPIC, GROWN) == strategy
    else:
        with pytest.raises(IncompatibleSchema, match=f"strategy {strategy}"):
            await bench.schemas.check(TOPIC, GROWN)
    assert await bench.schemas.get(TOPIC) == (AVRO, 0)


async def test_check_when_namespace_is_missing_then_says_so(bench: SchemasBench) -> None:
    with pytest.raises(NamespaceNotFound):
        await bench.schemas.check(TopicName.parse("a/b/c"), AVRO)


async def test_register_when_races_break_compatibility_then_the_loser_is_compared_with_the_winner(
    bench: SchemasBench,
) -> None:
    bench.policies(schema_compatibility_strategy="FULL")
    fields = (b'{"name":"f","type":"int"}', b'{"name":"f","type":"string"}')
    schemas = [SchemaInfo(SchemaType.AVRO, b'{"type":"record","name":"a","fields":[%s]}' % each) for each in fields]
    registrations = (bench.schemas.register(TOPIC, schema, by=CLIENT) for schema in schemas)
    outcomes = await asyncio.gather(*registrations, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IncompatibleSchema", "int"]
    assert len(await bench.schemas.versions(TOPIC)) == 1

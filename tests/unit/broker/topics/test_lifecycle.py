"""The loop: read, decide, commit if unchanged, over a metadata store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.cluster_links import RemotePartitions
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import (
    AlreadyExists,
    Conflict,
    MetadataError,
    NamespaceNotFound,
    TopicInconsistent,
    TopicLimitReached,
    TopicNotFound,
)
from interpulse.model.ids import Position
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.model.policies.policy_records import PARTITIONED
from interpulse.model.topics import Existence, PartitionedTopicMetadata, Requester, TopicKind
from interpulse.storage.api import Change, Delete, Put
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, JSON_CURSORS, CursorRecord
from tests.support.counting_store import CountingStore
from tests.support.memory_storage import MemoryMetadataStore

PARTITIONED_4 = BrokerConfig(allow_auto_topic_creation_type=PARTITIONED, default_num_partitions=4)
X = TopicName.parse("x")


class Broker:
    """A lifecycle over a bootstrapped store; ``settings`` may be replaced while it runs."""

    def __init__(self, store: MemoryMetadataStore) -> None:
        self.store = store
        self.settings = BrokerConfig()
        self.loaded: set[TopicName] = set()
        self.namespaces = Namespaces(store, local_cluster="east")
        self.lifecycle = TopicLifecycle(store, self.namespaces, lambda: self.settings, loaded=self.loaded)


class Interloper(MemoryMetadataStore):
    """A store in which another one commits right before our first commit."""

    def __init__(self, intrusion: Sequence[Change]) -> None:
        super().__init__()
        self.intrusion = intrusion
        self.armed = False

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        if self.armed:
            self.armed = False
            await super().commit(self.intrusion)
        await super().commit(changes, expect)


class OneRemote:
    """A remote cluster that has every topic with so many partitions."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.asked: list[tuple[TopicName, Sequence[str]]] = []

    async def find(self, name: TopicName, clusters: Sequence[str]) -> int | None:
        self.asked.append((name, clusters))
        return self.partitions


@pytest.fixture
async def broker() -> Broker:
    return await start(MemoryMetadataStore())


async def start(store: MemoryMetadataStore) -> Broker:
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return Broker(store)


@pytest.mark.parametrize("create", [False, True])
async def test_partitions_for_an_operator_are_one_read(create: bool) -> None:
    store = CountingStore()
    broker = await start(store)
    await broker.lifecycle.create_partitioned(X, 3, properties={"owner": "ops"})
    store.forget()
    found = await broker.lifecycle.partitions_for_operator(X, create=create)
    assert found == PartitionedTopicMetadata(3, properties={} if create else {"owner": "ops"})
    assert store.reads == 1


async def test_partitions_when_a_remote_cluster_has_the_topic_are_those_and_it_is_asked_once() -> None:
    store, remote = MemoryMetadataStore(), OneRemote(5)
    broker = await start(store)
    clusters = ("east", "west")
    await broker.namespaces.update_policies(PUBLIC_DEFAULT, lambda each: each.changed(replication_clusters=clusters))
    lifecycle = TopicLifecycle(store, broker.namespaces, BrokerConfig, remote_partitions=cast(RemotePartitions, remote))
    assert [await lifecycle.partitions(X, create=create) for create in (True, True, False)] == [5, 5, 5]
    assert remote.asked == [(X, ("west",))]


async def test_partitions_when_created_on_demand_are_remembered(broker: Broker) -> None:
    broker.settings = PARTITIONED_4
    assert await broker.lifecycle.partitions(X, create=True) == 4
    assert await broker.lifecycle.partitions(X, create=False) == 4
    assert await broker.lifecycle.metadata(X) == PartitionedTopicMetadata(4)
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False) == []


async def test_partitions_when_the_race_is_lost_are_those_of_the_winner() -> None:
    winner = Put(keys.partitioned_topic(X), PartitionedTopicMetadata(7).dump())
    store = Interloper([winner])
    broker = await start(store)
    broker.settings, store.armed = PARTITIONED_4, True
    assert await broker.lifecycle.partitions(X, create=True) == 7


async def test_open_when_the_namespace_is_deleted_meanwhile_leaves_nothing_behind() -> None:
    store = Interloper([])
    broker = await start(store)
    policies = await broker.namespaces.get_policies(PUBLIC_DEFAULT)
    store.intrusion = [Put(keys.namespace_policies(PUBLIC_DEFAULT), policies.changed(deleted=True).dump())]
    store.armed = True
    with pytest.raises(TopicNotFound):
        await broker.lifecycle.open(X, by=Requester.CLIENT, create=True)
    assert await store.get(keys.topic_record(X)) is None


async def test_open_creates_the_record_once(broker: Broker) -> None:
    await asyncio.gather(*(broker.lifecycle.open(X, by=Requester.CLIENT, create=True) for _ in range(20)))
    assert await broker.lifecycle.existence(X) == Existence(TopicKind.NON_PARTITIONED)
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False) == [X]


async def test_create_partitioned_stores_metadata_records_and_properties(broker: Broker) -> None:
    await broker.lifecycle.create_partitioned(X, 2, properties={"k": "v"})
    assert await broker.lifecycle.properties(X) == {"k": "v"}
    assert await broker.lifecycle.list_partitioned(PUBLIC_DEFAULT, "persistent", include_system=False) == [X]
    topics = await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False)
    assert topics == [X.partition(0), X.partition(1)]
    with pytest.raises(TopicInconsistent):
        await broker.lifecycle.open(X, by=Requester.CLIENT, create=True)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"env": "prod"}, ["plain", "x-partition-0", "x-partition-1"]),
        ({"env": "prod", "team": "a"}, ["x-partition-0", "x-partition-1"]),
        ({"env": "pro"}, []),
        ({"owner": "prod"}, []),
    ],
)
async def test_properties_when_topics_are_chosen_by_them_then_all_have_to_be_there(
    broker: Broker, wanted: dict[str, str], found: list[str]
) -> None:
    lifecycle = broker.lifecycle
    await lifecycle.create_partitioned(X, 2, properties={"env": "prod", "team": "a"})
    for name, properties in {"plain": {"env": "prod"}, "test": {"env": "test"}, "none": {}}.items():
        await lifecycle.create_plain(TopicName.parse(f"public/default/{name}"), properties=properties)
    names = await lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False)
    chosen = await lifecycle.having_properties(names, wanted)
    assert [each.local_name for each in chosen] == found


async def test_create_partitioned_when_a_partition_appears_meanwhile_keeps_it() -> None:
    store = Interloper([Put(keys.topic_record(X.partition(1)), b'{"ledgers": [], "properties": {"mine": "1"}}')])
    broker = await start(store)
    store.armed = True
    await broker.lifecycle.create_partitioned(X, 3)
    assert await broker.lifecycle.properties(X.partition(1)) == {"mine": "1"}


@pytest.mark.parametrize("operation", ["create", "expand", "restore"])
async def test_partition_when_deleted_while_others_are_created_then_it_is_created_too(operation: str) -> None:
    deleted, missing = X.partition(1), X.partition(2)
    store = Interloper([Delete(keys.topic_record(deleted))])
    broker = await start(store)
    await broker.lifecycle.create_partitioned(X, 3)
    gone = {"create": keys.partitioned_topic(X), "expand": "", "restore": keys.topic_record(missing)}[operation]
    await store.commit([Delete(gone)] if gone else [])
    store.armed = True
    if operation == "create":
        await broker.lifecycle.create_partitioned(X, 4)
    elif operation == "expand":
        await broker.lifecycle.expand(X, 4)
    else:
        await broker.lifecycle.create_missed_partitions(X)
    topics = await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False)
    assert deleted in topics
    assert missing in topics


async def test_create_plain_keeps_names_that_need_encoding(broker: Broker) -> None:
    name = TopicName.parse("public/default/a b+c%ü")
    await broker.lifecycle.create_plain(name, properties={"k": "v"})
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False) == [name]
    assert await broker.lifecycle.properties(name) == {"k": "v"}
    with pytest.raises(AlreadyExists):
        await broker.lifecycle.create_plain(name)


async def test_expand_gives_new_partitions_the_subscriptions_of_the_first(broker: Broker) -> None:
    await broker.lifecycle.create_partitioned(X, 1)
    first = keys.topic_record(X.partition(0))
    acknowledged = CursorRecord(Position(3, 5), ((3, 7, 8),), properties={"k": "v"}, replicate_state=True)
    own = (DEDUPLICATION_CURSOR, "pulsar.repl.west")
    cursors = {"sub": acknowledged, **dict.fromkeys(own, CursorRecord())}
    await broker.store.commit(
        [Put(f"{first}/{name}", JSON_CURSORS.encode(name, record)) for name, record in cursors.items()]
    )
    await broker.lifecycle.expand(X, 3)
    assert await broker.lifecycle.partitions(X, create=False) == 3
    for index in (1, 2):
        key = keys.topic_record(X.partition(index))
        assert await broker.store.children(key) == ["sub"]
        assert await cursor(broker.store, f"{key}/sub") == CursorRecord(properties={"k": "v"}, replicate_state=True)


async def test_expand_by_force_takes_a_stored_partition_over_at_its_end_and_keeps_its_cursors(broker: Broker) -> None:
    await broker.lifecycle.create_partitioned(X, 1)
    taken = keys.topic_record(X.partition(2))
    mine = CursorRecord(Position(9, 1))
    await broker.store.commit(
        [
            *(
                Put(f"{keys.topic_record(X.partition(0))}/{name}", JSON_CURSORS.encode("sub", CursorRecord()))
                for name in ("a", "b")
            ),
            Put(taken, b'{"ledgers":[{"ledgerId":4},{"ledgerId":9,"entries":3}],"properties":{}}'),
            Put(f"{taken}/b", JSON_CURSORS.encode("sub", mine)),
        ]
    )
    with pytest.raises(Conflict, match="partition 2"):
        await broker.lifecycle.expand(X, 3)
    await broker.lifecycle.expand(X, 3, force=True)
    assert await cursor(broker.store, f"{taken}/a") == CursorRecord(Position(10, -1))
    assert await cursor(broker.store, f"{taken}/b") == mine
    assert await cursor(broker.store, f"{keys.topic_record(X.partition(1))}/a") == CursorRecord()


async def test_expand_by_force_when_the_stored_partition_is_deleted_meanwhile_makes_a_new_one() -> None:
    taken, first = keys.topic_record(X.partition(1)), keys.topic_record(X.partition(0))
    store = Interloper([Delete(taken)])
    broker = await start(store)
    await broker.lifecycle.create_partitioned(X, 1)
    await store.commit(
        [Put(taken, b'{"ledgers":[{"ledgerId":4}]}'), Put(f"{first}/a", JSON_CURSORS.encode("sub", CursorRecord()))]
    )
    store.armed = True
    await broker.lifecycle.expand(X, 2, force=True)
    record = await store.get(taken)
    assert record is not None
    assert b"ledgerId" not in record.value
    assert await cursor(store, f"{taken}/a") == CursorRecord()


async def cursor(store: MemoryMetadataStore, key: str) -> CursorRecord | None:
    stored = await store.get(key)
    return JSON_CURSORS.decode("sub", stored.value) if stored else None


async def test_topic_limit_counts_stored_topics_of_the_namespace(broker: Broker) -> None:
    await broker.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(max_topics_per_namespace=2))
    await broker.lifecycle.create_plain(TopicName.parse("a"))
    with pytest.raises(TopicLimitReached):
        await broker.lifecycle.create_partitioned(X, 2)
    await broker.lifecycle.create_partitioned(X, 1)


async def test_topic_limit_of_a_topic_that_is_not_stored_counts_its_own_partitions_only(broker: Broker) -> None:
    broker.settings = BrokerConfig(max_topics_per_namespace=2)
    await broker.lifecycle.create_partitioned(X, 2)
    unstored = TopicName.parse("non-persistent://public/default/x")
    with pytest.raises(TopicLimitReached):
        await broker.lifecycle.create_partitioned(unstored, 3)
    await broker.lifecycle.create_partitioned(unstored, 2)
    assert await broker.lifecycle.partitions(unstored, create=False) == 2


async def test_non_persistent_topic_exists_while_it_is_loaded(broker: Broker) -> None:
    name = TopicName.parse("non-persistent://public/default/x")
    await broker.lifecycle.open(name, by=Requester.CLIENT, create=True)
    with pytest.raises(TopicNotFound):
        await broker.lifecycle.partitions(name, create=False)
    broker.loaded.add(name)
    assert await broker.lifecycle.partitions(name, create=False) == 0
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "non-persistent", include_system=False) == [name]


async def test_set_properties_keeps_the_rest_of_the_record(broker: Broker) -> None:
    await broker.store.commit([Put(keys.topic_record(X), b'{"ledgers": [{"ledgerId": 3}], "properties": {"a": "1"}}')])
    await broker.lifecycle.set_properties(X, lambda old: old | {"b": "2"})
    record = await broker.store.get(keys.topic_record(X))
    assert record is not None
    assert record.value == b'{"ledgers": [{"ledgerId": 3}], "properties": {"a": "1", "b": "2"}}'


async def test_set_properties_of_a_partitioned_topic_keeps_its_count(broker: Broker) -> None:
    await broker.lifecycle.create_partitioned(X, 3, properties={"a": "1"})
    await broker.lifecycle.set_properties(X, lambda old: old | {"b": "2"})
    assert await broker.lifecycle.metadata(X) == PartitionedTopicMetadata(3, properties={"a": "1", "b": "2"})


async def test_system_topics_are_listed_only_when_asked_for(broker: Broker) -> None:
    system = TopicName.parse("__change_events")
    await broker.lifecycle.open(system, by=Requester.CLIENT, create=True)
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=False) == []
    assert await broker.lifecycle.list_topics(PUBLIC_DEFAULT, "persistent", include_system=True) == [system]


async def test_a_namespace_that_does_not_exist_is_named(broker: Broker) -> None:
    name = TopicName.parse("persistent://public/nowhere/x")
    with pytest.raises(NamespaceNotFound, match="public/nowhere"):
        await broker.lifecycle.partitions(name, create=True)
    assert (
        await broker.lifecycle.list_topics(NamespaceName("public", "nowhere"), "persistent", include_system=True) == []
    )


@pytest.mark.parametrize("stored", [b"", b"{", b"[]", b'{"partitions": null}', b"\xff"])
async def test_partition_metadata_that_cannot_be_understood_is_told_as_such(broker: Broker, stored: bytes) -> None:
    await broker.store.commit([Put(keys.partitioned_topic(X), stored)])
    with pytest.raises(MetadataError, match=f"{X} has partition metadata that cannot be understood"):
        await broker.lifecycle.partitions(X, create=True)
    with pytest.raises(MetadataError, match=f"{X} has"):
        await broker.lifecycle.metadata(X)


async def test_unfinished_deletions_when_a_record_cannot_be_understood_then_the_others_are_found(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    marked = TopicName.parse("y")
    deleted = PartitionedTopicMetadata(2, deleted=True).dump()
    broken = Put(keys.partitioned_topic(X), b'{"partitions": true')
    await broker.store.commit([broken, Put(keys.partitioned_topic(marked), deleted)])
    assert await broker.lifecycle.unfinished_deletions() == [marked]
    assert f"{X} has partition metadata that cannot be understood" in caplog.text


OPERATIONS: dict[str, Callable[[TopicLifecycle], Awaitable[object]]] = {
    "ask": lambda lifecycle: lifecycle.partitions(TopicName.parse("w"), create=True),
    "open": lambda lifecycle: lifecycle.open(TopicName.parse("n"), by=Requester.CLIENT, create=True),
    "create-plain": lambda lifecycle: lifecycle.create_plain(TopicName.parse("p")),
    "create-partitioned": lambda lifecycle: lifecycle.create_partitioned(X, 3),
    "create-missed-partitions": lambda lifecycle: lifecycle.create_missed_partitions(TopicName.parse("w")),
    "expand": lambda lifecycle: lifecycle.expand(TopicName.parse("w"), 4),
    "plan-delete": lambda lifecycle: lifecycle.plan_delete_partitioned(TopicName.parse("w")),
}


@pytest.mark.parametrize("limited", [False, True], ids=["without-limit", "with-a-topic-limit"])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_operation_looks_at_as_much_in_a_large_namespace_as_in_a_small_one(operation: str, limited: bool) -> None:
    looked_at = []
    for size in (10, 1000):
        store = CountingStore()
        broker = await start(store)
        await store.commit([Put(keys.topic_record(TopicName.parse(f"t{number}")), b"{}") for number in range(size)])
        if limited:
            await broker.namespaces.update_policies(
                PUBLIC_DEFAULT, lambda old: old.changed(max_topics_per_namespace=9999)
            )
        await broker.lifecycle.create_partitioned(TopicName.parse("w"), 2)
        store.forget()
        await OPERATIONS[operation](broker.lifecycle)
        looked_at.append(store.keys_read + len(store.lists))
    assert looked_at[0] == looked_at[1]
    assert looked_at[0] < 25

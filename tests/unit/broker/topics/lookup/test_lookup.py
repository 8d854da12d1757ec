"""Lookups over a metadata store in memory: what is read, which limits hold, and that permits always come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions, SoleOwner
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.lookup import BatchLookup, Lookups
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import (
    InvalidRequest,
    MetadataError,
    NamespaceNotFound,
    RequestTooLarge,
    ServerError,
    ServiceNotReady,
    TooManyRequests,
    UnsupportedVersion,
)
from interpulse.model.names import PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import PARTITIONED
from interpulse.rules.lookup import BatchAnswer, LookupTarget, Owner
from interpulse.serving.admission import LookupPermits
from interpulse.storage.api import Put, Versioned
from tests.support.counting_store import CountingStore

HERE = LookupTarget("pulsar://here:6650", web_url="http://here:8080")
X = TopicName.parse("x")


class PartlyUnreadableStore(CountingStore):
    """A store that fails to read keys with the ending ``broken``."""

    broken = ""

    async def get(self, key: str) -> Versioned | None:
        stored = await super().get(key)
        if self.broken and key.endswith(self.broken):
            raise MetadataError("metadata is unreadable")
        return stored


class Broker:
    """Lookups with everything they stand on."""

    def __init__(self) -> None:
        self.store = PartlyUnreadableStore()
        self.settings = BrokerConfig()
        self.limits = BrokerConfig()
        self.permits_max = 1
        self.ready = True
        self.permits = LookupPermits(lambda: self.permits_max)
        self.namespaces = Namespaces(self.store, local_cluster="east")
        self.clusters = Clusters(self.store)
        self.lifecycle = TopicLifecycle(self.store, self.namespaces, lambda: self.settings)
        self.lookups = Lookups(
            self.namespaces,
            self.clusters,
            self.lifecycle,
            SoleOwner(HERE),
            permits=self.permits,
            config=lambda: self.limits,
            ready=lambda: self.ready,
        )

    async def find(self, topic: TopicName, options: LookupOptions = NO_OPTIONS) -> LookupTarget:
        return await self.lookups.find(topic, options)

    async def find_many(
        self, *topics: str, create_if_missing: bool = True, expand_partitions: bool = False
    ) -> BatchAnswer:
        batch = BatchLookup(topics, create_if_missing=create_if_missing, expand_partitions=expand_partitions)
        return await self.lookups.find_many(batch)


@pytest.fixture
async def broker() -> Broker:
    broker = Broker()
    await bootstrap(broker.store, local_cluster="east", cluster=ClusterData())
    broker.store.forget()
    return broker


def failures(answer: BatchAnswer) -> dict[str, ServerError]:
    return {topic: each.error.wire_code for each in answer.failures for topic in each.topics}


async def test_lookup_when_namespace_exists_then_this_broker_whatever_the_topic(broker: Broker) -> None:
    assert await broker.find(X) == HERE
    assert (await broker.find_many("x", "y")).groups == {HERE: ["x", "y"]}
    assert (
        await broker.lifecycle.list_topics(NamespaceName("public", "default"), "persistent", include_system=True) == []
    )


async def test_batch_when_all_topics_are_of_one_namespace_then_reads_it_once_and_no_topic(broker: Broker) -> None:
    names = [f"t-{number}" for number in range(1000)]
    assert (await broker.find_many(*names)).groups == {HERE: names}
    assert (len(broker.store.gets), broker.store.batches) == (1, [])


async def test_policies_when_they_change_then_the_next_lookup_sees_it(broker: Broker) -> None:
    namespace = PUBLIC_DEFAULT
    assert await broker.find(X) == HERE
    await broker.namespaces.begin_delete(namespace)
    with pytest.raises(NamespaceNotFound, match="being deleted"):
        await broker.find(X)
    assert failures(await broker.find_many("x", "__change_events")) == {"x": ServerError.TopicNotFound}
    await broker.namespaces.give_up_delete(namespace, await broker.namespaces.deletion_mark(namespace))
    assert await broker.find(X) == HERE


async def test_batch_when_one_namespace_is_missing_and_one_unreadable_then_only_those_fail(broker: Broker) -> None:
    await broker.namespaces.create(NamespaceName("public", "odd"), NamespacePolicies())
    broker.store.broken = "public/odd"
    answer = await broker.find_many("x", "no/such/t", "public/odd/t")
    assert answer.groups == {HERE: ["x"]}
    expected = {"no/such/t": ServerError.TopicNotFound, "public/odd/t": ServerError.MetadataError}
    assert failures(answer) == expected


@pytest.mark.parametrize("listener", ["inside", "x" * 300])
async def test_listener_when_unknown_then_refused_in_words_that_clients_know(broker: Broker, listener: str) -> None:
    with pytest.raises(ServiceNotReady, match="the broker do not have"):
        await broker.find(X, LookupOptions(listener_name=listener))
    batch = BatchLookup(["x", "y", "a/b"], LookupOptions(listener_name=listener))
    answer = await broker.lookups.find_many(batch)
    code = ServerError.ServiceNotReady
    assert failures(answer) == {"x": code, "y": code, "a/b": ServerError.InvalidTopicName}


# --- peer clusters


async def elsewhere(broker: Broker, peer: ClusterData | None, *, clusters: tuple[str, ...] = ("west",)) -> TopicName:
    """A topic of a namespace that the local cluster does not serve, but perhaps its peer ``west``."""
    namespace = NamespaceName("public", "moved")
    await broker.clusters.put("east", ClusterData(peer_cluster_names=("west",)))
    if peer is not None:
        await broker.clusters.put("west", peer)
    await broker.namespaces.create(namespace, NamespacePolicies())
    await broker.namespaces.update_policies(namespace, lambda policies: policies.changed(replication_clusters=clusters))
    return TopicName.parse("public/moved/t")


async def test_peer_when_it_has_the_namespace_then_redirect_there(broker: Broker) -> None:
    peer = ClusterData(service_url="http://west:8080", broker_service_url="pulsar://west:6650")
    topic = await elsewhere(broker, peer)
    expected = LookupTarget("pulsar://west:6650", web_url="http://west:8080", redirect=True)
    assert await broker.find(topic) == expected
    answer = await broker.find_many("x", str(topic), create_if_missing=False)
    assert answer.groups == {expected: [str(topic)]}
    assert failures(answer) == {"x": ServerError.TopicNotFound}


@pytest.mark.parametrize(
    ("peer", "clusters"),
    [
        pytest.param(ClusterData(), ("west",), id="peer-without-address"),
        pytest.param(None, ("west",), id="peer-not-registered"),
        pytest.param(ClusterData(broker_service_url="pulsar://west:6650"), ("north",), id="not-at-the-peer"),
    ],
)
async def test_peer_when_it_cannot_be_named_then_metadata_error(
    broker: Broker, peer: ClusterData | None, clusters: tuple[str, ...]
) -> None:
    topic = await elsewhere(broker, peer, clusters=clusters)
    with pytest.raises(MetadataError):
        await broker.find(topic)
    answer = await broker.find_many(str(topic), "x")
    assert failures(answer) == {str(topic): ServerError.MetadataError}
    assert answer.groups == {HERE: ["x"]}


# --- the request as a whole


async def test_batch_when_switched_off_then_10(broker: Broker) -> None:
    assert broker.lookups.batches_supported
    broker.limits = BrokerConfig(supports_batch_lookup=False)
    assert not broker.lookups.batches_supported
    with pytest.raises(UnsupportedVersion, match="supportsBatchLookup"):
        await broker.find_many("x")
    assert await broker.find(X) == HERE


async def test_batch_when_the_limit_is_passed_then_22_names_it(broker: Broker) -> None:
    broker.limits = BrokerConfig(max_topics_per_batch_lookup=2)
    assert (await broker.find_many("x", "y")).groups == {HERE: ["x", "y"]}
    with pytest.raises(RequestTooLarge, match="at most 2"):
        await broker.find_many("x", "y", "x")
    with pytest.raises(InvalidRequest, match="at least one"):
        await broker.find_many()


async def test_lookups_when_the_broker_is_not_ready_then_6(broker: Broker) -> None:
    broker.ready = False
    with pytest.raises(ServiceNotReady):
        await broker.find(X)
    with pytest.raises(ServiceNotReady):
        await broker.find_many("x")


Ask = Callable[[Broker], object]


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda broker: broker.find_many("x"), id="answered"),
        pytest.param(lambda broker: broker.find_many("x", "a/b", "no/such/t"), id="failures-inside"),
        pytest.param(lambda broker: broker.find_many(), id="refused-empty"),
        pytest.param(lambda broker: broker.find_many(*map(str, range(1001))), id="refused-too-long"),
        pytest.param(lambda broker: broker.find_many("x", expand_partitions=True), id="expanded"),
        pytest.param(lambda broker: broker.find(X), id="single"),
        pytest.param(lambda broker: broker.find(TopicName.parse("no/such/t")), id="single-refused"),
    ],
)
async def test_permit_when_a_lookup_ends_in_any_way_then_is_given_back(broker: Broker, ask: Ask) -> None:
    for _ in range(3):
        (outcome,) = await asyncio.gather(ask(broker), return_exceptions=True)  # type: ignore[call-overload]
        assert not isinstance(outcome, TooManyRequests)
    with broker.permits:
        pass


async def test_permit_when_a_batch_is_cancelled_then_is_given_back(broker: Broker) -> None:
    task = asyncio.create_task(broker.find_many("x"))
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests):
        await broker.find(X)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await broker.find(X) == HERE


async def test_permit_when_none_is_left_then_14_for_the_request(broker: Broker) -> None:
    broker.permits_max = 0
    with pytest.raises(TooManyRequests):
        await broker.find_many("x")
    with pytest.raises(TooManyRequests):
        await broker.find(X)


async def test_batches_when_many_come_at_once_then_others_get_their_turn_between_them(broker: Broker) -> None:
    broker.permits_max = 100
    order: list[str] = []

    async def batch(number: int) -> None:
        await broker.find_many(f"x-{number}")
        order.append("batch")

    async def bystander() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
            order.append("bystander")

    await asyncio.gather(*(batch(number) for number in range(10)), bystander())
    assert order.count("batch") == 10
    longest = max(len(run) for run in "".join("b" if each == "batch" else " " for each in order).split())
    assert longest == 1


# --- existing topics


async def test_existence_when_it_is_asked_for_then_missing_topics_fail_and_nothing_is_created(broker: Broker) -> None:
    await broker.lifecycle.create_plain(X)
    await broker.lifecycle.create_partitioned(TopicName.parse("p"), 2)
    names = ["x", "y", "p", "p-partition-1", "p-partition-2", "non-persistent://public/default/n"]
    answer = await broker.find_many(*names, create_if_missing=False)
    assert answer.groups == {HERE: ["x", "p", "p-partition-1"]}
    missing = dict.fromkeys(("y", "p-partition-2", "non-persistent://public/default/n"), ServerError.TopicNotFound)
    assert failures(answer) == missing
    assert answer.partitions == {}


@pytest.mark.parametrize("create", [True, False])
async def test_existence_when_one_topic_cannot_be_read_then_only_that_one_fails(broker: Broker, create: bool) -> None:
    await broker.lifecycle.create_partitioned(X, 2)
    await broker.store.commit([Put(keys.partitioned_topic(TopicName.parse("broken")), b"{")])
    answer = await broker.find_many("x", "broken", create_if_missing=create, expand_partitions=True)
    assert answer.groups == {HERE: [str(X.partition(0)), str(X.partition(1))]}
    (failure,) = answer.failures
    assert (failure.topics, failure.error.wire_code) == (["broken"], ServerError.MetadataError)


async def test_existence_when_a_thousand_topics_are_asked_then_64_at_once(broker: Broker) -> None:
    names = [f"x-{number}" for number in range(1000)]
    broker.store.batches.clear()
    answer = await broker.find_many(*names, create_if_missing=False)
    assert len(failures(answer)) == 1000
    assert len(broker.store.batches) == 16
    assert max(broker.store.batches) == 2 * 64


async def test_expansion_when_a_topic_is_partitioned_then_answers_its_partitions(broker: Broker) -> None:
    await broker.lifecycle.create_partitioned(TopicName.parse("p"), 3)
    await broker.lifecycle.create_plain(X)
    base = "persistent://public/default/p"
    partitions = [f"{base}-partition-{index}" for index in range(3)]
    for create_if_missing in (True, False):
        answer = await broker.find_many("p", "x", create_if_missing=create_if_missing, expand_partitions=True)
        assert answer.groups == {HERE: [*partitions, "x"]}
        assert answer.partitions == {"p": 3, "x": 0}


async def test_expansion_when_a_topic_is_missing_then_it_is_created_only_if_that_is_meant(broker: Broker) -> None:
    broker.settings = BrokerConfig(allow_auto_topic_creation_type=PARTITIONED, default_num_partitions=2)
    answer = await broker.find_many("new", create_if_missing=False, expand_partitions=True)
    assert failures(answer) == {"new": ServerError.TopicNotFound}
    assert await broker.lifecycle.metadata(TopicName.parse("new")) is None
    answer = await broker.find_many("new", expand_partitions=True)
    assert answer.partitions == {"new": 2}
    assert (await broker.lifecycle.partitions(TopicName.parse("new"), create=False)) == 2


async def test_expansion_when_creation_is_off_then_a_missing_topic_fails_with_11(broker: Broker) -> None:
    broker.settings = BrokerConfig(allow_auto_topic_creation=False)
    await broker.lifecycle.create_plain(X)
    answer = await broker.find_many("new", "x", "p-partition-4", expand_partitions=True)
    assert failures(answer) == {"new": ServerError.TopicNotFound}
    assert answer.groups == {HERE: ["x", "p-partition-4"]}


async def test_bundle_when_the_namespace_has_its_own_then_is_one_of_those(broker: Broker) -> None:
    policies = NamespacePolicies(other={"bundles": {"numBundles": 1}})
    await broker.namespaces.create(NamespaceName("public", "one"), policies)
    assert await broker.lookups.bundle(TopicName.parse("public/one/t")) == "0x00000000_0xffffffff"
    assert await broker.lookups.bundle(TopicName.parse("no/such/t")) == "0x00000000_0xffffffff"


# --- other owners


class Halves:
    """Two brokers, each with a half of the bundles."""

    there = LookupTarget("pulsar://there:6650", redirect=True)

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        return self.cached()

    def check_serving(self) -> None:
        return

    def cached(self) -> Owner:
        return lambda namespace, bundle: HERE if bundle < "0x8" else self.there


async def test_ownership_when_shared_among_brokers_then_single_and_batch_say_the_same(broker: Broker) -> None:
    broker.permits_max = 2
    lookups = Lookups(broker.namespaces, broker.clusters, broker.lifecycle, Halves(), permits=broker.permits)
    names = [f"x-{number}" for number in range(40)]
    answer = await lookups.find_many(BatchLookup(names))
    assert set(answer.groups) == {HERE, Halves.there}
    for target, topics in answer.groups.items():
        for topic in topics:
            assert await lookups.find(TopicName.parse(topic), NO_OPTIONS) == target
    assert lookups.redirected == len(answer.groups[Halves.there])

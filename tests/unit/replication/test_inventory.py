"""Reading a namespace of another cluster: what counts, and how much is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import NamespaceNotFound, RemoteClusterUnavailable, TopicNotFound
from interpulse.model.inventory import ListedKind
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, preview
from interpulse.replication.connect import connect as connect_to
from interpulse.replication.inventory import read_namespace, read_remote
from interpulse.rules.inventory import NamespaceInventory, PoliciesInForce
from tests.support.stub_web import StubWeb
from tests.support.waiting import SECONDS_MAX

DEMO = NamespaceName.parse("demo/a")
POLICIES = "/admin/v2/namespaces/demo/a"
Listed = TypeVar("Listed")
RUNTIME = "/admin/v2/brokers/configuration/runtime"


def topic(name: str) -> TopicName:
    return TopicName.parse(f"persistent://demo/a/{name}")


def connect(cluster: str, data: ClusterData) -> AdminClient:
    return connect_to(cluster, data, timeout_ms=1000 * SECONDS_MAX)


class Cluster:
    """A namespace in memory that counts how many questions are under way at once."""

    def __init__(
        self,
        policies: NamespacePolicies,
        counts: Mapping[str, int],
        stored: Sequence[str] = (),
        *,
        told_with_names: bool = False,
    ) -> None:
        self._told_with_names = told_with_names
        self._policies = policies
        self._counts = {topic(name): count for name, count in counts.items()}
        self._stored = [topic(name) for name in stored]
        self.under_way = self.most_under_way = 0

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return self._policies

    async def settings(self) -> Mapping[str, str]:
        return {
            "allowAutoTopicCreation": "true",
            "allowAutoTopicCreationType": "partitioned",
            "defaultNumPartitions": "5",
            "schemaCompatibilityStrategy": "BACKWARD",
            "isAllowAutoUpdateSchemaEnabled": "false",
        }

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        return {name: count if self._told_with_names else None for name, count in self._counts.items()}

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        return self._stored

    async def metadata(self, name: TopicName) -> PartitionedTopicMetadata:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self._counts[name] < 0:
            raise TopicNotFound(str(name))
        return PartitionedTopicMetadata(self._counts[name])


def in_force(found: NamespaceInventory | None) -> PoliciesInForce:
    assert found is not None
    assert found.state is not None
    return found.state.in_force()


def counts(found: NamespaceInventory | None) -> dict[TopicName, int]:
    assert found is not None
    return {row.topic: row.partitions for row in found.topics.values() if row.kind is not ListedKind.ORPHAN_PARTITION}


async def test_brokers_settings_count_where_the_namespace_says_nothing() -> None:
    found = in_force(await read_namespace(Cluster(NamespacePolicies(), {}), DEMO))
    assert found.auto_creation == AutoTopicCreation(True, "partitioned", 5)
    assert found.auto_creation_source == "broker"
    assert (found.schema_strategy, found.auto_update_schema) == ("BACKWARD", False)
    assert found.replicator_may_update_schema


async def test_namespaces_word_counts_where_it_says_something() -> None:
    override = AutoTopicCreation(False, "non-partitioned")
    policies = NamespacePolicies(
        auto_topic_creation=override,
        schema_compatibility_strategy="FORWARD",
        allow_auto_update_schema=True,
        allow_auto_update_schema_with_replicator=False,
    )
    found = in_force(await read_namespace(Cluster(policies, {}), DEMO))
    assert (found.auto_creation, found.auto_creation_source) == (override, "namespace")
    assert (found.schema_strategy, found.auto_update_schema) == ("FORWARD", True)
    assert found.replicator_may_update_schema, "what producers may, replicators may"


async def test_count_that_an_override_lacks_is_the_brokers() -> None:
    policies = NamespacePolicies(auto_topic_creation=AutoTopicCreation(False, "partitioned"))
    found = in_force(await read_namespace(Cluster(policies, {}), DEMO))
    assert (found.auto_creation, found.auto_creation_source) == (
        AutoTopicCreation(False, "partitioned", 5),
        "namespace",
    )


async def test_count_that_an_override_lacks_there_is_asked_for_when_only_some_topics_count() -> None:
    with StubWeb() as web:
        lacking = {"allowAutoTopicCreation": False, "topicType": "partitioned"}
        data = answering(web, [], [], autoTopicCreationOverride=lacking)
        found = await read_remote("west", data, DEMO, connect, only=set())
        assert [each.target for each in web.asked].count(RUNTIME) == 1
    assert in_force(found).auto_creation.default_partitions == 1, "Pulsar's default, as that broker does not say"


class GrowingCluster(Cluster):
    """One in which a partitioned topic is created right behind the first listing."""

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        return self._create_behind(await super().partitioned(namespace, domains))

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        return self._create_behind(list(await super().stored(namespace, domains)))

    def _create_behind(self, listed: Listed) -> Listed:
        self._counts[topic("new")] = 2
        self._stored = [topic("new-partition-0"), topic("new-partition-1")]
        return listed


async def test_topic_that_is_created_between_two_listings_is_not_taken_for_left_over_partitions() -> None:
    found = await read_namespace(GrowingCluster(NamespacePolicies(), {}, told_with_names=True), DEMO)
    assert counts(found) == {topic("new"): 2}


async def test_topics_are_counted_by_their_base_and_a_deleted_one_is_left_out() -> None:
    cluster = Cluster(
        NamespacePolicies(), {"p": 2, "gone": -1}, ["p-partition-0", "p-partition-1", "plain", "left-over-partition-3"]
    )
    found = await read_namespace(cluster, DEMO)
    assert counts(found) == {topic("p"): 2, topic("plain"): 0}
    assert found.topics.keys() - counts(found).keys() == {topic("left-over")}


async def test_counts_are_asked_for_a_few_at_once() -> None:
    cluster = Cluster(NamespacePolicies(), {f"p{index}": 1 for index in range(200)})
    assert len(counts(await read_namespace(cluster, DEMO))) == 200
    assert 1 < cluster.most_under_way <= 16


async def test_counts_that_come_with_the_names_are_not_asked_for() -> None:
    cluster = Cluster(NamespacePolicies(), {"p": 4}, ["p-partition-0"], told_with_names=True)
    assert counts(await read_namespace(cluster, DEMO)) == {topic("p"): 4}
    assert cluster.most_under_way == 0


def answering(
    web: StubWeb, partitioned: Sequence[str] | Mapping[str, int], stored: Sequence[str], **policies: Any
) -> ClusterData:
    """A cluster that lists these partitioned topics, with their counts if it is asked for them and knows how."""
    web.answer("GET", POLICIES, {"replication_clusters": ["west"], **policies})
    web.answer("GET", RUNTIME, {})
    listed = partitioned if isinstance(partitioned, Mapping) else [str(topic(name)) for name in partitioned]
    web.answer("GET", "/admin/v2/persistent/demo/a/partitioned", listed)
    web.answer("GET", "/admin/v2/non-persistent/demo/a/partitioned", [])
    web.answer("GET", "/admin/v2/persistent/demo/a", [str(topic(name)) for name in stored])
    return ClusterData(service_url=web.url)


async def test_remote_namespace_when_read_then_left_over_partitions_are_no_topic() -> None:
    with StubWeb() as web:
        data = answering(web, ["p"], ["p-partition-0", "plain", "left-over-partition-0"])
        web.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 3})
        found = await read_remote("west", data, DEMO, connect)
    assert counts(found) == {topic("p"): 3, topic("plain"): 0}


async def test_remote_namespace_when_only_some_topics_count_then_only_they_are_asked_for() -> None:
    with StubWeb() as web:
        data = answering(web, ["p", "q"], [], autoTopicCreationOverride={"allowAutoTopicCreation": True})
        web.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 3})
        found = await read_remote("west", data, DEMO, connect, only={topic("p")})
        assert counts(found) == {topic("p"): 3}
        assert not [each for each in web.asked if each.target.startswith((RUNTIME, "/admin/v2/persistent/demo/a/q/"))]


@pytest.mark.parametrize("settings", [{"clusterName": "west"}, {}])
async def test_cluster_that_shares_our_configuration_store_is_no_other_one(settings: dict[str, str]) -> None:
    with StubWeb() as web:
        web.answer("GET", POLICIES, {"replication_clusters": ["east"]})
        web.answer("GET", RUNTIME, settings)
        assert await read_remote("west", ClusterData(service_url=web.url), DEMO, connect) is None
        assert len(web.asked) == 2


async def test_address_that_leads_to_another_cluster_is_not_taken_for_one_that_shares_our_store() -> None:
    with StubWeb() as web:
        web.answer("GET", POLICIES, {"replication_clusters": ["east"]})
        web.answer("GET", RUNTIME, {"clusterName": "east"})
        with pytest.raises(RemoteClusterUnavailable, match=f"west at {web.url} cannot be compared: it is called east"):
            await read_remote("west", ClusterData(service_url=web.url), DEMO, connect)


async def test_cluster_without_an_address_says_so() -> None:
    with pytest.raises(RemoteClusterUnavailable, match="west has no serviceUrl"):
        await read_remote("west", ClusterData(), DEMO, connect)


@pytest.mark.parametrize("reason", ["Namespace does not exist", "Tenant does not exist"])
async def test_missing_namespace_is_told_from_a_cluster_in_trouble(reason: str) -> None:
    with StubWeb() as web:
        web.answer("GET", POLICIES, {"reason": reason}, status=404)
        with pytest.raises(NamespaceNotFound):
            await read_remote("west", ClusterData(service_url=web.url), DEMO, connect)


async def test_cluster_that_does_not_answer_is_given_up_in_time() -> None:
    ended = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    data = ClusterData(service_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        with pytest.raises(RemoteClusterUnavailable, match="did not answer within 100 ms"):
            await read_remote("west", data, DEMO, partial(connect_to, timeout_ms=100))
        await ended.wait()


@pytest.mark.parametrize(
    ("west_counts", "requests"),
    [(None, 6), (2, 5), (3, 5)],
    ids=["one-by-one-as-a-real-broker-wants", "with-the-names", "differing"],
)
async def test_a_thousand_topics_on_two_clusters_are_compared_with_few_requests(
    west_counts: int | None, requests: int
) -> None:
    """A real broker is asked for each partitioned topic, of which there is one; ours for none of a thousand."""
    names = [f"t{index}" for index in range(1000)]
    partitioned = ["p"] if west_counts is None else names
    local = Cluster(NamespacePolicies(), dict.fromkeys(partitioned, 2), [*names, "p-partition-0"], told_with_names=True)
    with StubWeb() as west, StubWeb() as north:
        added = {}
        for cluster, web in (("west", west), ("north", north)):
            counts = None if west_counts is None else {str(topic(name)): west_counts for name in names}
            added[cluster] = answering(web, counts or ["p"], names, replication_clusters=[cluster])
            web.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 2})
        plan = await preview(Enabling(DEMO, "east", ("east", "north", "west"), added), local, connect)
        assert [len(each.conflicts) for each in plan.clusters] == [1000 if west_counts == 3 else 0] * 2
        assert (len(west.asked), len(north.asked)) == (requests, requests)


class Admin:
    """The admin API of a cluster with many partitioned topics; counts its questions, at once and in all."""

    under_way_anywhere = most_anywhere = 0

    def __init__(self, cluster: str, names: Sequence[str]) -> None:
        self._policies = NamespacePolicies(replication_clusters=(cluster,))
        self._names = [str(topic(name)) for name in names]
        self.asked = self.under_way = self.most_under_way = 0
        self.web_url = f"http://{cluster}"
        self.namespaces = self.topics = self.brokers = self

    async def _answer(self) -> None:
        self.asked += 1
        self.under_way += 1
        Admin.under_way_anywhere += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        Admin.most_anywhere = max(Admin.most_anywhere, Admin.under_way_anywhere)
        await asyncio.sleep(0)
        self.under_way -= 1
        Admin.under_way_anywhere -= 1

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        await self._answer()
        return self._policies

    async def runtime_configuration(self) -> Mapping[str, str]:
        await self._answer()
        return {}

    async def partition_counts(
        self, namespace: NamespaceName, *, domains: Sequence[str], system_included: bool
    ) -> dict[str, int | None]:
        await self._answer()
        return dict.fromkeys(self._names)

    async def list(self, namespace: NamespaceName, *, domains: Sequence[str], system_included: bool) -> Sequence[str]:
        await self._answer()
        return []

    async def partitioned_metadata(self, name: TopicName) -> PartitionedTopicMetadata:
        await self._answer()
        return PartitionedTopicMetadata(2)

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(self, *reason: object) -> None:
        assert self.under_way == 0


async def test_partitioned_topics_are_compared_with_both_clusters_at_once_and_few_questions_at_a_time() -> None:
    names = [f"t{index}" for index in range(200)]
    local = Cluster(NamespacePolicies(), dict.fromkeys(names, 2))
    admins = {cluster: Admin(cluster, names) for cluster in ("north", "west")}
    enabling = Enabling(DEMO, "east", ("east", "north", "west"), dict.fromkeys(admins, ClusterData()))
    plan = await preview(enabling, local, lambda cluster, data: cast(AdminClient, admins[cluster]))
    assert [each.conflicts for each in plan.clusters] == [(), ()]
    for admin in admins.values():
        assert (admin.asked, admin.most_under_way) == (204, 16)
    assert Admin.most_anywhere == 32, "no cluster waits for another one"

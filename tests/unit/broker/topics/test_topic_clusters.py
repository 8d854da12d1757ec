"""Growing here and on other clusters: who is asked, in which order, and what is left when one fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_clusters import AdminRemotes, Expansion
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.changes import SetPartitionCount
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import Conflict, PulsarError, RemoteClusterUnavailable, Unprocessable
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.provisioning import RemoteExpansion
from interpulse.storage.api import Put
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.stub_web import StubWeb

X = TopicName.parse("x")
PATH = "/admin/v2/persistent/public/default/x/partitions"


class ScriptedRemotes:
    """Other clusters out of a table; an error is raised."""

    def __init__(self) -> None:
        self.partitions: dict[str, int | PulsarError] = {}
        self.refusals: dict[str, PulsarError] = {}
        self.rivals: dict[str, int] = {}  # what another one makes of it just before we do
        self.grown: list[tuple[str, RemoteExpansion]] = []

    async def find(self, cluster: str, name: TopicName) -> Existence:
        answer = self.partitions[cluster]
        if isinstance(answer, PulsarError):
            raise answer
        return Existence(TopicKind.PARTITIONED, answer)

    async def expand(self, cluster: str, change: RemoteExpansion) -> None:
        if cluster in self.refusals:
            raise self.refusals[cluster]
        if cluster in self.rivals:
            self.partitions[cluster] = self.rivals.pop(cluster)
            raise Unprocessable("This topic already exists")
        self.grown.append((cluster, change))
        self.partitions[cluster] = change.partitions


class ExpansionBench:
    """A topic of two partitions in a namespace of three clusters."""

    def __init__(self) -> None:
        self.store = MemoryMetadataStore()
        self.remotes = ScriptedRemotes()
        self.namespaces = Namespaces(self.store, local_cluster="east")
        self.lifecycle = TopicLifecycle(self.store, self.namespaces, BrokerConfig)
        self.policies = TopicPolicyRecords(self.store, self.lifecycle)
        self.expansion = Expansion(
            self.lifecycle, self.namespaces, self.policies, cast(AdminRemotes, self.remotes), BrokerConfig
        )

    async def partitions(self) -> int:
        return await self.lifecycle.partitions(X, create=False)


@pytest.fixture
async def bench() -> ExpansionBench:
    bench = ExpansionBench()
    await bootstrap(bench.store, local_cluster="east", cluster=ClusterData())
    clusters = ("east", "north", "west")
    await bench.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=clusters))
    await bench.lifecycle.create_partitioned(X, 2)
    bench.remotes.partitions = {"north": 2, "west": 3}
    return bench


async def test_topic_grows_on_every_cluster_that_has_less(bench: ExpansionBench) -> None:
    await bench.expansion.expand(X, 3)
    assert bench.remotes.grown == [("north", SetPartitionCount(X, 3))]
    assert await bench.partitions() == 3


async def test_topic_when_only_the_local_one_is_meant_then_no_cluster_is_asked(bench: ExpansionBench) -> None:
    bench.remotes.partitions = {}
    await bench.expansion.expand(X, 3, local_only=True)
    assert await bench.partitions() == 3


async def test_topic_with_clusters_of_its_own_grows_on_those(bench: ExpansionBench) -> None:
    await bench.policies.update(X, lambda old: old.changed(replication_clusters=("east", "north")))
    await bench.expansion.expand(X, 4)
    assert bench.remotes.grown == [("north", SetPartitionCount(X, 4))]


@pytest.mark.parametrize("answer", [4, RemoteClusterUnavailable("away")], ids=["larger", "unreachable"])
async def test_topic_when_one_cluster_cannot_follow_then_nothing_changes_anywhere(
    bench: ExpansionBench, answer: int | PulsarError
) -> None:
    bench.remotes.partitions["west"] = answer
    with pytest.raises((Unprocessable, RemoteClusterUnavailable)):
        await bench.expansion.expand(X, 3)
    assert (bench.remotes.grown, await bench.partitions()) == ([], 2)


async def test_topic_when_a_cluster_fails_in_the_middle_then_the_local_one_stays_and_a_repetition_helps(
    bench: ExpansionBench,
) -> None:
    bench.remotes.refusals["west"] = RemoteClusterUnavailable("away")
    with pytest.raises(RemoteClusterUnavailable):
        await bench.expansion.expand(X, 4)
    assert await bench.partitions() == 2
    bench.remotes.refusals.clear()
    await bench.expansion.expand(X, 4)
    assert await bench.partitions() == 4


@pytest.mark.parametrize(("meanwhile", "grown"), [(2, 3), (3, 3), (4, 2)], ids=["as-it-was", "so-far", "further"])
async def test_topic_when_expanded_first_on_a_cluster_then_that_counts(
    bench: ExpansionBench, meanwhile: int, grown: int
) -> None:
    bench.remotes.rivals["north"] = meanwhile
    if grown == 3:
        await bench.expansion.expand(X, 3)
    else:
        with pytest.raises(Unprocessable, match="4 partitions on cluster north"):
            await bench.expansion.expand(X, 3)
    assert await bench.partitions() == grown


async def test_topic_when_a_cluster_refuses_again_and_again_then_its_reason_is_told(bench: ExpansionBench) -> None:
    bench.remotes.refusals["north"] = Unprocessable("Cluster north: too many")
    with pytest.raises(Unprocessable, match="too many"):
        await bench.expansion.expand(X, 4)
    assert (bench.remotes.grown, await bench.partitions()) == ([], 2)


async def test_topic_when_it_is_refused_here_then_no_other_cluster_is_touched(bench: ExpansionBench) -> None:
    await bench.store.commit([Put(keys.topic_record(X.partition(7)), b"{}")])
    with pytest.raises(Conflict):
        await bench.expansion.expand(X, 4)
    assert bench.remotes.grown == []


class TestAdminRemotes:
    @asynccontextmanager
    async def remotes(self, url: str) -> AsyncIterator[AdminRemotes]:
        clusters = Clusters(MemoryMetadataStore())
        await clusters.create("west", ClusterData(service_url=url))
        links = ClusterLinks(clusters)
        try:
            yield AdminRemotes(links)
        finally:
            await links.close()

    @pytest.mark.parametrize(
        ("status", "body", "expected"),
        [
            pytest.param(200, {"partitions": 3}, Existence(TopicKind.PARTITIONED, 3), id="partitioned"),
            pytest.param(200, {"partitions": 0}, Existence(TopicKind.NON_PARTITIONED), id="plain"),
            pytest.param(404, {"reason": "no"}, Existence(TopicKind.ABSENT), id="absent"),
        ],
    )
    async def test_find_asks_without_creating(self, status: int, body: Any, expected: Existence) -> None:
        with StubWeb() as web:
            web.answer("GET", PATH, body, status=status)
            async with self.remotes(web.url) as remotes:
                assert await remotes.find("west", X) == expected
            assert [asked.target for asked in web.asked] == [f"{PATH}?checkAllowAutoCreation=false"]

    @pytest.mark.parametrize(
        ("status", "body", "kind", "words"),
        [
            pytest.param(404, {"reason": "Namespace not found"}, Unprocessable, "create namespace", id="namespace"),
            pytest.param(200, ["ok"], RemoteClusterUnavailable, "something other than an object", id="no-broker"),
        ],
    )
    async def test_find_takes_what_is_no_answer_about_the_topic_for_no_answer(
        self, status: int, body: Any, kind: type[PulsarError], words: str
    ) -> None:
        with StubWeb() as web:
            web.answer("GET", PATH, body, status=status)
            async with self.remotes(web.url) as remotes:
                with pytest.raises(kind, match=f"west at {web.url}: .*{words}"):
                    await remotes.find("west", X)

    async def test_grow_is_for_that_cluster_alone(self) -> None:
        with StubWeb() as web:
            async with self.remotes(web.url) as remotes:
                await remotes.expand("west", SetPartitionCount(X, 5))
            (asked,) = web.asked
        assert (asked.method, asked.target, asked.body) == (
            "POST",
            f"{PATH}?updateLocalTopicOnly=true",
            5,
        )

    @pytest.mark.parametrize(
        ("status", "kind"),
        [(422, Unprocessable), (409, Unprocessable), (401, RemoteClusterUnavailable), (500, RemoteClusterUnavailable)],
    )
    async def test_refusal_names_cluster_address_and_cause(self, status: int, kind: type[PulsarError]) -> None:
        with StubWeb() as web:
            web.answer("POST", PATH, {"reason": "too many"}, status=status)
            async with self.remotes(web.url) as remotes:
                with pytest.raises(kind, match=f"west at {web.url}: .*too many"):
                    await remotes.expand("west", SetPartitionCount(X, 5))

    async def test_cluster_without_address_or_answer_is_named(self) -> None:
        with StubWeb() as web:
            gone = web.url
        for url, words in (("", "west has no serviceUrl"), (gone, f"west at {gone}")):
            async with self.remotes(url) as remotes:
                with pytest.raises(RemoteClusterUnavailable, match=words):
                    await remotes.find("west", X)

"""Records of topic policies: one for all partitions, for topics that are there, also after a restart."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PreconditionFailed, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import InactiveTopicPolicies
from interpulse.storage.api import Delete
from tests.support.memory_storage import MemoryMetadataStore

X = TopicName.parse("x")
INACTIVE = InactiveTopicPolicies(max_inactive_seconds=5)


class TopicPoliciesBench:
    """Records over a store that outlives them."""

    def __init__(self, store: MemoryMetadataStore) -> None:
        self.store = store
        namespaces = Namespaces(store, local_cluster="east")
        self.lifecycle = TopicLifecycle(store, namespaces, BrokerConfig)
        self.records = TopicPolicyRecords(store, self.lifecycle)

    async def set(self, name: TopicName, value: InactiveTopicPolicies | None) -> None:
        await self.records.update(name, lambda old: old.changed(inactive_topics=value))


@pytest.fixture
async def bench() -> TopicPoliciesBench:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return TopicPoliciesBench(store)


async def test_policy_when_set_then_counts_for_all_partitions_and_after_a_restart(bench: TopicPoliciesBench) -> None:
    await bench.lifecycle.create_partitioned(X, 2)
    await bench.set(X, INACTIVE)
    again = TopicPoliciesBench(bench.store)
    for name in (X, X.partition(0), X.partition(1)):
        assert (await again.records.find(name)).inactive_topics == INACTIVE
    assert await again.records.find(TopicName.parse("y")) == TopicPolicies()


async def test_policy_when_the_last_one_is_taken_away_then_nothing_is_stored(bench: TopicPoliciesBench) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.set(X, INACTIVE)
    assert await bench.store.get(keys.topic_policies(X)) is not None
    await bench.set(X, None)
    assert await bench.store.get(keys.topic_policies(X)) is None


@pytest.mark.parametrize(("name", "refusal"), [(X, TopicNotFound), (X.partition(0), PreconditionFailed)])
async def test_policy_when_there_is_no_such_topic_then_is_refused_and_not_stored(
    bench: TopicPoliciesBench, name: TopicName, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal, match=str(name)):
        await bench.set(name, INACTIVE)
    with pytest.raises(refusal, match=str(name)):
        await bench.records.record_of_existing(name)
    assert await bench.store.children("/admin/topic-policies") == []


async def test_policies_of_this_cluster_and_of_all_are_kept_apart_and_joined_for_who_asks_what_counts(
    bench: TopicPoliciesBench,
) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.records.update(X, lambda old: old.changed(max_producers=5, max_consumers=6), everywhere=True)
    await bench.records.update(X, lambda old: old.changed(max_producers=1))
    again = TopicPoliciesBench(bench.store)
    for_all = TopicPolicies(max_producers=5, max_consumers=6)
    assert await again.records.record_of_existing(X) == TopicPolicyRecord(TopicPolicies(max_producers=1), for_all)
    assert await again.records.find(X) == TopicPolicies(max_producers=1, max_consumers=6)
    assert await again.records.set_everywhere(X.namespace_name) == {X: for_all}
    await bench.records.update(X, lambda old: TopicPolicies(), everywhere=True)
    assert await again.records.set_everywhere(X.namespace_name) == {}
    assert await again.records.find(X) == TopicPolicies(max_producers=1)


async def test_policies_when_changed_at_the_same_time_then_none_is_lost(bench: TopicPoliciesBench) -> None:
    await bench.lifecycle.create_plain(X)

    def add(number: int) -> asyncio.Task[None]:
        change = bench.records.update(X, lambda old: old.changed(other={**old.other, str(number): number}))
        return asyncio.ensure_future(change)

    await asyncio.gather(*map(add, range(20)))
    assert len((await bench.records.find(X)).other) == 20


@pytest.mark.parametrize("partitions", [0, 2])
async def test_policy_when_its_topic_goes_at_the_same_moment_then_is_not_left_behind(
    bench: TopicPoliciesBench, partitions: int
) -> None:
    if partitions:
        await bench.lifecycle.create_partitioned(X, partitions)
    else:
        await bench.lifecycle.create_plain(X)

    def change(old: TopicPolicies) -> TopicPolicies:
        with suppress(StopIteration):  # the commit of this store never waits
            deletion.send(None)
        return old.changed(inactive_topics=INACTIVE)

    gone = keys.partitioned_topic(X) if partitions else keys.topic_record(X)
    deletion = bench.store.commit([Delete(gone)])
    with pytest.raises(TopicNotFound):
        await bench.records.update(X, change)
    assert await bench.store.get(keys.topic_policies(X)) is None

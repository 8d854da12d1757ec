"""Deleting over memory: how many commits it takes, what stays, and who is asked first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import nullcontext

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics import deletion
from interpulse.model.errors import (
    Conflict,
    NamespaceNotFound,
    NotEmpty,
    OperationNotAllowed,
    PartitionedTopicNotFound,
    PreconditionFailed,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
    Unprocessable,
)
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.storage.api import CommitConflict, Put
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata
from tests.support.lifecycle_bench import LifecycleBench, MortalStore, SilentStore, disorder, named
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.waiting import eventually

TRIAL = NamespaceName("public", "trial")
X, Y = named("x"), named("y")
FLEETING = TopicName.of(NON_PERSISTENT, "public", "trial", "f")


@pytest.fixture
async def bench() -> LifecycleBench:
    """Its store counts commits."""
    first = await LifecycleBench.first()
    await first.namespaces.create(TRIAL, NamespacePolicies())
    return LifecycleBench(MortalStore(first.store, fatal=0, applied=True, dies=False))


def commits(bench: LifecycleBench) -> int:
    assert isinstance(bench.store, MortalStore)
    return bench.store.commits


async def test_partitioned_topic_goes_in_one_commit_however_many_partitions_it_has(bench: LifecycleBench) -> None:
    await bench.lifecycle.create_partitioned(X, 300)
    await bench.registry.open(X.partition(7))
    before = commits(bench)
    await bench.deletion.partitioned_topic(X, force=False)
    assert commits(bench) == before + 1
    assert await bench.store.scan(f"{keys.namespace_records(TRIAL)}/", limit=9) == []
    with pytest.raises(PartitionedTopicNotFound):
        await bench.deletion.partitioned_topic(X, force=False)


async def test_topic_when_two_delete_it_at_once_then_the_second_does_not_find_it(
    bench: LifecycleBench,
) -> None:
    await bench.lifecycle.create_plain(X)
    await bench.registry.open(X)
    first, second = (asyncio.create_task(bench.deletion.topic(X, force=True)) for _ in range(2))
    await first
    with pytest.raises(TopicNotFound):
        await second


async def test_namespace_goes_in_few_commits(bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "_KEYS_AT_ONCE", 100)
    await bench.lifecycle.create_partitioned(X, 1000)
    before = commits(bench)
    await bench.deletion.namespace(TRIAL, force=True)
    assert commits(bench) - before <= 1000 / 100 + 3
    assert await disorder(bench.store) == []


async def test_schemas_and_policies_stay_when_one_partition_goes_and_when_a_twin_is_left(bench: LifecycleBench) -> None:
    await bench.lifecycle.create_partitioned(X, 2)
    await bench.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    await bench.store.commit([Put(keys.topic_policies(X), b"{}"), Put(keys.topic_record(X), b"{}")])
    await bench.deletion.topic(X.partition(0), force=False)
    await bench.deletion.partitioned_topic(X, force=False)
    assert await bench.schemas.has_schema(X)
    await bench.deletion.topic(X, force=False)
    assert not await bench.schemas.has_schema(X)
    assert await bench.store.get(keys.topic_policies(X)) is None


@pytest.mark.parametrize("partitioned", [False, True])
async def test_schemas_when_a_topic_of_the_same_name_in_the_other_domain_is_deleted_then_stay(
    bench: LifecycleBench, partitioned: bool
) -> None:
    """Even the deletion of a non-persistent topic that is not there would take them."""
    await bench.lifecycle.create_plain(X)
    await bench.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    twin = TopicName(NON_PERSISTENT, X.tenant, X.namespace, X.local_name)
    if partitioned:
        await bench.lifecycle.create_partitioned(twin, 2)
        await bench.deletion.partitioned_topic(twin, force=False)
    else:
        await bench.deletion.topic(twin, force=False)
    assert await bench.schemas.has_schema(X)
    await bench.deletion.topic(X, force=False)
    assert not await bench.schemas.has_schema(X)


async def test_schemas_when_a_topic_of_the_same_name_comes_while_they_go_then_stay(bench: LifecycleBench) -> None:
    """The commit rests on its absence."""
    twin = TopicName(NON_PERSISTENT, X.tenant, X.namespace, X.local_name)
    await bench.lifecycle.create_partitioned(X, 1)
    await bench.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    plan = await bench.lifecycle.plan_delete_partitioned(X)
    await bench.lifecycle.create_partitioned(twin, 2)
    with pytest.raises(CommitConflict):
        await bench.store.commit(plan.changes, plan.expect)
    await bench.deletion.partitioned_topic(X, force=False)
    assert await bench.schemas.has_schema(twin)


@pytest.mark.parametrize("partitions", [0, 2])
async def test_permissions_on_a_topic_go_with_it_and_are_not_those_of_the_next_of_its_name(
    bench: LifecycleBench, partitions: int
) -> None:
    granted = Permissions().grant("app", ["produce"])
    for each in (X, X.partition(1), Y):
        granted = granted.grant_topic([each], "reader", ["consume"])
    await bench.namespaces.update_policies(TRIAL, lambda old: old.changed(granted=granted))
    if partitions:
        await bench.lifecycle.create_partitioned(X, partitions)
        await bench.deletion.partitioned_topic(X, force=False)
    else:
        await bench.lifecycle.create_plain(X)
        await bench.deletion.topic(X, force=False)
    left = (await bench.namespaces.get_policies(TRIAL)).permissions
    assert list(left.topics) == [str(Y)]
    assert left.namespace == {"app": {"produce"}}


async def test_replicated_topics_go_by_force_only(bench: LifecycleBench) -> None:
    await bench.lifecycle.create_partitioned(X, 1)
    await bench.lifecycle.create_plain(Y)
    await bench.lifecycle.create_partitioned(FLEETING, 1)
    here, both = (bench.namespaces.local_cluster,), (bench.namespaces.local_cluster, "west")
    await bench.namespaces.update_policies(TRIAL, lambda policies: policies.changed(replication_clusters=both))
    own, orphan = TopicPolicies(replication_clusters=here), X.partition(1)
    await bench.store.commit(
        [Put(keys.topic_policies(Y), TopicPolicyRecord(own).dump()), Put(keys.topic_record(orphan), b"{}")]
    )
    for name, delete in ((X, bench.deletion.partitioned_topic), (X.partition(0), bench.deletion.topic)):
        with pytest.raises(Unprocessable, match=r"Delete forbidden topic is replicated on clusters \[west\]"):
            await delete(name, force=False)
    await bench.deletion.topic(orphan, force=False)  # it cannot be opened, so it is not replicated
    await bench.deletion.partitioned_topic(X, force=True)
    await bench.deletion.topic(Y, force=False)  # its own policy keeps it at home
    await bench.deletion.partitioned_topic(FLEETING, force=False)  # holds nothing


async def test_plain_twin_of_a_partitioned_topic_goes_alone(bench: LifecycleBench) -> None:
    await bench.lifecycle.create_partitioned(X, 1)
    await bench.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    await bench.store.commit([Put(keys.topic_record(X), b'{"ledgers": []}')])
    await bench.deletion.topic(X, force=True)
    assert await bench.schemas.has_schema(X)
    assert await bench.lifecycle.metadata(X) == PartitionedTopicMetadata(1)


async def test_record_that_cannot_be_understood_can_be_deleted(bench: LifecycleBench) -> None:
    await bench.store.commit([Put(keys.topic_record(Y), b"{")])
    await bench.deletion.topic(Y, force=False)
    with pytest.raises(TopicNotFound):
        await bench.deletion.topic(Y, force=False)


async def test_check_has_the_last_word_about_an_inactive_topic(bench: LifecycleBench) -> None:
    topic = await bench.registry.open(Y)
    asked = []

    def refuse(found: object) -> None:
        asked.append(found)
        raise PreconditionFailed("active again")

    with pytest.raises(PreconditionFailed):
        await bench.deletion.inactive_topic(Y, refuse)
    assert (asked, bench.registry.get(Y)) == ([topic], topic)
    await bench.deletion.inactive_topic(Y, asked.append)
    assert bench.registry.get(Y) is None
    assert await bench.store.get(keys.topic_record(Y)) is None


async def test_namespace_and_tenant_by_force_only_where_it_is_allowed(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.deletion, "_config", lambda: BrokerConfig())
    with pytest.raises(OperationNotAllowed):
        await bench.deletion.namespace(TRIAL, force=True)
    with pytest.raises(OperationNotAllowed):
        await bench.deletion.tenant("public", force=True)
    await bench.deletion.namespace(TRIAL, force=False)


async def test_tenant_when_one_of_its_namespaces_cannot_be_deleted_then_none_is(bench: LifecycleBench) -> None:
    both = ("east", "west")
    await bench.namespaces.update_policies(TRIAL, lambda policies: policies.changed(replication_clusters=both))
    namespaces = await bench.namespaces.list("public")
    assert namespaces.index(str(TRIAL)) > 0
    with pytest.raises(PreconditionFailed, match="Cannot delete the global namespace public/trial"):
        await bench.deletion.tenant("public", force=True)
    assert await bench.namespaces.list("public") == namespaces
    assert not (await bench.namespaces.get_policies(NamespaceName.parse(namespaces[0]))).deleted


async def test_namespace_takes_loaded_topics_along_that_are_not_stored(bench: LifecycleBench) -> None:
    fleeting = TopicName.of(NON_PERSISTENT, "public", "trial", "n")
    await bench.registry.open(fleeting)
    other = TopicName.of(NON_PERSISTENT, PUBLIC_DEFAULT.tenant, PUBLIC_DEFAULT.local, "n")
    await bench.registry.open(other)
    await bench.deletion.namespace(TRIAL, force=False)
    assert list(bench.registry.names) == [other]


async def test_keys_that_are_of_no_topic_go_with_their_namespace(bench: LifecycleBench) -> None:
    await bench.store.commit(
        [Put(f"{keys.namespace_records(TRIAL)}/persistent/%20", b""), Put("/schemas/public/trial/x", b"")]
    )
    await bench.deletion.namespace(TRIAL, force=True)
    assert await disorder(bench.store) == []


@pytest.mark.parametrize("marked_before", [False, True])
async def test_namespace_when_another_broker_starts_and_deletes_it_then_only_the_request_that_marked_it_is_done(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch, marked_before: bool
) -> None:
    if marked_before:
        await bench.namespaces.begin_delete(TRIAL)

    async def ask_others(namespace: NamespaceName) -> bool:
        await LifecycleBench(bench.store).deletion.resume()
        raise NamespaceNotFound("Namespace does not exist")

    monkeypatch.setattr(bench.deletion, "_holds_topics", ask_others)
    with pytest.raises(NamespaceNotFound) if marked_before else nullcontext():
        await bench.deletion.namespace(TRIAL, force=False)
    assert await bench.namespaces.find_policies(TRIAL) is None


async def test_namespace_when_the_deletion_fails_and_another_broker_finishes_it_then_raises_its_own_error(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_others(namespace: NamespaceName) -> bool:
        await LifecycleBench(bench.store).deletion.resume()
        raise ServiceNotReady("not now")

    monkeypatch.setattr(bench.deletion, "_holds_topics", ask_others)
    with pytest.raises(ServiceNotReady):
        await bench.deletion.namespace(TRIAL, force=False)
    assert await bench.namespaces.find_policies(TRIAL) is None


@pytest.mark.parametrize("step", ["listed", "emptying", "emptied"])
async def test_resumed_deletion_when_the_namespace_was_created_again_then_leaves_it(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    """The broker that began the deletion has ended it, and a user has created the namespace again with a topic."""
    another = LifecycleBench(bench.store)
    await bench.registry.open(FLEETING)
    await bench.namespaces.begin_delete(TRIAL, forced=True)

    async def create_again() -> None:
        await another.deletion.namespace(TRIAL, force=True)
        await another.namespaces.create(TRIAL, NamespacePolicies())
        await another.lifecycle.create_plain(X)

    def before(place: object, method: str) -> None:
        original = getattr(place, method)

        async def call(*arguments: object, **options: object) -> object:
            monkeypatch.undo()
            await create_again()
            return await original(*arguments, **options)

        monkeypatch.setattr(place, method, call)

    if step == "listed":
        before(bench.deletion, "_delete_namespace")
    elif step == "emptying":
        before(bench.registry, "delete")
    else:
        before(bench.namespaces, "end_delete")
    await bench.deletion.resume()
    policies = await bench.namespaces.find_policies(TRIAL)
    assert policies is not None
    assert not policies.deleted
    assert await another.lifecycle.list_topics(TRIAL, PERSISTENT, include_system=False) == [X]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("failure", "stays_marked"), [(ServiceNotReady("not now"), True), (NotEmpty("it holds topics"), False)]
)
async def test_resumed_deletion_when_it_fails_then_only_topics_end_the_deletion(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch, failure: PulsarError, stays_marked: bool
) -> None:
    """The request that began it may still be at work at another broker."""
    await bench.namespaces.begin_delete(TRIAL)

    async def fail(namespace: NamespaceName) -> bool:
        raise failure

    monkeypatch.setattr(bench.deletion, "_holds_topics", fail)
    await bench.deletion.resume()
    assert (await bench.namespaces.get_policies(TRIAL)).deleted is stays_marked


async def test_deletion_when_the_namespace_was_created_again_then_says_so(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    another = LifecycleBench(bench.store)

    async def ask_others(namespace: NamespaceName) -> bool:
        await another.deletion.resume()
        await another.namespaces.create(TRIAL, NamespacePolicies())
        return False

    monkeypatch.setattr(bench.deletion, "_holds_topics", ask_others)
    with pytest.raises(Conflict, match="Namespace public/trial was restored or created again meanwhile"):
        await bench.deletion.namespace(TRIAL, force=False)
    assert not (await bench.namespaces.get_policies(TRIAL)).deleted


class Paused:
    """A broker among several, whose ZooKeeper is paused past the session's deadline once a deletion has begun."""

    def __init__(self, memory: MemoryMetadataStore) -> None:
        self.memory = memory
        self.store = SilentStore(memory)
        self.bench = LifecycleBench(SessionBoundedMetadata(self.store))

    async def meanwhile(self, deleting: Awaitable[None]) -> None:
        """What it ends with, after the session has come back."""
        self.store.silent_next = True
        task = asyncio.ensure_future(deleting)
        await eventually(lambda: not self.store.answers.is_set())
        self.memory.session.lose()
        for _ in range(20):
            await asyncio.sleep(0)
        self.memory.session.resume(self.memory.session.id)
        self.store.answers.set()
        await task


@pytest.fixture
async def paused() -> Paused:
    first = await LifecycleBench.first()
    assert isinstance(first.store, MemoryMetadataStore)
    await first.namespaces.create(TRIAL, NamespacePolicies())
    await first.lifecycle.create_partitioned(X, 2)
    return Paused(first.store)


async def test_namespace_when_the_store_is_paused_while_it_is_looked_at_then_is_served_again_if_it_holds_topics(
    paused: Paused,
) -> None:
    with pytest.raises(NotEmpty):
        await paused.meanwhile(paused.bench.deletion.namespace(TRIAL, force=False))  # type: ignore[arg-type]
    assert await disorder(paused.memory) == []
    assert not (await paused.bench.namespaces.get_policies(TRIAL)).deleted


async def test_spread_topic_when_the_store_is_paused_and_a_broker_refuses_then_is_not_marked_any_more(
    paused: Paused,
) -> None:
    async def refuse() -> None:
        await paused.bench.lifecycle.metadata(X)
        raise PreconditionFailed("a broker refuses")

    with pytest.raises(PreconditionFailed, match="a broker refuses"):
        await paused.meanwhile(paused.bench.deletion.spread_topic(X, refuse, force=True))
    assert await disorder(paused.memory) == []

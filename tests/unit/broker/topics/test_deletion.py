"""Deleting over memory: how many commits it takes, what stays, and who is asked first."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics import deletion
from interpulse.model.errors import (
    OperationNotAllowed,
    PartitionedTopicNotFound,
    PreconditionFailed,
    TopicNotFound,
    Unprocessable,
)
from interpulse.model.names import NON_PERSISTENT, PUBLIC_DEFAULT, NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.policies import NamespacePolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.storage.api import CommitConflict, Put
from tests.durability.lifecycle_room import MortalStore, Room, disorder, named

TRIAL = NamespaceName("public", "trial")
X, Y = named("x"), named("y")
FLEETING = TopicName.of(NON_PERSISTENT, "public", "trial", "f")


@pytest.fixture
async def room() -> Room:
    """Its store counts commits."""
    first = await Room.first()
    await first.namespaces.create(TRIAL, NamespacePolicies())
    return Room(MortalStore(first.store, fatal=0, applied=True, dies=False))


def commits(room: Room) -> int:
    assert isinstance(room.store, MortalStore)
    return room.store.commits


async def test_partitioned_topic_goes_in_one_commit_however_many_partitions_it_has(room: Room) -> None:
    await room.lifecycle.create_partitioned(X, 300)
    await room.registry.open(X.partition(7))
    before = commits(room)
    await room.deletion.partitioned_topic(X, force=False)
    assert commits(room) == before + 1
    assert await room.store.scan(f"{keys.namespace_records(TRIAL)}/", limit=9) == []
    with pytest.raises(PartitionedTopicNotFound):
        await room.deletion.partitioned_topic(X, force=False)


async def test_namespace_goes_in_few_commits(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "_KEYS_AT_ONCE", 100)
    await room.lifecycle.create_partitioned(X, 1000)
    before = commits(room)
    await room.deletion.namespace(TRIAL, force=True)
    assert commits(room) - before <= 1000 / 100 + 3
    assert await disorder(room.store) == []


async def test_schemas_and_policies_stay_when_one_partition_goes_and_when_a_twin_is_left(room: Room) -> None:
    await room.lifecycle.create_partitioned(X, 2)
    await room.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    await room.store.commit([Put(keys.topic_policies(X), b"{}"), Put(keys.topic_record(X), b"{}")])
    await room.deletion.topic(X.partition(0), force=False)
    await room.deletion.partitioned_topic(X, force=False)
    assert await room.schemas.has_schema(X)
    await room.deletion.topic(X, force=False)
    assert not await room.schemas.has_schema(X)
    assert await room.store.get(keys.topic_policies(X)) is None


@pytest.mark.parametrize("partitioned", [False, True])
async def test_schemas_when_a_topic_of_the_same_name_in_the_other_domain_is_deleted_then_stay(
    room: Room, partitioned: bool
) -> None:
    """Even the deletion of a non-persistent topic that is not there would take them."""
    await room.lifecycle.create_plain(X)
    await room.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    twin = TopicName(NON_PERSISTENT, X.tenant, X.namespace, X.local_name)
    if partitioned:
        await room.lifecycle.create_partitioned(twin, 2)
        await room.deletion.partitioned_topic(twin, force=False)
    else:
        await room.deletion.topic(twin, force=False)
    assert await room.schemas.has_schema(X)
    await room.deletion.topic(X, force=False)
    assert not await room.schemas.has_schema(X)


async def test_schemas_when_a_topic_of_the_same_name_comes_while_they_go_then_stay(room: Room) -> None:
    """The commit rests on its absence."""
    twin = TopicName(NON_PERSISTENT, X.tenant, X.namespace, X.local_name)
    await room.lifecycle.create_partitioned(X, 1)
    await room.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    plan = await room.lifecycle.plan_delete_partitioned(X)
    await room.lifecycle.create_partitioned(twin, 2)
    with pytest.raises(CommitConflict):
        await room.store.commit(plan.changes, plan.expect)
    await room.deletion.partitioned_topic(X, force=False)
    assert await room.schemas.has_schema(twin)


@pytest.mark.parametrize("partitions", [0, 2])
async def test_permissions_on_a_topic_go_with_it_and_are_not_those_of_the_next_of_its_name(
    room: Room, partitions: int
) -> None:
    granted = Permissions().grant("app", ["produce"])
    for each in (X, X.partition(1), Y):
        granted = granted.grant_topic([each], "reader", ["consume"])
    await room.namespaces.update_policies(TRIAL, lambda old: old.changed(granted=granted))
    if partitions:
        await room.lifecycle.create_partitioned(X, partitions)
        await room.deletion.partitioned_topic(X, force=False)
    else:
        await room.lifecycle.create_plain(X)
        await room.deletion.topic(X, force=False)
    left = (await room.namespaces.get_policies(TRIAL)).permissions
    assert list(left.topics) == [str(Y)]
    assert left.namespace == {"app": {"produce"}}


async def test_replicated_topics_go_by_force_only(room: Room) -> None:
    await room.lifecycle.create_partitioned(X, 1)
    await room.lifecycle.create_plain(Y)
    await room.lifecycle.create_partitioned(FLEETING, 1)
    here, both = (room.namespaces.local_cluster,), (room.namespaces.local_cluster, "west")
    await room.namespaces.update_policies(TRIAL, lambda policies: policies.changed(replication_clusters=both))
    own, orphan = TopicPolicies(replication_clusters=here), X.partition(1)
    await room.store.commit(
        [Put(keys.topic_policies(Y), TopicPolicyRecord(own).dump()), Put(keys.topic_record(orphan), b"{}")]
    )
    for name, delete in ((X, room.deletion.partitioned_topic), (X.partition(0), room.deletion.topic)):
        with pytest.raises(Unprocessable, match=r"Delete forbidden topic is replicated on clusters \[west\]"):
            await delete(name, force=False)
    await room.deletion.topic(orphan, force=False)  # nobody can open it, so nobody replicates it
    await room.deletion.partitioned_topic(X, force=True)
    await room.deletion.topic(Y, force=False)  # its own policy keeps it at home
    await room.deletion.partitioned_topic(FLEETING, force=False)  # holds nothing for anybody


async def test_plain_twin_of_a_partitioned_topic_goes_alone(room: Room) -> None:
    await room.lifecycle.create_partitioned(X, 1)
    await room.schemas.register(X, SchemaInfo(SchemaType.STRING), by=Requester.ADMIN)
    await room.store.commit([Put(keys.topic_record(X), b'{"ledgers": []}')])
    await room.deletion.topic(X, force=True)
    assert await room.schemas.has_schema(X)
    assert await room.lifecycle.metadata(X) == PartitionedTopicMetadata(1)


async def test_record_that_cannot_be_understood_can_be_deleted(room: Room) -> None:
    await room.store.commit([Put(keys.topic_record(Y), b"{")])
    await room.deletion.topic(Y, force=False)
    with pytest.raises(TopicNotFound):
        await room.deletion.topic(Y, force=False)


async def test_check_has_the_last_word_about_an_inactive_topic(room: Room) -> None:
    topic = await room.registry.open(Y)
    asked = []

    def refuse(found: object) -> None:
        asked.append(found)
        raise PreconditionFailed("active again")

    with pytest.raises(PreconditionFailed):
        await room.deletion.inactive_topic(Y, refuse)
    assert (asked, room.registry.get(Y)) == ([topic], topic)
    await room.deletion.inactive_topic(Y, asked.append)
    assert room.registry.get(Y) is None
    assert await room.store.get(keys.topic_record(Y)) is None


async def test_namespace_and_tenant_by_force_only_where_it_is_allowed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room.deletion, "_config", lambda: BrokerConfig())
    with pytest.raises(OperationNotAllowed):
        await room.deletion.namespace(TRIAL, force=True)
    with pytest.raises(OperationNotAllowed):
        await room.deletion.tenant("public", force=True)
    await room.deletion.namespace(TRIAL, force=False)


async def test_tenant_when_one_of_its_namespaces_cannot_be_deleted_then_none_is(room: Room) -> None:
    both = ("east", "west")
    await room.namespaces.update_policies(TRIAL, lambda policies: policies.changed(replication_clusters=both))
    namespaces = await room.namespaces.list("public")
    assert namespaces.index(str(TRIAL)) > 0
    with pytest.raises(PreconditionFailed, match="Cannot delete the global namespace public/trial"):
        await room.deletion.tenant("public", force=True)
    assert await room.namespaces.list("public") == namespaces
    assert not (await room.namespaces.get_policies(NamespaceName.parse(namespaces[0]))).deleted


async def test_namespace_takes_loaded_topics_along_that_are_not_stored(room: Room) -> None:
    fleeting = TopicName.of(NON_PERSISTENT, "public", "trial", "n")
    await room.registry.open(fleeting)
    other = TopicName.of(NON_PERSISTENT, PUBLIC_DEFAULT.tenant, PUBLIC_DEFAULT.local, "n")
    await room.registry.open(other)
    await room.deletion.namespace(TRIAL, force=False)
    assert list(room.registry.names) == [other]


async def test_keys_that_are_of_no_topic_go_with_their_namespace(room: Room) -> None:
    await room.store.commit(
        [Put(f"{keys.namespace_records(TRIAL)}/persistent/%20", b""), Put("/schemas/public/trial/x", b"")]
    )
    await room.deletion.namespace(TRIAL, force=True)
    assert await disorder(room.store) == []

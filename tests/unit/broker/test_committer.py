"""The loop of decisions over a store that others write to, and the writes of changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, IN_CLUSTER, Committer, Layout, Records
from interpulse.model import changes
from interpulse.model.changes import Change, Decision
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import AlreadyExists, MetadataError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import CommitConflict, CommitTooLarge, Delete, Put
from tests.support.memory_storage import MemoryMetadataStore

DEMO = TenantInfo((), ("east",))
SHOP = NamespaceName("demo", "shop")
TOPIC = TopicName.parse("persistent://demo/shop/t")


class Store(MemoryMetadataStore):
    """Another broker writes before each of the first commits."""

    def __init__(self, races: int = 0, *, changes_max: int = 1000) -> None:
        super().__init__()
        self.races = races
        self.changes_max = changes_max
        self.commits = 0

    async def commit(self, changes: Sequence[StoreChange], expect: Mapping[str, int | None] = {}) -> None:
        if len(changes) > self.changes_max:
            raise CommitTooLarge("too much")
        self.commits += 1
        if self.races:
            self.races -= 1
            await super().commit([Put(keys.tenant("demo"), b"%d" % self.races)])
        await super().commit(changes, expect)


def counting(store: MemoryMetadataStore, previewed: bool = False) -> Any:
    """Decide to replace the number of the tenant's record by one more."""

    async def propose(records: Records) -> Decision[bytes]:
        stored = await records.get(keys.tenant("demo"))
        seen = stored.value if stored else b"none"
        return Decision(seen, (changes.SetTenant("demo", DEMO),))

    return Committer(store).decide(propose, previewed=previewed)


@pytest.mark.parametrize(("races", "seen"), [(0, b"none"), (1, b"0"), (3, b"0")])
async def test_decision_when_others_are_faster_then_rests_on_what_they_wrote(races: int, seen: bytes) -> None:
    store = Store(races)
    assert (await counting(store)).answer == seen
    assert store.commits == races + 1
    stored = await store.get(keys.tenant("demo"))
    assert stored is not None
    assert TenantInfo.load(stored.value) == DEMO


async def test_decision_when_previewed_then_is_the_same_and_nothing_is_stored() -> None:
    store = Store()
    preview = await counting(store, previewed=True)
    assert store.commits == 0
    assert await counting(store) == preview


async def test_decision_when_it_changes_nothing_then_nothing_is_committed() -> None:
    async def propose(records: Records) -> Decision[str]:
        return Decision("answer")

    store = Store()
    assert (await Committer(store).decide(propose)).answer == "answer"
    assert store.commits == 0


async def test_decision_when_refused_then_nothing_is_committed() -> None:
    async def propose(records: Records) -> Decision[None]:
        raise AlreadyExists("no")

    store = Store()
    with pytest.raises(AlreadyExists):
        await Committer(store).decide(propose)
    assert store.commits == 0


async def test_conflict_when_it_is_to_be_raised_then_nothing_is_read_again() -> None:
    async def propose(records: Records) -> Decision[None]:
        records.versions["/lock"] = 7
        records.also.append(Delete("/lock"))
        return Decision(None)

    with pytest.raises(CommitConflict, match="/lock"):
        await Committer(Store()).decide(propose, raised_for=["/lock"])


async def test_decision_when_others_are_always_faster_then_is_given_up() -> None:
    with pytest.raises(MetadataError, match="keeps changing"):
        await counting(Store(races=10_000))


async def test_partitions_when_too_many_for_one_commit_then_come_after_their_topic() -> None:
    async def propose(records: Records) -> Decision[None]:
        created = [changes.CreateTopicRecord(TOPIC.partition(index)) for index in range(700)]
        return Decision(None, (changes.CreatePartitionedMetadata(TOPIC, 700), *created))

    store = Store(changes_max=500)
    opened = keys.topic_record(TOPIC.partition(3))
    await store.commit([Put(opened, b'{"opened": true}')])
    await Committer(store).decide(propose)
    assert len(await store.children(keys.topic_records(SHOP, "persistent"))) == 700
    stored = await store.get(opened)
    assert stored is not None
    assert stored.value == b'{"opened": true}'


STORED: dict[str, object] = {
    keys.partitioned_topic(TOPIC): {"partitions": 2, "deleted": False, "kept": 1},
    keys.topic_record(TOPIC): {"ledgers": [], "properties": {"old": "x"}},
    keys.local_policies(SHOP): {"bundles": {}, "bookieAffinityGroup": "kept"},
    keys.forced_deletion(SHOP): 0,
    keys.schema(TOPIC): 0,
}
POLICIES = TopicPolicyRecord(TopicPolicies(message_ttl_seconds=5))
HALVES = {"boundaries": ["0x0", "0x8", "0xf"], "numBundles": 2}
WRITES: list[tuple[Layout, Change, str, object]] = [
    (
        ALONE,
        changes.SetPartitionCount(TOPIC, 5),
        keys.partitioned_topic(TOPIC),
        {"partitions": 5, "deleted": False, "kept": 1},
    ),
    (
        ALONE,
        changes.SetPartitionedMetadata(TOPIC, PartitionedTopicMetadata(2, deleted=True)),
        keys.partitioned_topic(TOPIC),
        {"partitions": 2, "deleted": True},
    ),
    (ALONE, changes.DeletePartitionedMetadata(TOPIC), keys.partitioned_topic(TOPIC), None),
    (
        ALONE,
        changes.SetTopicProperties(TOPIC, {"a": "b"}),
        keys.topic_record(TOPIC),
        {"ledgers": [], "properties": {"a": "b"}},
    ),
    (ALONE, changes.SetTopicPolicies(TOPIC, POLICIES), keys.topic_policies(TOPIC), POLICIES.to_json()),
    (ALONE, changes.SetTopicPolicies(TOPIC, TopicPolicyRecord()), keys.topic_policies(TOPIC), None),
    (ALONE, changes.DeleteSchema(TOPIC), keys.schema(TOPIC), None),
    (
        IN_CLUSTER,
        changes.SetBundles(SHOP, ("0x0", "0x8", "0xf")),
        keys.local_policies(SHOP),
        {"migrated": False, "bundles": HALVES, "bookieAffinityGroup": "kept"},
    ),
    (ALONE, changes.SetForcedDeletion(SHOP, forced=False), keys.forced_deletion(SHOP), None),
    (ALONE, changes.DeleteNamespace(SHOP), keys.local_policies(SHOP), STORED[keys.local_policies(SHOP)]),
    (IN_CLUSTER, changes.DeleteNamespace(SHOP), keys.local_policies(SHOP), None),
    (ALONE, changes.SetDynamicConfiguration({"a": "1"}), keys.CONFIGURATION, {"a": "1"}),
]


@pytest.mark.parametrize(("layout", "change", "key", "value"), WRITES, ids=[type(row[1]).__name__ for row in WRITES])
async def test_change_when_committed_then_its_record_says_so(
    layout: Layout, change: Change, key: str, value: object
) -> None:
    async def propose(records: Records) -> Decision[None]:
        return Decision(None, (change,))

    store = MemoryMetadataStore()
    await store.commit([Put(at, json.dumps(body).encode()) for at, body in STORED.items()])
    await Committer(store, layout).decide(propose)
    stored = await store.get(key)
    assert (None if stored is None else json.loads(stored.value)) == value

"""The policies of single topics: read, change, commit if the topic is unchanged."""

from __future__ import annotations

from collections.abc import Callable

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import PreconditionFailed, TopicNotFound
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.messaging_policies import DispatchRate
from interpulse.model.policies.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.model.topics import TopicKind
from interpulse.rules.effective_policies import topic_level
from interpulse.storage.api import Delete, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict

__all__ = ["TopicPolicyRecords", "stored_policies"]

_NOTHING_SET = TopicPolicyRecord()


async def stored_policies(store: MetadataStore, name: TopicName) -> TopicPolicies:
    """The topic's own policies, or those of the topic that it is a partition of."""
    return topic_level(await _stored_record(store, name))


async def _stored_record(store: MetadataStore, name: TopicName) -> TopicPolicyRecord:
    stored = await store.get(keys.topic_policies(name))
    return TopicPolicyRecord.load(stored.value) if stored else _NOTHING_SET


class TopicPolicyRecords:
    """One record per topic, under its base name: the partitions share it. Deleted with the topic."""

    def __init__(self, store: MetadataStore, lifecycle: TopicLifecycle) -> None:
        self._store = store
        self._lifecycle = lifecycle

    async def find(self, name: TopicName) -> TopicPolicies:
        """The topic's own policies, or those of the topic that it is a partition of."""
        return await stored_policies(self._store, name)

    async def record(self, name: TopicName) -> TopicPolicyRecord:
        """The same, on this cluster and on all, apart."""
        return await _stored_record(self._store, name)

    async def replication_clusters(self, namespace: NamespaceName) -> dict[TopicName, tuple[str, ...]]:
        """The persistent topics of a namespace that have replication clusters of their own."""
        clusters = {
            name: topic_level(record).replication_clusters for name, record in (await self._all(namespace)).items()
        }
        return {name: each for name, each in clusters.items() if each}

    async def replicator_dispatch_rates(self, namespace: NamespaceName) -> dict[TopicName, DispatchRate]:
        """The persistent topics of a namespace that have a rate of replication of their own."""
        rates = {
            name: topic_level(record).replicator_dispatch_rate for name, record in (await self._all(namespace)).items()
        }
        return {name: each for name, each in rates.items() if each}

    async def set_everywhere(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicies]:
        """The persistent topics of a namespace with policies for all their clusters, and these."""
        found = {name: record.everywhere for name, record in (await self._all(namespace)).items()}
        return {name: each for name, each in found.items() if each.to_json()}

    async def _all(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicyRecord]:
        parent = keys.all_topic_policies(namespace, PERSISTENT)
        paths = [f"{parent}/{name}" for name in await self._store.children(parent)]
        found = (await self._store.get_many(paths)).items()
        topics = ((keys.topic_of_topic_policies(path), stored) for path, stored in found)
        return {topic: TopicPolicyRecord.load(stored.value) for topic, stored in topics if topic is not None}

    async def record_of_existing(self, name: TopicName) -> TopicPolicyRecord:
        """The policies of the topic; raises PreconditionFailed for a partition, and TopicNotFound."""
        await self._check(name)
        return await _stored_record(self._store, name)

    async def update(
        self, name: TopicName, change: Callable[[TopicPolicies], TopicPolicies], *, everywhere: bool = False
    ) -> None:
        """Store what ``change`` makes of the policies of this cluster, or of those for all clusters.

        It may be called again if another change was faster. Raises PreconditionFailed for a partition, and
        TopicNotFound; then nothing is stored.
        """
        await self._store_changed(
            name,
            lambda record: record.changed(change(record.level(everywhere=everywhere)), everywhere=everywhere),
        )

    async def clear(self, name: TopicName) -> None:
        """Take away what is set for the topic, on both levels at once. Raises as `update`."""
        await self._store_changed(name, lambda record: _NOTHING_SET)

    async def _store_changed(self, name: TopicName, change: Callable[[TopicPolicyRecord], TopicPolicyRecord]) -> None:
        key, owners = keys.topic_policies(name), (keys.partitioned_topic(name), keys.topic_record(name))

        async def attempt() -> None:
            found = await self._store.get_many([key, *owners])
            await self._check(name)
            record = TopicPolicyRecord.load(found[key].value) if key in found else _NOTHING_SET
            changed = change(record)
            if changed != record:
                update = Put(key, changed.dump()) if changed.to_json() else Delete(key)
                expect: dict[str, int | None] = {each: found[each].version for each in owners if each in found}
                expect |= await self._lifecycle.expected_versions(name)
                await self._store.commit([update], expect | {key: found[key].version if key in found else None})

        await retry_on_conflict(attempt)

    async def _check(self, name: TopicName) -> None:
        if name.is_partition:
            raise PreconditionFailed(
                f"Not allowed to set/get topic policy for a partition: those of {name} are set for {name.base}"
            )
        if (await self._lifecycle.existence(name)).kind is TopicKind.ABSENT:
            raise TopicNotFound(f"Topic {name} not found")

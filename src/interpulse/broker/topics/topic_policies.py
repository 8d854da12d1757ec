"""The policies of single topics: read, change, commit if the topic is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import PreconditionFailed, TopicNotFound
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import DispatchRate
from interpulse.model.topics import TopicKind
from interpulse.rules.effective_policies import topic_level
from interpulse.storage.api import Delete, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict

if TYPE_CHECKING:
    from interpulse.broker.topics.change_events.change_events import ChangeEvents

_NOTHING_SET = TopicPolicyRecord()


async def stored_policies(store: MetadataStore, name: TopicName) -> TopicPolicies:
    """Return the policies of a topic or, for a partition, of its partitioned topic."""
    return topic_level(await stored_record(store, name))


async def stored_record(store: MetadataStore, name: TopicName) -> TopicPolicyRecord:
    """Return the policies of `stored_policies` by level."""
    stored = await store.get(keys.topic_policies(name))
    return TopicPolicyRecord.load(stored.value) if stored else _NOTHING_SET


class TopicPolicyRecords:
    """One record per topic, under its base name, which its partitions share. It is deleted with the topic."""

    def __init__(self, store: MetadataStore, lifecycle: TopicLifecycle, events: ChangeEvents | None = None) -> None:
        """Create the records; without ``events`` no other broker changes policies."""
        self._store = store
        self._lifecycle = lifecycle
        self.events = events

    async def find(self, name: TopicName) -> TopicPolicies:
        """Return the policies of a topic or, for a partition, of its partitioned topic. Raise ServiceNotReady."""
        if not name.is_system:
            await self._follow(name.namespace_name)
        return await stored_policies(self._store, name)

    async def _follow(self, namespace: NamespaceName) -> None:
        if self.events is not None:
            await self.events.follow(namespace)

    async def record(self, name: TopicName) -> TopicPolicyRecord:
        """Return the policies for this cluster and for all clusters, separately. Raise ServiceNotReady."""
        return await stored_record(self._store, name)

    async def replication_clusters(self, namespace: NamespaceName) -> dict[TopicName, tuple[str, ...]]:
        """Return the persistent topics of a namespace that have replication clusters of their own."""
        clusters = {
            name: topic_level(record).replication_clusters for name, record in (await self._all(namespace)).items()
        }
        return {name: clusters_of for name, clusters_of in clusters.items() if clusters_of}

    async def replicator_dispatch_rates(self, namespace: NamespaceName) -> dict[TopicName, DispatchRate]:
        """Return the persistent topics of a namespace that have a replication rate of their own."""
        rates = {
            name: topic_level(record).replicator_dispatch_rate for name, record in (await self._all(namespace)).items()
        }
        return {name: rate for name, rate in rates.items() if rate}

    async def set_everywhere(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicies]:
        """Return the persistent topics of a namespace that have policies for all clusters."""
        levels = {name: record.everywhere for name, record in (await self._all(namespace)).items()}
        return {name: policies for name, policies in levels.items() if policies.to_json()}

    async def _all(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicyRecord]:
        await self._follow(namespace)
        parent = keys.all_topic_policies(namespace, PERSISTENT)
        paths = [f"{parent}/{name}" for name in await self._store.children(parent)]
        records = (await self._store.get_many(paths)).items()
        topics = ((keys.topic_of_topic_policies(path), stored) for path, stored in records)
        return {topic: TopicPolicyRecord.load(stored.value) for topic, stored in topics if topic is not None}

    async def record_of_existing(self, name: TopicName) -> TopicPolicyRecord:
        """Return the policies of an existing topic. Raise PreconditionFailed for a partition, and TopicNotFound."""
        await self._check(name)
        await self._follow(name.namespace_name)
        return await stored_record(self._store, name)

    async def update(
        self, name: TopicName, change: Callable[[TopicPolicies], TopicPolicies], *, everywhere: bool = False
    ) -> None:
        """Store the policies that ``change`` returns, for this cluster or for all clusters.

        ``change`` runs again after a conflict. Raises PreconditionFailed for a partition, and TopicNotFound; then
        nothing is stored.
        """
        await self._store_changed(
            name, lambda record: record.changed(change(record.level(everywhere=everywhere)), everywhere=everywhere)
        )

    async def clear(self, name: TopicName) -> None:
        """Remove all policies of the topic in one step, on both levels. Raises the errors of `update`."""
        await self._store_changed(name, lambda record: _NOTHING_SET)

    async def _store_changed(self, name: TopicName, change: Callable[[TopicPolicyRecord], TopicPolicyRecord]) -> None:
        key, owners = keys.topic_policies(name), (keys.partitioned_topic(name), keys.topic_record(name))

        if self.events is not None:
            await self._check(name)
            await self.events.refresh(name.namespace_name)

        async def attempt() -> None:
            stored = await self._store.get_many([key, *owners])
            await self._check(name)
            record = TopicPolicyRecord.load(stored[key].value) if key in stored else _NOTHING_SET
            changed = change(record)
            if changed != record:
                if self.events is not None:
                    changed = await self.events.report(name, record, changed)
                update = Put(key, changed.dump()) if changed.to_json() else Delete(key)
                expect: dict[str, int | None] = {owner: stored[owner].version for owner in owners if owner in stored}
                expect |= await self._lifecycle.expected_versions(name)
                await self._store.commit([update], expect | {key: stored[key].version if key in stored else None})

        await retry_on_conflict(attempt)

    async def _check(self, name: TopicName) -> None:
        if name.is_partition:
            raise PreconditionFailed(
                f"Not allowed to set/get topic policy for a partition: those of {name} are set for {name.base}"
            )
        if (await self._lifecycle.existence(name)).kind is TopicKind.ABSENT:
            raise TopicNotFound(f"Topic {name} not found")

"""The commit of decisions: the one loop through which every decided write of metadata goes.

The loop reads records and notes their versions, then asks the rule. If the rule returns changes, they are committed
only if none of those records has changed; after a conflict everything is read again. The store answers with the newest
durable values, so a refusal never rests on an old read. A preview runs the same loop without the commit.

A few writes need no rule and commit by themselves: bundle locks and the leader election (``broker/ownership``), the
counters of a loaded topic, which belong to its owner, and the status reports of the replication job. Stores that keep
entries commit them with the records that name them: deleted logs, and versions of schemas.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from interpulse.broker import metadata_paths as keys
from interpulse.model import changes
from interpulse.model.changes import Change, ClusterChange, Decision, TenantChange, TopicChange
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.storage.api import Change as StoreChange
from interpulse.storage.api import CommitConflict, CommitTooLarge, Delete, MetadataStore, Put, Versioned
from interpulse.storage.cas import retry_on_conflict
from interpulse.storage.cursors import JSON_CURSORS, CursorCodec
from interpulse.storage.logs.topic_records import JSON_RECORDS, TopicRecordCodec
from interpulse.storage.managed_ledger.cursor_codec import PulsarCursors
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords

A = TypeVar("A")
_RECORDS_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Layout:
    """Forms and places of records: those of a standalone broker, or those of a cluster, which are Pulsar's own.

    It is chosen with the stores, and passed to the code that reads or writes these records.
    Source: docs/reference/cluster-protocol.md#one-broker-alone.
    """

    topic_records: TopicRecordCodec
    cursors: CursorCodec
    failure_domains: Callable[[str], str]
    """The key above the failure domains of a cluster, by its name."""
    shared: bool
    """True if other brokers work on the same metadata.

    Then the bundles of a namespace have their own record, and only the owner of a topic writes its records and cursors.
    """


ALONE: Final = Layout(JSON_RECORDS, JSON_CURSORS, keys.failure_domains, shared=False)
IN_CLUSTER: Final = Layout(PulsarTopicRecords(), PulsarCursors(), keys.failure_domains_in_cluster, shared=True)


class Records:
    """The records that a decision rests on, with their versions; one for each attempt."""

    def __init__(self, store: MetadataStore) -> None:
        self.versions: dict[str, int | None] = {}
        """The versions that the commit expects; None = absent."""
        self.also: list[StoreChange] = []
        """Records that are not decided upon and go along, such as the cursors of a new partition."""
        self.claim: AbstractContextManager[None] = nullcontext()
        """Held during the commit; it may raise `CommitConflict`."""
        self._store = store

    async def get(self, key: str) -> Versioned | None:
        """Return the newest value of a key, None if it is absent."""
        stored = await self._store.get(key)
        self.versions[key] = stored.version if stored else None
        return stored

    async def get_many(self, wanted: Sequence[str]) -> dict[str, Versioned]:
        """Return the newest values of several keys from one consistent read; absent keys are left out."""
        records = await self._store.get_many(wanted)
        self.versions |= {key: records[key].version if key in records else None for key in wanted}
        return records


class Committer:
    """Commits the changes of decisions to the metadata store."""

    def __init__(self, store: MetadataStore, layout: Layout = ALONE) -> None:
        self._store = store
        self._layout = layout

    async def decide(
        self,
        propose: Callable[[Records], Awaitable[Decision[A]]],
        *,
        previewed: bool = False,
        raised_for: Collection[str] = (),
        commit: Callable[[Sequence[Change], Records], Awaitable[None]] | None = None,
    ) -> Decision[A]:
        """Return the decision after its changes are durable, or without a commit if ``previewed``.

        ``propose`` reads the records and asks the rule; it runs again after a conflict. A conflict of one of the keys
        ``raised_for`` is raised. ``commit`` is for changes that another store commits with its entries; it expects
        `Records.versions`. Raises the errors of ``propose``, and MetadataError after too many conflicts.
        """

        async def attempt() -> Decision[A]:
            records = Records(self._store)
            decision = await propose(records)
            if (decision.changes or records.also) and not previewed:
                with records.claim:
                    await (commit or self._commit)(decision.changes, records)
            return decision

        return await retry_on_conflict(attempt, raised_for=raised_for)

    async def _commit(self, decided: Sequence[Change], records: Records) -> None:
        writes = [*await self.writes(decided), *records.also]
        expect: dict[str, int | None] = dict.fromkeys(_created(decided)) | records.versions
        try:
            await self._store.commit(writes, expect)
        except CommitTooLarge:
            await self._commit_in_parts(writes, expect)

    async def _commit_in_parts(self, writes: Sequence[StoreChange], expect: Mapping[str, int | None]) -> None:
        """Commit the records of many new partitions after everything else, as Pulsar does.

        If this ends early, a partition without a record is created when it is opened.
        """
        new = [write.key for write in writes if isinstance(write, Put) and expect.get(write.key, 0) is None]
        later = {key for key in new if key.startswith(f"{keys.TOPIC_RECORDS}/")}
        first = [write for write in writes if write.key not in later]
        await self._store.commit(first, {key: version for key, version in expect.items() if key not in later})
        rest = [write for write in writes if write.key in later]
        for begin in range(0, len(rest), _RECORDS_AT_ONCE):
            await self._create_missing({write.key: write for write in rest[begin : begin + _RECORDS_AT_ONCE]})

    async def _create_missing(self, records: dict[str, StoreChange]) -> None:
        while records:
            try:
                return await self._store.commit(list(records.values()), dict.fromkeys(records))
            except CommitConflict as conflict:
                if records.pop(conflict.key, None) is None:
                    raise

    # --- the interpreter of changes for the metadata store

    async def writes(self, decided: Sequence[Change]) -> list[StoreChange]:
        """Return the writes that make these changes true.

        A record of which only a part is replaced is read again, so the commit must expect the version that was read.
        """
        return [write for change in decided for write in await self._writes(change)]

    async def _writes(self, change: Change) -> Sequence[StoreChange]:
        if isinstance(change, TopicChange):
            return [await self._topic_write(change)]
        if isinstance(change, TenantChange):
            return [_tenant_write(change)]
        if isinstance(change, ClusterChange):
            return self._cluster_writes(change)
        match change:
            case changes.SetNamespacePolicies(namespace, policies):
                return [Put(keys.namespace_policies(namespace), policies.dump())]
            case changes.SetBundles(namespace, boundaries):
                return [await self._bundles_write(keys.local_policies(namespace), boundaries)]
            case changes.SetForcedDeletion(namespace, forced):
                key = keys.forced_deletion(namespace)
                return [Put(key, b"") if forced else Delete(key)]
            case changes.DeleteNamespace(namespace):
                own = (keys.namespace_policies, keys.forced_deletion, keys.replication_status)
                shared = [keys.local_policies] if self._layout.shared else []
                return [Delete(key(namespace)) for key in (*own, *shared)]
            case changes.AppendSchema():
                raise AssertionError("the store of schemas commits them, with their ledgers")

    async def _topic_write(self, change: TopicChange) -> StoreChange:
        match change:
            case changes.CreatePartitionedMetadata(topic, partitions, properties):
                metadata = PartitionedTopicMetadata(partitions, properties=properties)
                return Put(keys.partitioned_topic(topic), metadata.dump())
            case changes.CreateTopicRecord(topic, properties):
                own = {"properties": dict(properties)} if properties else {}
                return Put(keys.topic_record(topic), self._layout.topic_records.amended(None, **own))
            case changes.SetPartitionCount(topic, partitions):
                key = keys.partitioned_topic(topic)
                stored = await self._present(key)
                return Put(key, replace(PartitionedTopicMetadata.load(stored), partitions=partitions).dump())
            case changes.SetPartitionedMetadata(topic, metadata):
                return Put(keys.partitioned_topic(topic), metadata.dump())
            case changes.DeletePartitionedMetadata(topic):
                return Delete(keys.partitioned_topic(topic))
            case changes.SetTopicProperties(topic, properties):
                existing = await self._store.get(keys.topic_record(topic))
                record = self._layout.topic_records.amended(
                    existing.value if existing else None, properties=dict(properties)
                )
                return Put(keys.topic_record(topic), record)
            case changes.SetTopicPolicies(topic, policies):
                key = keys.topic_policies(topic)
                return Put(key, policies.dump()) if policies.to_json() else Delete(key)
            case changes.DeleteTopicPolicies(topic):
                return Delete(keys.topic_policies(topic))
            case changes.DeleteSchema(topic):
                return Delete(keys.schema(topic))

    async def _present(self, key: str) -> bytes:
        stored = await self._store.get(key)
        if stored is None:
            raise CommitConflict(key)
        return stored.value

    def _cluster_writes(self, change: ClusterChange) -> Sequence[StoreChange]:
        match change:
            case changes.ClaimMetadata(cluster):
                return [Put(keys.LOCAL_CLUSTER, cluster.encode())]
            case changes.SetCluster(name, data):
                return [Put(keys.cluster(name), data.dump())]
            case changes.DeleteCluster(name):
                above = self._layout.failure_domains(name)
                parts = (keys.isolation_policies(name), keys.cluster_migration(name), keys.cluster(name), above)
                return [Delete(key) for key in parts]
            case changes.SetClusterMigration(name, migration):
                return [Put(keys.cluster_migration(name), migration.dump())]
            case changes.SetFailureDomain(cluster, name, domain):
                return [Put(keys.failure_domain(self._layout.failure_domains(cluster), name), domain.dump())]
            case changes.DeleteFailureDomain(cluster, name):
                return [Delete(keys.failure_domain(self._layout.failure_domains(cluster), name))]
            case changes.SetIsolationPolicies(cluster, policies):
                return [Put(keys.isolation_policies(cluster), json.dumps(policies).encode())]
            case changes.SetDynamicConfiguration(values):
                return [Put(keys.CONFIGURATION, json.dumps(dict(values)).encode())]

    async def _bundles_write(self, key: str, boundaries: tuple[str, ...]) -> Put:
        """Return the record with these bundles; its other fields stay."""
        stored = await self._store.get(key)
        body = json.loads(stored.value) if stored and stored.value else {}
        bundles = {"boundaries": list(boundaries), "numBundles": len(boundaries) - 1}
        record = {"migrated": False, **body, "bundles": bundles}
        return Put(key, json.dumps(record, separators=(",", ":")).encode())


def _tenant_write(change: TenantChange) -> StoreChange:
    match change:
        case changes.SetTenant(name, tenant):
            return Put(keys.tenant(name), tenant.dump())
        case changes.DeleteTenant(name):
            return Delete(keys.tenant(name))


def _created(decided: Sequence[Change]) -> list[str]:
    """Return the keys that the changes create: they must be absent."""
    topics = [change.topic for change in decided if isinstance(change, changes.CreateTopicRecord)]
    based = [change.topic for change in decided if isinstance(change, changes.CreatePartitionedMetadata)]
    return [*map(keys.topic_record, topics), *map(keys.partitioned_topic, based)]

"""How the replication of each topic is going: what the job reports, and what is known without it.

A record is ``{topic, cluster, state, since, reason, remedy, nextRetryAt, lagEntries, lagSeconds, batchId, batchMs,
provisioned}``; there is one for each topic (or partition) and remote cluster. Times are milliseconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from interpulse.broker import keys
from interpulse.broker.commits import until_unchanged
from interpulse.broker.lifecycle import TopicLifecycle
from interpulse.broker.namespaces import Namespaces
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.storage.api import MetadataStore, Put

__all__ = ["STATES", "ReplicationStatus"]

Record = dict[str, Any]

STATES: Final = ("REPLICATING", "PROVISIONING", "HELD", "DISCONNECTED", "NOT_APPLICABLE", "DISABLED")
_FIELDS: Final = (
    "topic",
    "cluster",
    "state",
    "since",
    "reason",
    "remedy",
    "nextRetryAt",
    "lagEntries",
    "lagSeconds",
    "batchId",
    "batchMs",
    "provisioned",
)


class ReplicationStatus:
    """Keeps the job's reports per namespace and completes them from the policies."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        *,
        without_job: Callable[[Sequence[str]], list[Record]] = lambda topics: [],
    ) -> None:
        """``without_job`` gives the records for topics while the job does not run, nothing while it does."""
        self._store = store
        self._namespaces = namespaces
        self._lifecycle = lifecycle
        self._without_job = without_job

    async def report(self, namespace: NamespaceName, records: Sequence[Any]) -> None:
        """Take over the job's records; each replaces the one of the same topic and cluster. Raises InvalidRequest."""
        checked = [_checked(namespace, record) for record in records]
        await self._namespaces.get_policies(namespace)
        key = keys.replication_status(namespace)

        async def attempt() -> None:
            stored = await self._store.get(key)
            merged = _by_identity(json.loads(stored.value)) if stored else {}
            merged |= _by_identity(checked)
            expect = {key: stored.version if stored else None, **await self._namespaces.guard(namespace)}
            await self._store.commit([Put(key, json.dumps(list(merged.values())).encode())], expect)

        await until_unchanged(attempt)

    async def of_namespace(self, namespace: NamespaceName) -> list[Record]:
        """The records of all topics of a namespace, sorted; raises NamespaceNotFound."""
        policies = await self._namespaces.get_policies(namespace)
        remotes = [name for name in policies.replication_clusters if name != self._namespaces.local_cluster]
        reported = await self._reported(namespace)
        records = [
            {**record, "state": "DISABLED", "reason": f"{record['cluster']} is not in the replication clusters"}
            for record in reported
            if record["cluster"] not in remotes
        ]
        if remotes:
            topics = await self._topics(namespace)
            stopped = self._without_job([str(topic) for topic in topics if topic.is_persistent])
            for topic in topics:
                for remote in remotes:
                    records += self._of_topic(topic, remote, reported, stopped)
        return sorted(records, key=lambda record: (record["topic"], record["cluster"]))

    async def of_topic(self, name: TopicName) -> list[Record]:
        """The records of a topic, for a partitioned one those of its partitions too; raises TopicNotFound."""
        await self._lifecycle.partitions(name, create=False)
        records = await self.of_namespace(name.namespace_name)
        names = {str(name), str(name.base)}
        return [
            record
            for record in records
            if record["topic"] in names or (not name.is_partition and TopicName.parse(record["topic"]).base == name)
        ]

    def _of_topic(self, topic: TopicName, remote: str, reported: list[Record], stopped: list[Record]) -> list[Record]:
        if not topic.is_persistent:
            reason = "non-persistent topics have no log, so they are not replicated"
            return [_record(topic, remote, "NOT_APPLICABLE", reason)]
        known = [record for record in reported if record["cluster"] == remote and _belongs(record, topic)]
        halted = [record for record in stopped if record["cluster"] == remote and _belongs(record, topic)]
        if halted:
            return halted
        return known or [_record(topic, remote, "PROVISIONING", "the replication job has not reported this topic yet")]

    async def _topics(self, namespace: NamespaceName) -> list[TopicName]:
        bases: set[TopicName] = set()
        for domain in (PERSISTENT, NON_PERSISTENT):
            bases.update(await self._lifecycle.list_partitioned(namespace, domain, include_system=False))
            single = await self._lifecycle.list_topics(namespace, domain, include_system=False)
            bases.update(name for name in single if not name.is_partition)
        return sorted(bases, key=str)

    async def _reported(self, namespace: NamespaceName) -> list[Record]:
        stored = await self._store.get(keys.replication_status(namespace))
        records: list[Record] = json.loads(stored.value) if stored else []
        return records


def _belongs(record: Record, topic: TopicName) -> bool:
    return TopicName.parse(record["topic"]).base == topic


def _by_identity(records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    return {(record["topic"], record["cluster"]): record for record in records}


def _record(topic: TopicName, cluster: str, state: str, reason: str) -> Record:
    values = {"topic": str(topic), "cluster": cluster, "state": state, "reason": reason}
    return {field: values.get(field) for field in _FIELDS}


def _checked(namespace: NamespaceName, record: Any) -> Record:
    if not isinstance(record, dict):
        raise InvalidRequest("a status record is an object")
    topic = TopicName.parse(str(record.get("topic")))
    if topic.namespace_name != namespace:
        raise InvalidRequest(f"{topic} is not in namespace {namespace}")
    if not isinstance(record.get("cluster"), str) or record.get("state") not in STATES:
        raise InvalidRequest(f"a status record names its cluster, and its state is one of {', '.join(STATES)}")
    return {field: record.get(field) for field in _FIELDS} | {"topic": str(topic)}

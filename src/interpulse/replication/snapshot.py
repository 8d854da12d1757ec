"""One namespace as it is on one cluster, read through one small interface here and on other clusters.

Few questions: topics are listed with their counts. A real broker lists names only; then each partitioned topic is asked
for its count, a bounded number at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from interpulse.in_turns import in_turns
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import (
    NamespaceNotFound,
    NotFound,
    PulsarError,
    RemoteClusterUnavailable,
    TenantNotFound,
)
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import PARTITIONED, AutoTopicCreation, NamespacePolicies
from interpulse.rules.compatibility import NamespaceSnapshot
from interpulse.rules.effective_policies import effective_schema_strategy

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

__all__ = [
    "SNAPSHOT_SETTINGS",
    "AdminReading",
    "Connect",
    "NamespaceReading",
    "broker_auto_creation",
    "differing",
    "read_namespace",
    "read_remote",
    "snapshot_of",
]

T = TypeVar("T")
Connect = Callable[[str, ClusterData], "AdminClient"]
"""Makes a client for a cluster; the caller closes it. Raises RemoteClusterUnavailable."""

_QUESTIONS_MAX: Final = 16
"""At once and per cluster: a comparison must not crowd out what the cluster is there for."""


class NamespaceReading(Protocol):
    """What is asked of a cluster. Nothing is created; a namespace that is not there raises NamespaceNotFound."""

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies: ...

    async def settings(self) -> Mapping[str, str]:
        """The broker's configuration in force, by Pulsar's keys."""

    async def partitioned(self, namespace: NamespaceName) -> Mapping[TopicName, int | None]:
        """Partitioned topics of both domains, system topics included, and their counts; None = ask `partitions`."""

    async def stored(self, namespace: NamespaceName) -> Sequence[TopicName]:
        """Persistent topics and partitions, system topics included."""

    async def partitions(self, topic: TopicName) -> int:
        """Raises NotFound."""


class AdminReading:
    """Reads through the admin API."""

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return await self._admin.namespaces.policies(namespace)

    async def settings(self) -> Mapping[str, str]:
        """See `NamespaceReading`."""
        return await self._admin.brokers.runtime_configuration()

    async def partitioned(self, namespace: NamespaceName) -> Mapping[TopicName, int | None]:
        """See `NamespaceReading`."""
        counts = await self._admin.topics.partition_counts(namespace, system_included=True)
        return {TopicName.parse(text): count async for some in in_turns(counts.items()) for text, count in some}

    async def stored(self, namespace: NamespaceName) -> Sequence[TopicName]:
        """See `NamespaceReading`."""
        names = await self._admin.topics.list(namespace, domains=(PERSISTENT,), system_included=True)
        return [TopicName.parse(text) async for some in in_turns(names) for text in some]

    async def partitions(self, topic: TopicName) -> int:
        """See `NamespaceReading`."""
        return (await self._admin.topics.partitioned_metadata(topic)).partitions


async def read_namespace(reading: NamespaceReading, namespace: NamespaceName) -> NamespaceSnapshot:
    """The namespace on the cluster that is the standard; partitions left without metadata count as a plain topic."""
    return await _snapshot(reading, namespace, await reading.policies(namespace), left_overs_counted=True)


async def read_remote(
    cluster: str,
    data: ClusterData,
    namespace: NamespaceName,
    connect: Connect,
    *,
    only: Collection[TopicName] | None = None,
) -> NamespaceSnapshot | None:
    """The namespace on another cluster; None if both clusters share one configuration store, so there is no other.

    With ``only``, just what a comparison of these topics looks at: no schema policies. Raises NamespaceNotFound, and
    RemoteClusterUnavailable which says why the cluster cannot be read.
    """
    async with connect(cluster, data) as admin:
        reading = AdminReading(admin)
        try:
            policies = await reading.policies(namespace)
            if cluster not in {*policies.replication_clusters, *policies.allowed_clusters}:
                await _check_name(cluster, admin)
                return None
            return await _snapshot(reading, namespace, policies, only=only)
        except (NamespaceNotFound, TenantNotFound) as error:
            raise NamespaceNotFound(str(error)) from error
        except PulsarError as error:
            raise RemoteClusterUnavailable(
                f"Cluster {cluster} at {admin.web_url} cannot be compared: {error}"
            ) from error
        except (AttributeError, TypeError, ValueError) as error:  # not the JSON of the admin API
            raise RemoteClusterUnavailable(
                f"Cluster {cluster} at {admin.web_url} cannot be compared: its answers are not those of a broker"
            ) from error


async def _check_name(cluster: str, admin: AdminClient) -> None:
    """A namespace that does not list its cluster is the one it has here, unless the address leads to another cluster.

    Pulsar takes any such cluster for one that shares the configuration store, ours included.
    """
    name = (await admin.brokers.runtime_configuration()).get("clusterName", cluster)
    if name != cluster:
        raise RemoteClusterUnavailable(f"it is called {name} there, and a cluster is registered under its own name")


async def _snapshot(
    reading: NamespaceReading,
    namespace: NamespaceName,
    policies: NamespacePolicies,
    *,
    only: Collection[TopicName] | None = None,
    left_overs_counted: bool = False,
) -> NamespaceSnapshot:
    settings = await reading.settings() if only is None or _is_incomplete(policies.auto_topic_creation) else {}
    partitions, left_over = await _partitions(reading, namespace, only, left_overs_counted)
    return replace(snapshot_of(policies, settings), partitions=partitions, left_over=left_over)


def snapshot_of(policies: NamespacePolicies, settings: Mapping[str, str]) -> NamespaceSnapshot:
    """The policies in force, with the broker's settings where the namespace has none of its own; without topics."""
    override = policies.auto_topic_creation
    updates = policies.allow_auto_update_schema
    if updates is None:
        updates = settings.get("isAllowAutoUpdateSchemaEnabled", "true") == "true"
    return NamespaceSnapshot(
        _auto_creation(override, settings),
        {},
        auto_creation_source="broker" if override is None else "namespace",
        schema_strategy=effective_schema_strategy(policies, settings.get("schemaCompatibilityStrategy", "FULL")),
        auto_update_schema=updates,
        replicator_may_update_schema=updates or policies.allow_auto_update_schema_with_replicator,
    )


SNAPSHOT_SETTINGS: Final = (
    "allowAutoTopicCreation",
    "allowAutoTopicCreationType",
    "defaultNumPartitions",
    "isAllowAutoUpdateSchemaEnabled",
    "schemaCompatibilityStrategy",
)
"""The settings of a broker that `snapshot_of` looks at."""


def _is_incomplete(override: AutoTopicCreation | None) -> bool:
    """Whether the broker's settings count too: Pulsar takes from them the count that an override lacks."""
    return override is None or (override.topic_type == PARTITIONED and override.default_partitions is None)


def _auto_creation(override: AutoTopicCreation | None, settings: Mapping[str, str]) -> AutoTopicCreation:
    if override and not _is_incomplete(override):
        return override
    broker = broker_auto_creation(settings)
    return replace(override, default_partitions=broker.default_partitions) if override else broker


def broker_auto_creation(settings: Mapping[str, str]) -> AutoTopicCreation:
    """What a broker does for namespaces without an override, read from its configuration."""
    return AutoTopicCreation(
        settings.get("allowAutoTopicCreation", "true") == "true",
        settings.get("allowAutoTopicCreationType"),
        int(settings.get("defaultNumPartitions", "1")),
    )


async def _partitions(
    reading: NamespaceReading, namespace: NamespaceName, only: Collection[TopicName] | None, left_overs_counted: bool
) -> tuple[dict[TopicName, int], frozenset[TopicName]]:
    """Counts by base name, and the bases of which only partitions without metadata are left, where these count."""
    stored = await reading.stored(namespace)
    partitioned = await reading.partitioned(namespace)  # behind the partitions: one created meanwhile has its count
    wanted: dict[TopicName, int | None] = {}
    async for some in in_turns(partitioned.items()):
        wanted |= {name: count for name, count in some if only is None or name in only}
    asked = [name for name, count in wanted.items() if count is None]
    limit = asyncio.Semaphore(_QUESTIONS_MAX)
    counts = await _together([_count(reading, name, limit) for name in asked])
    wanted |= dict(zip(asked, counts, strict=True))
    found: dict[TopicName, int] = {}
    async for names in in_turns(stored):
        found |= dict.fromkeys((name for name in names if name.partition_index < 0), 0)
    async for some in in_turns(wanted.items()):
        found |= {name: count for name, count in some if count is not None}
    if not left_overs_counted:
        return found, frozenset()
    left_over = [name.base async for names in in_turns(stored) for name in names if name.base not in found]
    return dict.fromkeys(left_over, 0) | found, frozenset(left_over)


async def differing(local: NamespaceSnapshot, remote: NamespaceSnapshot) -> tuple[NamespaceSnapshot, NamespaceSnapshot]:
    """Both without the topics that rules find nothing to say of: those that are equal, and those that are here only."""
    here: dict[TopicName, int] = {}
    there: dict[TopicName, int] = {}
    async for some in in_turns(remote.partitions.items()):
        for topic, count in some:
            known = local.partitions.get(topic)
            if known != count:
                there[topic] = count
                if known is not None:
                    here[topic] = known
    return replace(local, partitions=here), replace(remote, partitions=there)


async def _count(reading: NamespaceReading, name: TopicName, limit: asyncio.Semaphore) -> int | None:
    async with limit:
        try:
            return await reading.partitions(name)
        except NotFound:  # deleted since it was listed
            return None


async def _together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; the first failure ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]

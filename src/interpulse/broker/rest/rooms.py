"""What stands behind the REST door: the rooms its handlers ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from interpulse.broker.clusters import Clusters
from interpulse.broker.comparison import LocalReading, RemoteComparison
from interpulse.broker.deletion import Deletion
from interpulse.broker.dynamic_config import DynamicConfig
from interpulse.broker.growth import AdminRemotes, Growth
from interpulse.broker.inactivity import InactiveTopics
from interpulse.broker.instruments import Instruments
from interpulse.broker.lifecycle import TopicLifecycle
from interpulse.broker.live.registry import TopicRegistry
from interpulse.broker.lookup import Lookups
from interpulse.broker.namespaces import Namespaces
from interpulse.broker.replication_clusters import ReplicationClusters
from interpulse.broker.replication_cursors import RegistryReplicationCursors
from interpulse.broker.replication_status import ReplicationStatus
from interpulse.broker.schemas import Schemas
from interpulse.broker.tenants import Tenants
from interpulse.broker.topic_policies import TopicPolicyRecords
from interpulse.storage.api import MetadataStore

__all__ = ["Addresses", "RestRooms", "build_rest_rooms"]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where clients reach this broker; empty = not offered."""

    service_url: str
    web_url: str
    service_url_tls: str = ""
    web_url_tls: str = ""

    @property
    def broker_id(self) -> str:
        """``host:port`` of the web service, as Pulsar names brokers."""
        return self.web_url.partition("://")[2]


@dataclass(frozen=True, slots=True)
class RestRooms:
    """The rooms that the handlers of the REST door ask. No handler holds a rule of its own."""

    clusters: Clusters
    tenants: Tenants
    namespaces: Namespaces
    lifecycle: TopicLifecycle
    registry: TopicRegistry
    lookups: Lookups
    schemas: Schemas
    deletion: Deletion
    inactive_topics: InactiveTopics
    growth: Growth
    topic_policies: TopicPolicyRecords
    replication_clusters: ReplicationClusters
    replication_status: ReplicationStatus
    dynamic: DynamicConfig
    addresses: Callable[[], Addresses]
    instruments: Instruments
    ready: Callable[[], bool]
    """True from the moment clients can publish until the broker begins to stop."""


def build_rest_rooms(
    store: MetadataStore,
    *,
    namespaces: Namespaces,
    lifecycle: TopicLifecycle,
    registry: TopicRegistry,
    lookups: Lookups,
    schemas: Schemas,
    dynamic: DynamicConfig,
    addresses: Callable[[], Addresses],
    ready: Callable[[], bool],
    instruments: Instruments | None = None,
    without_job: Callable[[Sequence[str]], list[dict[str, Any]]] = lambda topics: [],
) -> RestRooms:
    """Join what both doors share with what only operators need; ``without_job`` as in `ReplicationStatus`."""
    clusters, tenants = Clusters(store), Tenants(store)
    cursors = RegistryReplicationCursors(lifecycle, registry)
    deletion = Deletion(store, lifecycle, registry, namespaces, tenants, lambda: dynamic.config)
    comparison = RemoteComparison(LocalReading(lifecycle, namespaces, lambda: dynamic.config))
    return RestRooms(
        clusters=clusters,
        tenants=tenants,
        namespaces=namespaces,
        lifecycle=lifecycle,
        registry=registry,
        lookups=lookups,
        schemas=schemas,
        growth=Growth(lifecycle, namespaces, AdminRemotes(clusters), lambda: dynamic.config),
        deletion=deletion,
        inactive_topics=InactiveTopics(registry, deletion, lambda: dynamic.config),
        topic_policies=TopicPolicyRecords(store, lifecycle),
        replication_clusters=ReplicationClusters(clusters, tenants, namespaces, cursors, comparison),
        replication_status=ReplicationStatus(store, namespaces, lifecycle, without_job=without_job),
        dynamic=dynamic,
        addresses=addresses,
        instruments=instruments or Instruments(lookups=lookups.meter, topic_loads=registry.loads),
        ready=ready,
    )

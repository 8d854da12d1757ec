"""What stands behind the REST door: the rooms its handlers ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from interpulse.broker.access.grants import Grants
from interpulse.broker.access.setup import Access
from interpulse.broker.clock import Clock, SystemClock
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.instruments import Instruments
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.replication.comparison import LocalReading, RemoteComparison
from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_clusters import ReplicationClusters
from interpulse.broker.replication.replication_cursors import RegistryReplicationCursors
from interpulse.broker.replication.replication_status import ReplicationStatus
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.failure_domains import FailureDomains
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.bundles import Bundles
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.expansion import AdminRemotes, Growth
from interpulse.broker.topics.inactivity import InactiveTopics
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup import Lookups
from interpulse.broker.topics.schemas import Schemas
from interpulse.broker.topics.topic_clusters import TopicClusters
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.rules.lookup import LookupTarget
from interpulse.storage.api import MetadataStore

__all__ = ["RestRooms", "build_rest_rooms"]


@dataclass(frozen=True, slots=True)
class RestRooms:
    """The rooms that the handlers of the REST door ask. No handler holds a rule of its own."""

    clusters: Clusters
    failure_domains: FailureDomains
    tenants: Tenants
    namespaces: Namespaces
    bundles: Bundles
    lifecycle: TopicLifecycle
    registry: TopicRegistry
    lookups: Lookups
    schemas: Schemas
    deletion: Deletion
    inactive_topics: InactiveTopics
    growth: Growth
    topic_policies: TopicPolicyRecords
    replication_clusters: ReplicationClusters
    topic_clusters: TopicClusters
    links: ClusterLinks
    """To be closed when no door is open any more."""

    remote_topics: RemoteTopics
    """To be started and stopped."""

    replication_status: ReplicationStatus
    dynamic: DynamicConfig
    this_broker: LookupTarget
    instruments: Instruments
    ready: Callable[[], bool]
    """True from the moment clients can publish until the broker begins to stop."""

    grants: Grants
    access: Access | None = None
    """None: everybody is let in and may do everything."""


def build_rest_rooms(
    store: MetadataStore,
    *,
    namespaces: Namespaces,
    lifecycle: TopicLifecycle,
    registry: TopicRegistry,
    lookups: Lookups,
    schemas: Schemas,
    dynamic: DynamicConfig,
    this_broker: LookupTarget,
    ready: Callable[[], bool],
    instruments: Instruments | None = None,
    without_job: Callable[[Sequence[str]], list[dict[str, Any]]] = lambda topics: [],
    clock: Clock | None = None,
    access: Access | None = None,
) -> RestRooms:
    """Join what both doors share with what only operators need; ``without_job`` as in `ReplicationStatus`."""
    clusters, tenants, clock = Clusters(store), Tenants(store), clock or SystemClock()
    cursors = RegistryReplicationCursors(registry)
    links, records = ClusterLinks(clusters), TopicPolicyRecords(store, lifecycle)
    remotes = AdminRemotes(links)
    remote_topics = RemoteTopics(
        store,
        namespaces,
        lifecycle,
        records,
        links,
        clock,
        creation_allowed=lambda: dynamic.config.create_topic_to_remote_cluster_for_replication,
        recheck_seconds=dynamic.config.replication_policy_check_duration_seconds,
    )
    deletion = Deletion(store, lifecycle, registry, namespaces, tenants, lambda: dynamic.config)
    comparison = RemoteComparison(LocalReading(lifecycle, namespaces, lambda: dynamic.config))
    return RestRooms(
        clusters=clusters,
        failure_domains=FailureDomains(store, clusters),
        tenants=tenants,
        namespaces=namespaces,
        bundles=Bundles(namespaces, lifecycle, registry, lambda: dynamic.config.replicator_prefix),
        lifecycle=lifecycle,
        registry=registry,
        lookups=lookups,
        schemas=schemas,
        growth=Growth(lifecycle, namespaces, records, remotes, lambda: dynamic.config),
        deletion=deletion,
        inactive_topics=InactiveTopics(registry, deletion, lambda: dynamic.config),
        topic_policies=records,
        replication_clusters=ReplicationClusters(clusters, tenants, namespaces, cursors, comparison),
        topic_clusters=TopicClusters(
            clusters, tenants, namespaces, records, lifecycle, remotes, cursors, lambda: dynamic.config
        ),
        links=links,
        remote_topics=remote_topics,
        replication_status=ReplicationStatus(
            store, namespaces, lifecycle, records, without_job=without_job, remote_topics=remote_topics
        ),
        dynamic=dynamic,
        this_broker=this_broker,
        instruments=instruments or Instruments(lookups=lookups.meter, topic_loads=registry.loads),
        ready=ready,
        grants=Grants(namespaces, lifecycle),
        access=access,
    )

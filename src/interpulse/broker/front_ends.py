"""The front ends of a broker and their metrics, built over the bundles of `assembly`."""

from __future__ import annotations

from collections.abc import Callable

from interpulse.broker.access.grants import Grants
from interpulse.broker.assembly import Foundation, Membership, Replication, Tenancy, Topics
from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits, Handlers
from interpulse.broker.binary.transport.flow_control import PublishBuffer
from interpulse.broker.instruments import Instruments
from interpulse.broker.loop_lag import LoopLag
from interpulse.broker.replication.comparison import LocalReading, RemoteComparison
from interpulse.broker.replication.replication_clusters import RegistryReplicationCursors, ReplicationClusters
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.tenancy.failure_domains import FailureDomains
from interpulse.broker.topics.expansion import AdminRemotes, Expansion
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.broker.topics.lookup.topic_watches import TopicWatches
from interpulse.broker.topics.topic_clusters import TopicClusters
from interpulse.serving.admission import ConnectionQuota


def build_binary_server(
    base: Foundation,
    tenancy: Tenancy,
    topics: Topics,
    handlers: Handlers,
    sockets: ConnectionQuota,
) -> BinaryServer:
    """Build the front end for the binary protocol, within the quota of all ``sockets``."""
    config, stores = base.config, base.stores
    context = BinaryContext(
        registry=topics.registry,
        lifecycle=topics.lifecycle,
        namespaces=tenancy.namespaces,
        schemas=topics.schemas,
        lookups=topics.lookups,
        permits=topics.permits,
        inconsistencies=topics.inconsistencies,
        topic_watches=TopicWatches(base.metadata, topics.lifecycle, topics.registry.spawn),
        publish_buffer=PublishBuffer(max(config.max_message_publish_buffer_size_in_mb, 0) * 1024 * 1024),
        replicator_prefix=config.replicator_prefix,
        access=tenancy.access,
        check_disk_space=stores.check_disk_space,
        serving=topics.registry.serving,
    )
    limits = ConnectionLimits(
        keep_alive_seconds=config.keep_alive_interval_seconds,
        message_bytes_max=stores.message_bytes_max(config.max_message_size),
        pending_publishes_max=config.max_pending_publish_requests_per_connection,
        output_bytes_high=config.pulsar_channel_write_buffer_high_water_mark,
        output_bytes_low=config.pulsar_channel_write_buffer_low_water_mark,
        liveness_check_seconds=config.connection_liveness_check_timeout_millis / 1000,
        patterns_evaluated=config.enable_broker_side_subscription_pattern_evaluation,
        pattern_length_max=config.subscription_pattern_max_length,
        topic_watchers_allowed=config.enable_broker_topic_list_watcher,
        broker_entry_metadata_exposed=config.exposing_broker_entry_metadata_to_client_enabled,
    )
    quota = ConnectionQuota(config.broker_max_connections, config.broker_max_connections_per_ip, within=sockets)
    return BinaryServer(context, limits, handlers, quota)


def build_context(
    base: Foundation,
    tenancy: Tenancy,
    topics: Topics,
    replication: Replication,
    member: Membership,
    instruments: Instruments,
    ready: Callable[[], bool],
) -> RestContext:
    """Build the objects for the handlers of the admin API."""
    clusters, tenants, namespaces, current = tenancy.clusters, tenancy.tenants, tenancy.namespaces, tenancy.current
    lifecycle, registry, policies = topics.lifecycle, topics.registry, topics.topic_policies
    remotes, cursors = AdminRemotes(tenancy.links), RegistryReplicationCursors(registry)
    comparison = RemoteComparison(LocalReading(lifecycle, namespaces, current))
    return RestContext(
        clusters=clusters,
        failure_domains=FailureDomains(base.metadata, clusters, base.stores.layout),
        isolation_policies=tenancy.isolation_policies,
        tenants=tenants,
        namespaces=namespaces,
        bundles=Bundles(namespaces, lifecycle, registry, lambda: current().replicator_prefix, member.others),
        lifecycle=lifecycle,
        registry=registry,
        lookups=topics.lookups,
        schemas=topics.schemas,
        expansion=Expansion(lifecycle, namespaces, policies, remotes, current),
        deletion=topics.deletion,
        inactive_topics=topics.inactive_topics,
        topic_policies=policies,
        replication_clusters=ReplicationClusters(
            clusters, tenants, namespaces, cursors, comparison, lambda: current().supports_replication_preview
        ),
        topic_clusters=TopicClusters(clusters, tenants, namespaces, policies, lifecycle, remotes, cursors, current),
        replication_status=replication.status,
        replication_survey=replication.survey,
        dynamic=tenancy.dynamic,
        this_broker=base.this_broker,
        instruments=instruments,
        ready=ready,
        grants=Grants(namespaces, lifecycle),
        others=member.others,
        access=tenancy.access,
    )


def build_instruments(
    base: Foundation,
    tenancy: Tenancy,
    topics: Topics,
    binary_server: BinaryServer,
    loop_lag: LoopLag,
) -> Instruments:
    """Build the metrics of the broker besides those of topics."""
    stores = base.stores
    return Instruments(
        inconsistencies=topics.inconsistencies,
        lookups=topics.lookups.meter,
        topic_loads=topics.registry.loads,
        lookups_pending=lambda: topics.permits.taken,
        lookups_rejected=lambda: topics.permits.rejected,
        connections=lambda: binary_server.connections,
        lookups_redirected=lambda: topics.lookups.redirected,
        writes=stores.logs.meter,
        logs_open=lambda: stores.logs.open_count,
        metadata=stores.metadata_meter,
        schemas=topics.schemas.meters,
        loop_lag=loop_lag.seconds,
        journal=stores.logs.journal.statistics,
        access=tenancy.access.authentication.meter if tenancy.access else None,
        disk_space=stores.disk_space,
    )

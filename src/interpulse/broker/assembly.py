"""The objects of a broker in four bundles, each built over the ones before it.

`Foundation` holds settings, addresses and stores, `Tenancy` the records of clusters, tenants and namespaces, `Topics`
the topics and their rules, `Replication` the connections to remote clusters. A `Membership` holds the differences
between a standalone broker and a member of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from interpulse.broker.access.setup import Access, build_access
from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits, Handlers
from interpulse.broker.binary.transport.flow_control import PublishBuffer
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.inconsistencies import InconsistencyCounters
from interpulse.broker.instruments import Instruments, LoopLag
from interpulse.broker.live.api import TopicSettings as LiveSettings
from interpulse.broker.live.registry.topic_registry import RegistrySettings, TopicRegistry, TopicStores
from interpulse.broker.live.registry.topic_tasks import TaskPeriods
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.ownership.ownership import Ownership, this_broker
from interpulse.broker.replication.acknowledgement_feed import AcknowledgementFeed
from interpulse.broker.replication.gathered_acknowledgements import GatheredAcknowledgements
from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_clusters import ReplicationClusters
from interpulse.broker.replication.replication_status import ReplicationStatus, ReplicationSurvey
from interpulse.broker.replication.replication_supervisor import JobCommand, ReplicationSupervisor, records_without_job
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.services import Services
from interpulse.broker.stores import Stores
from interpulse.broker.tenancy.cluster_links import ClusterLinks, RemotePartitions
from interpulse.broker.tenancy.clusters import Clusters, FailureDomains, IsolationPolicyRecords
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.failover_roles import FailoverRoles
from interpulse.broker.topics.inactivity import InactiveTopics
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.broker.topics.lookup.topic_watches import TopicWatches
from interpulse.broker.topics.metadata_changes import MetadataChanges
from interpulse.broker.topics.schemas import Schemas
from interpulse.broker.topics.topic_clusters import AdminRemotes, Expansion, TopicClusters
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.broker.topics.topic_settings import TopicSettingsReader
from interpulse.clock import Clock
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.brokers import INTERNAL_LISTENER, BrokerAddresses, ListenerAddresses
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import Persistence
from interpulse.rules.lookup import LookupTarget
from interpulse.serving.admission import ConnectionQuota, LookupPermits
from interpulse.storage.api import MetadataStore

if TYPE_CHECKING:
    from interpulse.broker.ownership.other_brokers import OtherBrokers
    from interpulse.broker.ownership.shared_ownership import SharedOwnership
    from interpulse.broker.topics.change_events.change_events import ChangeEvents
    from interpulse.broker.topics.failover_peer import FailoverPeer


class CannotServe(Exception):
    """The broker cannot start; ``str()`` is the sentence for the user."""


@dataclass(frozen=True, slots=True)
class Foundation:
    """Settings, addresses and stores."""

    config: BrokerConfig
    clock: Clock
    own_access: OwnAccess
    addresses: ListenerAddresses
    this_broker: LookupTarget
    this_addresses: BrokerAddresses
    stores: Stores
    metadata: MetadataStore
    """The metadata for requests of clients. Reads end with the session of the store, if it has one."""

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        clock: Clock,
        own_access: OwnAccess,
        services: Services,
        stores: Stores,
        metadata: MetadataStore,
    ) -> Foundation:
        target = this_broker(services.addresses)
        listeners = services.listeners.by_name or {INTERNAL_LISTENER: services.addresses}
        addresses = BrokerAddresses(target.broker_id, services.addresses, listeners)
        return cls(config, clock, own_access, services.addresses, target, addresses, stores, metadata)


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Clusters, tenants and namespaces, with their permissions."""

    dynamic: DynamicConfig
    clusters: Clusters
    links: ClusterLinks
    isolation_policies: IsolationPolicyRecords
    tenants: Tenants
    namespaces: Namespaces
    access: Access | None

    def current(self) -> BrokerConfig:
        """Return the settings in force."""
        return self.dynamic.config


async def build_tenancy(base: Foundation) -> Tenancy:
    """Build the tenancy. Raise PreconditionFailed for unusable settings of authentication."""
    metadata, layout = base.metadata, base.stores.layout
    dynamic = DynamicConfig(metadata, base.config)
    await dynamic.load()
    clusters, tenants = Clusters(metadata, layout), Tenants(metadata)
    namespaces = Namespaces(metadata, local_cluster=base.config.cluster_name, layout=layout)
    access = build_access(dynamic.config, tenants, namespaces)
    if access is not None:
        dynamic.watch(access.apply)
    isolation_policies = IsolationPolicyRecords(metadata, clusters)
    return Tenancy(dynamic, clusters, ClusterLinks(clusters), isolation_policies, tenants, namespaces, access)


class Membership(Protocol):
    """The role of a broker: standalone, or a member of a cluster."""

    @property
    def owners(self) -> Ownership: ...

    @property
    def shared(self) -> SharedOwnership | None:
        """The bundles of this broker; None for a standalone one."""
        ...

    @property
    def others(self) -> OtherBrokers | None:
        """The other brokers; None for a standalone one."""
        ...

    def change_events(self, loaded: Set[TopicName]) -> ChangeEvents | None:
        """Return the exchange of topic policies with the other brokers; ``loaded`` is a live view of topics."""
        ...

    def follow(self, topics: Topics, resume_sending: Callable[[], None], opened: AsyncExitStack) -> None:
        """Apply changes by other brokers from now on. The registry is started, and no client is connected yet."""
        ...

    async def start_upkeep(self, topics: Topics, replication: Replication, opened: AsyncExitStack) -> None:
        """Start the tasks that one broker does for all."""
        ...

    def namespaces_changed(self, registry: TopicRegistry) -> None:
        """Note that policies of namespaces changed, or that namespaces were deleted."""
        ...

    def leave_with(self, opened: AsyncExitStack) -> None:
        """Start the exchange with other brokers. ``opened`` ends it, and gives all bundles away."""
        ...

    async def announce(self, registry: TopicRegistry) -> None:
        """Let the other brokers send clients to this one."""
        ...

    async def close(self, opened: AsyncExitStack) -> None:
        """Close everything that was opened, within a bounded time."""
        ...


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of this broker, loaded and stored, and the objects that answer for them."""

    registry: TopicRegistry
    lifecycle: TopicLifecycle
    change_events: ChangeEvents | None
    topic_policies: TopicPolicyRecords
    failover_roles: FailoverRoles
    schemas: Schemas
    deletion: Deletion
    inactive_topics: InactiveTopics
    permits: LookupPermits
    lookups: Lookups
    inconsistencies: InconsistencyCounters


def build_topics(base: Foundation, tenancy: Tenancy, member: Membership, ready: Callable[[], bool]) -> Topics:
    """Build the objects for topics that both front ends use."""
    config, metadata, stores = base.config, base.metadata, base.stores
    namespaces, current = tenancy.namespaces, tenancy.current
    reader = TopicSettingsReader()
    peer = _failover_peer(config, tenancy.links, base.clock)
    roles = FailoverRoles(namespaces, tenancy.tenants, tenancy.clusters, base.clock, peer)

    async def settings_of(topic: TopicName) -> LiveSettings:
        namespace = await namespaces.find_policies(topic.namespace_name)
        own, role = await records.find(topic), await roles.of_policies(topic.namespace_name, namespace)
        return reader.read(topic, own, namespace, current(), role)

    async def persistence_of(log_name: str) -> Persistence | None:
        topic = TopicName.from_log_name(log_name)
        namespace = await namespaces.find_policies(topic.namespace_name)
        own = await records.find(topic)
        return own.persistence or (namespace.persistence if namespace else None)

    registry = TopicRegistry(
        TopicStores(
            stores.guarded or stores.metadata, stores.logs, stores.layout, stores.cursors, stores.check_disk_space
        ),
        cluster=config.cluster_name,
        clock=base.clock,
        open_rule=lambda name, by, create: lifecycle.open(name, by=by, create=create),
        settings_of=settings_of,
        settings=_registry_settings(config),
        ownership=member.shared,
        loads_max=lambda: current().max_concurrent_topic_load_request,
    )
    lifecycle = TopicLifecycle(
        metadata,
        namespaces,
        current,
        loaded=registry.names,
        remote_partitions=RemotePartitions(
            tenancy.clusters, base.clock, timeout_ms=config.auto_topic_creation_lookup_timeout_ms
        ),
        layout=stores.layout,
    )
    events = member.change_events(registry.names)
    records = TopicPolicyRecords(metadata, lifecycle, events)
    if stores.follow_persistence is not None:
        stores.follow_persistence(persistence_of)
    deletion = Deletion(
        stores.metadata,  # a deletion in progress may wait for the store
        lifecycle,
        registry,
        namespaces,
        tenancy.tenants,
        current,
        others=member.others,
        events=events,
    )
    permits = LookupPermits(lambda: current().max_concurrent_lookup_request)
    lookups = Lookups(
        namespaces, tenancy.clusters, lifecycle, member.owners, permits=permits, config=current, ready=ready
    )
    return Topics(
        registry,
        lifecycle,
        events,
        records,
        roles,
        Schemas(metadata, namespaces, current, base.clock, stores.schemas),
        deletion,
        InactiveTopics(registry, deletion, current),
        permits,
        lookups,
        InconsistencyCounters(base.clock.now_ms),
    )


def _failover_peer(config: BrokerConfig, links: ClusterLinks, clock: Clock) -> FailoverPeer | None:
    cluster = config.failover_peer
    if not cluster:
        return None
    if cluster == config.cluster_name:
        raise CannotServe(f"failoverPeer={cluster} is this cluster itself; name the other cluster of the pair")
    from interpulse.broker.topics.failover_peer import FailoverPeer, PeerSettings  # loaded only with a peer

    settings = PeerSettings(cluster, config.failover_peer_wait, config.failover_without_peer == "hold")
    return FailoverPeer(
        settings, lambda name: links.use(cluster, lambda admin: admin.namespaces.failover_role(name)), clock
    )


def _registry_settings(config: BrokerConfig) -> RegistrySettings:
    quota_seconds = config.backlog_quota_check_interval_in_seconds if config.backlog_quota_check_enabled else None
    return RegistrySettings(
        config.replicator_prefix,
        BrokerEntryFields.named(config.broker_entry_metadata_interceptors),
        config.managed_ledger_cache_size_mb * 1024 * 1024,
        TaskPeriods(
            upkeep=config.retention_check_interval_in_seconds,
            compaction=config.broker_service_compaction_monitor_interval_in_seconds,
            subscription_expiry=config.subscription_expiry_check_interval_in_minutes * 60,
            quota_check=quota_seconds,
        ),
    )


@dataclass(frozen=True, slots=True)
class Replication:
    """The replication job, the topics on remote clusters, and the status of both."""

    supervisor: ReplicationSupervisor
    remote_topics: RemoteTopics
    status: ReplicationStatus
    survey: ReplicationSurvey


def build_replication(
    base: Foundation, tenancy: Tenancy, topics: Topics, job_arguments: tuple[str, ...]
) -> Replication:
    """Build the replication of this broker; ``job_arguments`` configure the job's log."""
    config, own, metadata = base.config, base.own_access, base.stores.metadata
    service_url = base.addresses.service(tls=own.tls_preferred)
    command = JobCommand(config, own, service_url, base.addresses.web(tls=own.tls_preferred), arguments=job_arguments)
    supervisor = ReplicationSupervisor(metadata, command, mode=config.replication_job, clock=base.clock)
    remote_topics = RemoteTopics(
        metadata,
        tenancy.namespaces,
        topics.lifecycle,
        topics.topic_policies,
        tenancy.links,
        base.clock,
        creation_allowed=lambda: tenancy.current().create_topic_to_remote_cluster_for_replication,
        recheck_seconds=tenancy.current().replication_policy_check_duration_seconds,
    )
    status = ReplicationStatus(
        base.metadata,
        tenancy.namespaces,
        topics.lifecycle,
        topics.topic_policies,
        without_job=lambda names: records_without_job(supervisor.view, names),
        remote_topics=remote_topics,
    )
    survey = ReplicationSurvey(status, remote_topics, lambda: supervisor.view)
    return Replication(supervisor, remote_topics, status, survey)


def build_binary_server(
    base: Foundation, tenancy: Tenancy, topics: Topics, handlers: Handlers, sockets: ConnectionQuota
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
    remotes = AdminRemotes(tenancy.links)
    bundles = Bundles(namespaces, lifecycle, registry, lambda: current().replicator_prefix, member.others)
    return RestContext(
        clusters=clusters,
        failure_domains=FailureDomains(base.metadata, clusters, base.stores.layout),
        isolation_policies=tenancy.isolation_policies,
        tenants=tenants,
        namespaces=namespaces,
        bundles=bundles,
        lifecycle=lifecycle,
        registry=registry,
        lookups=topics.lookups,
        schemas=topics.schemas,
        expansion=Expansion(lifecycle, namespaces, policies, remotes, current),
        deletion=topics.deletion,
        inactive_topics=topics.inactive_topics,
        topic_policies=policies,
        failover_roles=topics.failover_roles,
        replication_clusters=ReplicationClusters(clusters, tenants, namespaces, lifecycle, registry, current),
        topic_clusters=TopicClusters(clusters, tenants, namespaces, policies, lifecycle, remotes, registry, current),
        replication_status=replication.status,
        replication_survey=replication.survey,
        metadata_changes=MetadataChanges(base.stores.metadata),
        acknowledgements=GatheredAcknowledgements(
            AcknowledgementFeed(lifecycle, registry, bundles),
            bundles,
            topics.lookups,
            base.this_broker.broker_id,
            registry.spawn,
            member.others,
        ),
        dynamic=tenancy.dynamic,
        this_broker=base.this_broker,
        instruments=instruments,
        ready=ready,
        others=member.others,
        access=tenancy.access,
    )


def build_instruments(
    base: Foundation, tenancy: Tenancy, topics: Topics, binary_server: BinaryServer, loop_lag: LoopLag
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

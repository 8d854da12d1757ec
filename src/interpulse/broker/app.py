"""Builds every object of a broker and joins them; the only wiring.

Start: addresses, stores, cluster and namespaces, then the front ends, binary before REST, so that a client that is told
"healthy" can publish, and the replication job. Stop is the reverse and takes a bounded time: the job ends, the front
ends accept no more, the topics answer what is pending and store their cursors, clients are disconnected, the stores are
closed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.access.grants import Grants
from interpulse.broker.access.setup import build_access, own_access, warn_without_own_access
from interpulse.broker.binary.handlers import HANDLERS
from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.binary.transport.command_connection import Handlers
from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits
from interpulse.broker.binary.transport.pending_publishes import PublishBuffer
from interpulse.broker.config.broker_config import SHUTDOWN, BrokerConfig, ConfigError
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.console.front_end import ConsoleFrontEnd
from interpulse.broker.inconsistencies import InconsistencyCounters
from interpulse.broker.instruments import Instruments
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.settings import TopicSettings as LiveSettings
from interpulse.broker.loop_lag import LoopLag
from interpulse.broker.ownership.load_meter import LoadMeter
from interpulse.broker.ownership.other_brokers import OtherBrokers
from interpulse.broker.ownership.own_access import OwnAccess
from interpulse.broker.ownership.ownership import Ownership, SoleOwner, this_broker
from interpulse.broker.ownership.registered_brokers import RegisteredBrokers
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.broker.ownership.sole_task import SoleTask
from interpulse.broker.periodic import run_periodically
from interpulse.broker.replication.comparison import LocalReading, RemoteComparison
from interpulse.broker.replication.remote_topics import RemoteTopics
from interpulse.broker.replication.replication_clusters import ReplicationClusters
from interpulse.broker.replication.replication_cursors import RegistryReplicationCursors
from interpulse.broker.replication.replication_status import ReplicationStatus
from interpulse.broker.replication.replication_supervisor import JobCommand, ReplicationSupervisor, records_without_job
from interpulse.broker.replication.replication_survey import ReplicationSurvey
from interpulse.broker.rest.brokers import VERSION
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.server import RestServer
from interpulse.broker.services import Services
from interpulse.broker.stores import OpenStores, in_data_directory
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.failure_domains import FailureDomains
from interpulse.broker.tenancy.isolation_policies import IsolationPolicyRecords
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap, check_cluster
from interpulse.broker.tenancy.remote_partitions import AdminRemotePartitions
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.expansion import AdminRemotes, Expansion
from interpulse.broker.topics.inactivity import InactiveTopics
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.bundles import Bundles
from interpulse.broker.topics.lookup.lookup import BatchLimits, Lookups
from interpulse.broker.topics.lookup.topic_watches import TopicWatches
from interpulse.broker.topics.schemas import Schemas, SchemaSettings
from interpulse.broker.topics.topic_clusters import TopicClusters
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.broker.topics.topic_reading import LifecycleSettings
from interpulse.broker.topics.topic_settings import TopicSettingsReader
from interpulse.clock import Clock, SystemClock
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.brokers import INTERNAL_LISTENER, BrokerAddresses, ListenerAddresses, LoadReport
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.messaging_policies import Persistence
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.placement import sent_to
from interpulse.serving.admission import ConnectionQuota, sockets_max
from interpulse.serving.listening import CannotListen
from interpulse.serving.permits import LookupPermits
from interpulse.serving.tls import ExpiryLog
from interpulse.storage.api import MetadataStore
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata
from interpulse.storage.segments.disk_space import DiskSpace

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from interpulse.broker.topics.change_events.change_events import ChangeEvents
    from interpulse.client.client import Client

__all__ = ["BrokerApp", "CannotServe"]

_logger = logging.getLogger(__name__)

# SIGTERM has to end within 5 s; what is not closed by then is closed by the end of the process.
_STOP_SECONDS_MAX: Final = 4.5
_STOP_SECONDS_AMONG_OTHERS_MAX: Final = 60.0  # brokerShutdownTimeoutMs of Apache Pulsar
_GIVE_UP_SECONDS: Final = 0.1
_DISK_SPACE_CHECK_SECONDS: Final = 1.0
_CERTIFICATE_CHECK_SECONDS_MIN: Final = 1
_LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""The one whose rules ours are; brokers of Apache Pulsar beside this one look at its name."""


class CannotServe(Exception):
    """The broker cannot start here; ``str()`` is the sentence for the user."""


class BrokerApp:
    """One broker: every object of it, started and stopped in order."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        handlers: Handlers = HANDLERS,
        open_stores: OpenStores | None = None,
        job_arguments: tuple[str, ...] = (),
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Tests have other ``handlers`` and stores. ``job_arguments`` tell the replication job how to show its log.
        ``meter_provider`` exports metrics by OpenTelemetry; None: nothing of it is loaded."""
        self.config = config
        self.data_dir = Path(config.data_dir)
        self.addresses = ListenerAddresses()
        self.ready = False
        """True from the moment clients can publish until the broker begins to stop."""
        self.shared: SharedOwnership | None = None
        """The bundles of this broker; None: it is alone."""
        self.must_stop = asyncio.Event()
        """Set when this broker may serve no more; the log says why."""
        self.loop_lag = LoopLag()
        self._clock = clock or SystemClock()
        self._settings_reader = TopicSettingsReader()
        self._handlers = handlers
        self._open_stores = open_stores or in_data_directory()
        self._job_arguments = job_arguments
        self._meter_provider = meter_provider
        self._opened = AsyncExitStack()
        self._sockets = ConnectionQuota(sockets_max())

    @property
    def service_url(self) -> str:
        """Of the binary service; the one inside TLS where there is no other, "" before the start."""
        return self.addresses.service(tls=False)

    @property
    def web_url(self) -> str:
        """The same of the web service."""
        return self.addresses.web(tls=False)

    async def start(self) -> None:
        """Return when clients can publish.

        Raises CannotServe, or DataDirectoryInUse / DataDirectoryUnusable of the storage; then nothing is left open.
        """
        async with AsyncExitStack() as opened:
            try:
                await self._start(opened)
                self.ready = True
                if self.shared is not None:
                    await self.shared.brokers.register(LoadMeter(self.shared.topics, self.registry.get))
            except (MetadataError, CannotListen, ConfigError) as error:
                self.ready = False
                raise CannotServe(str(error)) from error
            self._opened = opened.pop_all()

    async def stop(self) -> None:
        """Stop accepting, make everything durable that was acknowledged, disconnect. Takes less than 5 s.

        Among other brokers it gives its bundles away first, which may take longer: about 65 s at most.
        """
        self.ready = False
        if self.shared is not None:
            await self._stop_among_others()
            return
        try:
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await self._opened.aclose()
        except TimeoutError:
            _logger.error("stop timed out seconds=%s", _STOP_SECONDS_MAX)

    async def _stop_among_others(self) -> None:
        """Without ZooKeeper each of the things to close may wait for it. Those left after the time-out have as long as
        those of a broker alone, all together; what hangs then is given up, one after the other."""
        closing = asyncio.create_task(self._opened.aclose())
        try:
            await asyncio.wait([closing], timeout=_STOP_SECONDS_AMONG_OTHERS_MAX)
            if not closing.done():
                _logger.error("stop timed out seconds=%s", _STOP_SECONDS_AMONG_OTHERS_MAX)
            seconds = _STOP_SECONDS_MAX
            while not closing.done():
                closing.cancel()
                await asyncio.wait([closing], timeout=seconds)
                seconds = _GIVE_UP_SECONDS
            with suppress(asyncio.CancelledError):
                await closing
        finally:
            closing.cancel()

    async def _start(self, opened: AsyncExitStack) -> None:
        services = Services.take(self.config, opened)
        self.addresses = services.addresses
        self.own_access = self._build_own_access()

        self.stores = await self._open_stores(self.config, opened)
        metadata = self.stores.metadata
        self.asked: MetadataStore = metadata if self.stores.guarded is None else SessionBoundedMetadata(metadata)
        await self._bootstrap()
        self.this_broker = this_broker(self.addresses)
        listeners = services.listeners.by_name or {INTERNAL_LISTENER: self.addresses}
        self.this_addresses = BrokerAddresses(self.this_broker.broker_id, self.addresses, listeners)
        self.shared = await self._build_shared_ownership()
        self.others = self._build_others()
        await self._build_tenancy()
        self._build_topics()
        self.binary_server = self._build_binary_server()
        self.supervisor = self._build_supervisor()
        self.context = self._build_context()

        opened.push_async_callback(self.binary_server.close)
        await self._start_registry(opened)
        opened.callback(self.binary_server.stop_accepting)
        for service in services.binary:
            await service.open(self.binary_server.start, self.binary_server.start_encrypted)
        quota = ConnectionQuota(self.config.max_http_server_connections, within=self._sockets)
        rest_server = RestServer(self.context, quota)
        rest_server.mount(ConsoleFrontEnd.of_broker(self.context, rest_server.calls))
        opened.push_async_callback(rest_server.stop)
        for service in services.web:
            await service.open(rest_server.start, rest_server.start_encrypted)
        if services.tls is not None:
            self._follow_certificates(ExpiryLog(services.tls), rest_server)
        await self._start_upkeep(opened)
        if self._meter_provider is not None:
            self._export_figures(self._meter_provider, opened)
        self.loop_lag.start()
        opened.callback(self.loop_lag.stop)
        if self.shared is not None and self.others is not None:
            opened.push_async_callback(self.others.close)
            opened.push_async_callback(self.shared.leave)
        if self.change_events is not None:
            self.change_events.start()
            opened.push_async_callback(self.change_events.close)

    async def _bootstrap(self) -> None:
        if self.stores.layout.shared:
            await self._check_cluster()
            return
        urls = self.addresses
        cluster = ClusterData(
            service_url=urls.web_url or None,
            service_url_tls=urls.web_url_tls or None,
            broker_service_url=urls.service_url or None,
            broker_service_url_tls=urls.service_url_tls or None,
        )
        try:
            await bootstrap(self.stores.metadata, local_cluster=self.config.cluster_name, cluster=cluster)
        except PreconditionFailed as error:
            raise CannotServe(f"data directory {self.data_dir} cannot be served: {error}") from error

    async def _check_cluster(self) -> None:
        try:
            await check_cluster(self.stores.metadata, self.config.cluster_name)
        except PreconditionFailed as error:
            raise CannotServe(str(error)) from error

    async def _build_shared_ownership(self) -> SharedOwnership | None:
        """The bundles of this broker, if others work on the same stores."""
        guarded = self.stores.guarded
        if guarded is None:
            return None
        report = LoadReport(self.this_addresses, VERSION, _LOAD_MANAGER)
        brokers = RegisteredBrokers(self.asked, report, self._clock)
        try:
            await brokers.check_others()
        except PreconditionFailed as error:
            raise CannotServe(str(error)) from error
        brokers.on_extensible = self.must_stop.set
        shared = SharedOwnership(self.asked, guarded, brokers, self._boundaries, self._isolation)
        if self.config.zookeeper_session_expired_policy == SHUTDOWN:
            shared.on_lost = self.must_stop.set
        return shared

    def _listener_targets(self) -> dict[str, LookupTarget]:
        return {name: sent_to(self.this_addresses, name) for name in self.this_addresses.listeners}

    def _build_others(self) -> OtherBrokers | None:
        if self.shared is None:
            return None
        warn_without_own_access(self.config, self.own_access)
        return OtherBrokers(self.asked, self.shared, self.own_access)

    def _build_own_access(self) -> OwnAccess:
        try:
            return own_access(self.config)
        except PreconditionFailed as error:
            raise CannotServe(str(error)) from error

    async def _boundaries(self, namespace: NamespaceName) -> tuple[str, ...] | None:
        policies = await self.namespaces.find_policies(namespace)
        if policies is None:
            return None
        return (await self.namespaces.versioned_boundaries(namespace, policies))[0]

    async def _isolation(self) -> IsolationPolicies:
        return await self.isolation_policies.in_force(self.config.cluster_name)

    async def _build_tenancy(self) -> None:
        """The cluster, its tenants and namespaces, and the permissions in them."""
        metadata, layout = self.asked, self.stores.layout
        self.dynamic = DynamicConfig(metadata, self.config)
        await self.dynamic.load()
        self.clusters = Clusters(metadata, layout)
        self.isolation_policies = IsolationPolicyRecords(metadata, self.clusters)
        self.links = ClusterLinks(self.clusters)
        self.tenants = Tenants(metadata)
        self.namespaces = Namespaces(metadata, local_cluster=self.config.cluster_name, layout=layout)
        try:
            self.access = build_access(self.dynamic.config, self.tenants, self.namespaces)
        except PreconditionFailed as error:
            raise CannotServe(str(error)) from error
        if self.access is not None:
            self.dynamic.watch(self.access.apply)

    def _build_topics(self) -> None:
        """What both front ends ask about topics."""
        config, metadata = self.config, self.asked
        self.registry = self._build_registry()
        self.lifecycle = TopicLifecycle(
            metadata,
            self.namespaces,
            LifecycleSettings.following(self._current),
            loaded=self.registry.names,
            remote_partitions=AdminRemotePartitions(
                self.clusters, self._clock, timeout_ms=config.auto_topic_creation_lookup_timeout_ms
            ),
            layout=self.stores.layout,
        )
        self.change_events = self._build_change_events()
        self.topic_policies = TopicPolicyRecords(metadata, self.lifecycle, self.change_events)
        if self.stores.follow_persistence is not None:
            self.stores.follow_persistence(self._persistence)
        self.schemas = Schemas(metadata, self.namespaces, self._schema_settings, self._clock, self.stores.schemas)
        self.deletion = Deletion(
            self.stores.metadata,  # what a deletion has begun may wait
            self.lifecycle,
            self.registry,
            self.namespaces,
            self.tenants,
            self._current,
            collected=None if self.others is None else self.others.collected,
            loaded_elsewhere=None if self.others is None else self.others.loaded_topics,
            events=self.change_events,
        )
        self.inactive_topics = InactiveTopics(self.registry, self.deletion, self._current)
        self.inconsistencies = InconsistencyCounters(self._clock.now_ms)
        shared = self.shared
        owners: Ownership = shared or SoleOwner(self.this_broker, self._listener_targets())
        self.permits = LookupPermits(lambda: self._current().max_concurrent_lookup_request)
        self.lookups = Lookups(
            self.namespaces,
            self.clusters,
            self.lifecycle,
            owners,
            permits=self.permits,
            limits=lambda: BatchLimits.of(self._current()),
            ready=lambda: self.ready,
        )

    def _build_change_events(self) -> ChangeEvents | None:
        """Policies of topics as the other brokers are told them, if there are others."""
        if self.shared is None:
            return None
        from interpulse.broker.topics.change_events.change_events import ChangeEvents  # as the client below

        return ChangeEvents(
            self.stores.metadata,
            self.namespaces.expected_versions,
            self._client_of_this_cluster,
            cluster=self.config.cluster_name,
            loaded=self.registry.names,
        )

    def _client_of_this_cluster(self) -> Client:
        from interpulse.client.client import Client  # a broker that is alone has no use for it

        own = self.own_access
        url = self.addresses.service(tls=own.tls_preferred)
        return Client(url, credentials=own.credentials, tls=own.tls)

    def _build_registry(self) -> TopicRegistry:
        config = self.config
        quota_seconds = config.backlog_quota_check_interval_in_seconds if config.backlog_quota_check_enabled else None
        return TopicRegistry(
            cluster=config.cluster_name,
            metadata=self.stores.guarded or self.stores.metadata,
            layout=self.stores.layout,
            cursor_store=self.stores.cursors,
            logs=self.stores.logs,
            clock=self._clock,
            open_rule=lambda name, by, create: self.lifecycle.open(name, by=by, create=create),
            settings=self._topic_settings,
            replicator_prefix=config.replicator_prefix,
            upkeep_seconds=config.retention_check_interval_in_seconds,
            compaction_seconds=config.broker_service_compaction_monitor_interval_in_seconds,
            subscription_expiry_seconds=config.subscription_expiry_check_interval_in_minutes * 60,
            quota_check_seconds=quota_seconds,
            broker_entry_fields=BrokerEntryFields.named(config.broker_entry_metadata_interceptors),
            read_bytes_max=config.managed_ledger_cache_size_mb * 1024 * 1024,
            check_disk_space=self.stores.check_disk_space,
            ownership=self.shared,
            loads_max=lambda: self._current().max_concurrent_topic_load_request,
        )

    def _build_binary_server(self) -> BinaryServer:
        config = self.config
        context = BinaryContext(
            registry=self.registry,
            lifecycle=self.lifecycle,
            namespaces=self.namespaces,
            schemas=self.schemas,
            lookups=self.lookups,
            permits=self.permits,
            inconsistencies=self.inconsistencies,
            topic_watches=TopicWatches(self.asked, self.lifecycle, self.registry.spawn),
            publish_buffer=PublishBuffer(max(config.max_message_publish_buffer_size_in_mb, 0) * 1024 * 1024),
            replicator_prefix=config.replicator_prefix,
            access=self.access,
            check_disk_space=self.stores.check_disk_space,
            serving=None if self.shared is None else self.shared.serving,
        )
        limits = ConnectionLimits(
            keep_alive_seconds=config.keep_alive_interval_seconds,
            message_bytes_max=self.stores.message_bytes_max(config.max_message_size),
            pending_publishes_max=config.max_pending_publish_requests_per_connection,
            output_bytes_high=config.pulsar_channel_write_buffer_high_water_mark,
            output_bytes_low=config.pulsar_channel_write_buffer_low_water_mark,
            liveness_check_seconds=config.connection_liveness_check_timeout_millis / 1000,
            patterns_evaluated=config.enable_broker_side_subscription_pattern_evaluation,
            pattern_length_max=config.subscription_pattern_max_length,
            topic_watchers_allowed=config.enable_broker_topic_list_watcher,
            broker_entry_metadata_exposed=config.exposing_broker_entry_metadata_to_client_enabled,
        )
        quota = ConnectionQuota(
            config.broker_max_connections, config.broker_max_connections_per_ip, within=self._sockets
        )
        return BinaryServer(context, limits, self._handlers, quota)

    def _build_supervisor(self) -> ReplicationSupervisor:
        config, own = self.config, self.own_access
        command = JobCommand(
            cluster=config.cluster_name,
            service_url=self.addresses.service(tls=own.tls_preferred),
            web_url=self.addresses.web(tls=own.tls_preferred),
            data_dir=self.data_dir,
            spark_master=config.replication_job_spark_master,
            driver_memory=config.replication_job_driver_memory,
            creation_allowed=config.create_topic_to_remote_cluster_for_replication,
            credentials=own.credentials,
            trust_certs_file=own.trust_certs_path,
            certificate_file=own.certificate_path,
            key_file=own.key_path,
            arguments=self._job_arguments,
        )
        return ReplicationSupervisor(self.stores.metadata, command, mode=config.replication_job, clock=self._clock)

    def _build_context(self) -> RestContext:
        """What both front ends share, joined with what only operators need."""
        metadata, current = self.asked, self._current
        remotes, cursors = AdminRemotes(self.links), RegistryReplicationCursors(self.registry)
        comparison = RemoteComparison(LocalReading(self.lifecycle, self.namespaces, current))
        self.remote_topics = self._build_remote_topics()
        status = ReplicationStatus(
            metadata,
            self.namespaces,
            self.lifecycle,
            self.topic_policies,
            without_job=lambda topics: records_without_job(self.supervisor.view, topics),
            remote_topics=self.remote_topics,
        )
        return RestContext(
            clusters=self.clusters,
            failure_domains=FailureDomains(metadata, self.clusters, self.stores.layout),
            isolation_policies=self.isolation_policies,
            tenants=self.tenants,
            namespaces=self.namespaces,
            bundles=Bundles(
                self.namespaces, self.lifecycle, self.registry, lambda: current().replicator_prefix, self.others
            ),
            lifecycle=self.lifecycle,
            registry=self.registry,
            lookups=self.lookups,
            schemas=self.schemas,
            expansion=Expansion(self.lifecycle, self.namespaces, self.topic_policies, remotes, current),
            deletion=self.deletion,
            inactive_topics=self.inactive_topics,
            topic_policies=self.topic_policies,
            replication_clusters=ReplicationClusters(
                self.clusters,
                self.tenants,
                self.namespaces,
                cursors,
                comparison,
                lambda: current().supports_replication_preview,
            ),
            topic_clusters=TopicClusters(
                self.clusters,
                self.tenants,
                self.namespaces,
                self.topic_policies,
                self.lifecycle,
                remotes,
                cursors,
                current,
            ),
            replication_status=status,
            replication_survey=ReplicationSurvey(status, self.remote_topics, lambda: self.supervisor.view),
            dynamic=self.dynamic,
            this_broker=self.this_broker,
            instruments=self._build_instruments(),
            ready=lambda: self.ready,
            grants=Grants(self.namespaces, self.lifecycle),
            others=self.others,
            access=self.access,
        )

    def _build_remote_topics(self) -> RemoteTopics:
        return RemoteTopics(
            self.stores.metadata,
            self.namespaces,
            self.lifecycle,
            self.topic_policies,
            self.links,
            self._clock,
            creation_allowed=lambda: self._current().create_topic_to_remote_cluster_for_replication,
            recheck_seconds=self._current().replication_policy_check_duration_seconds,
        )

    def _build_instruments(self) -> Instruments:
        logs = self.stores.logs
        return Instruments(
            inconsistencies=self.inconsistencies,
            lookups=self.lookups.meter,
            topic_loads=self.registry.loads,
            lookups_pending=lambda: self.permits.taken,
            lookups_rejected=lambda: self.permits.rejected,
            connections=lambda: self.binary_server.connections,
            lookups_redirected=lambda: self.lookups.redirected,
            writes=logs.meter,
            logs_open=lambda: logs.open_count,
            metadata=self.stores.metadata_meter,
            schemas=self.schemas.meters,
            loop_lag=self.loop_lag.seconds,
            journal=logs.journal.statistics,
            access=self.access.authentication.meter if self.access else None,
            disk_space=self.stores.disk_space,
        )

    def _export_figures(self, provider: MeterProvider, opened: AsyncExitStack) -> None:
        from interpulse.broker.telemetry.exported_figures import ExportedFigures

        context = self.context
        figures = ExportedFigures(
            provider,
            topics=self.registry.topics,
            instruments=context.instruments,
            config=self._current,
            survey=context.replication_survey,
        )
        opened.callback(figures.close)

    async def _start_registry(self, opened: AsyncExitStack) -> None:
        disk_space = self.stores.disk_space
        await self.registry.start()
        if disk_space is not None:
            disk_space.on_full = lambda: self.registry.spawn(self.registry.topic_tasks.free_disk_space())
            look = partial(self._look_at_disk_space, disk_space)
            self.registry.spawn(run_periodically("disk space", lambda: _DISK_SPACE_CHECK_SECONDS, look))
        opened.push_async_callback(self.registry.close)
        if self.shared is not None:
            self.shared.start(self.registry)
            self.shared.on_resumed = self.binary_server.resume_sending
            self.registry.spawn(self.shared.brokers.keep_fresh())
            opened.callback(self.stores.metadata.watch(keys.TOPIC_POLICIES, self._on_topic_policies_changed))
        opened.callback(self.stores.metadata.watch(keys.POLICIES, self._on_policies_changed))
        self.dynamic.watch(lambda _: self.registry.begin_applying())
        opened.callback(self.dynamic.follow())

    def _follow_certificates(self, expiry: ExpiryLog, rest_server: RestServer) -> None:
        async def refresh() -> None:
            await self.binary_server.refresh_certificates()
            await rest_server.refresh_certificates()
            expiry.look()

        expiry.look()
        seconds = self.config.tls_cert_refresh_check_duration_sec or _CERTIFICATE_CHECK_SECONDS_MIN
        self.registry.spawn(run_periodically("certificates", lambda: seconds, refresh))

    async def _start_upkeep(self, opened: AsyncExitStack) -> None:
        """What the broker does by itself from now on."""
        opened.push_async_callback(self.links.close)
        await self.remote_topics.start()
        opened.push_async_callback(self.remote_topics.stop)
        if self.shared is None:
            await self.supervisor.start()
            opened.push_async_callback(self.supervisor.stop)
            self.registry.spawn(self.deletion.resume())
        else:
            self._share_upkeep(opened)
        self.inactive_topics.start()
        opened.push_async_callback(self.inactive_topics.stop)

    def _share_upkeep(self, opened: AsyncExitStack) -> None:
        """What one broker of the cluster does for all; what topics need is done by those that have them."""

        async def resume_deletions() -> None:
            self.registry.spawn(self.deletion.resume())

        async def nothing() -> None:
            """A deletion under way goes on; should it fail, the next broker resumes it."""

        for name, begin, end in (
            ("replication", self.supervisor.start, self.supervisor.stop),
            ("deletions", resume_deletions, nothing),
        ):
            task = SoleTask(self.stores.metadata, name, self.this_broker.broker_id, begin=begin, end=end)
            task.start()
            opened.push_async_callback(task.stop)

    async def _look_at_disk_space(self, disk_space: DiskSpace) -> None:
        await disk_space.recheck()
        if disk_space.problem is not None:
            await self.registry.topic_tasks.free_disk_space()

    def _current(self) -> BrokerConfig:
        """The settings in force."""
        return self.dynamic.config

    async def _topic_settings(self, topic: TopicName) -> LiveSettings:
        """The effective policies of one topic."""
        namespace = await self.namespaces.find_policies(topic.namespace_name)
        own = await self.topic_policies.find(topic)
        return self._settings_reader.read(topic, own, namespace, self.dynamic.config)

    async def _persistence(self, log_name: str) -> Persistence | None:
        """Return the policy for the ledgers of a topic, None if the broker's settings count."""
        topic = TopicName.from_log_name(log_name)
        namespace = await self.namespaces.find_policies(topic.namespace_name)
        own = await self.topic_policies.find(topic)
        return own.persistence or (namespace.persistence if namespace else None)

    def _schema_settings(self) -> SchemaSettings:
        config = self.dynamic.config
        return SchemaSettings(
            auto_update_allowed=config.is_allow_auto_update_schema_enabled,
            validation_enforced=config.is_schema_validation_enforced,
            strategy=config.schema_compatibility_strategy,
            system_topic_strategy=config.system_topic_schema_compatibility_strategy,
        )

    def _on_topic_policies_changed(self, key: str) -> None:
        """Any broker may have changed them; where there is one, whoever changes them applies them."""
        topic = keys.topic_of_topic_policies(key)
        if topic is not None:
            self.registry.begin_applying(topic.namespace_name, topic.base)
        elif key == keys.TOPIC_POLICIES:
            self.registry.begin_applying()

    def _on_policies_changed(self, key: str) -> None:
        namespace = keys.namespace_of_policies_key(key)
        if namespace is None and key != keys.POLICIES:
            return
        self.registry.begin_applying(namespace)
        if self.shared is not None:
            self.registry.spawn(self.shared.release_missing())
        if self.access is not None:
            self.registry.spawn(self.binary_server.permissions_changed(namespace))

"""Builds every object of a broker and joins them; the only wiring.

Start: addresses, data directory, metadata, log recovery, cluster and namespaces, then the doors - binary before REST,
so that whoever is told "healthy" can publish - and the replication job. Stop is the reverse and takes a bounded time:
the job ends, nobody gets in any more, the topics answer what is pending and store their cursors, clients are hung up
on, the storage is closed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.access.setup import Access, build_access, is_loopback
from interpulse.broker.binary.connection import Handlers
from interpulse.broker.binary.context import BinaryContext, ConnectionLimits
from interpulse.broker.binary.handlers import HANDLERS
from interpulse.broker.binary.permits import LookupPermits
from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.clock import Clock, SystemClock
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.dynamic_config import DynamicConfig
from interpulse.broker.inconsistencies import Refusals
from interpulse.broker.instruments import Instruments
from interpulse.broker.listening import CannotListen, ServiceAddress, host_in_url, is_every_address
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.settings import TopicSettings as LiveSettings
from interpulse.broker.periodic import regularly
from interpulse.broker.replication.replication_supervisor import JobCommand, ReplicationSupervisor, records_without_job
from interpulse.broker.rest.http.context import RestRooms, build_rest_rooms
from interpulse.broker.rest.server import RestServer
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces, bootstrap
from interpulse.broker.tenancy.remote_partitions import AdminRemotePartitions
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup import BatchLimits, Lookups, SoleOwner, this_broker
from interpulse.broker.topics.schemas import Schemas, SchemaSettings
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.broker.topics.topic_reading import LifecycleSettings
from interpulse.broker.topics.topic_settings import topic_settings
from interpulse.broker.topics.topic_watches import TopicWatches
from interpulse.client.credentials import Credentials
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.storage.api import LogStore, MetadataStore
from interpulse.storage.disk_room import DiskRoom
from interpulse.storage.lock import DirectoryLock
from interpulse.storage.segments.files import DiskFiles, Files
from interpulse.storage.segments.open import open_log_store
from interpulse.storage.sqlite import SqliteMetadataStore
from interpulse.storage.topic_log import LogConfig
from interpulse.storage.topic_log_store import TopicLogStore

__all__ = ["BrokerApp", "CannotServe"]

_logger = logging.getLogger(__name__)

# SIGTERM has to end within 5 s; what is not closed by then is closed by the end of the process.
_STOP_SECONDS_MAX: Final = 4.5
_ROOM_CHECK_SECONDS: Final = 1.0


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
        files: Files | None = None,
        job_arguments: tuple[str, ...] = (),
    ) -> None:
        """``handlers`` of the binary protocol and ``files`` of the log are others in tests of faults. ``job_arguments``
        tell the replication job how to show its log."""
        self.config = config
        self.data_dir = Path(config.data_dir)
        self.service_url = ""
        self.web_url = ""
        self.ready = False
        """True from the moment clients can publish until the broker begins to stop."""
        self._clock = clock or SystemClock()
        self._handlers = handlers
        self._files = files or DiskFiles()
        self._job_arguments = job_arguments
        self._opened = AsyncExitStack()

    async def start(self) -> None:
        """Return when clients can publish.

        Raises CannotServe, or DataDirectoryInUse / DataDirectoryUnusable of the storage; then nothing is left open.
        """
        async with AsyncExitStack() as opened:
            try:
                await self._start(opened)
            except (MetadataError, CannotListen) as error:
                raise CannotServe(str(error)) from error
            self._opened = opened.pop_all()
        self.ready = True

    async def stop(self) -> None:
        """Stop accepting, make everything durable that was acknowledged, hang up. Takes less than 5 s."""
        self.ready = False
        try:
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await self._opened.aclose()
        except TimeoutError:
            _logger.error("stop took too long, gave up seconds=%s", _STOP_SECONDS_MAX)

    async def _start(self, opened: AsyncExitStack) -> None:
        config = self.config
        binary_address = ServiceAddress("binary service", config.bind_address, config.broker_service_port)
        web_address = ServiceAddress("web service", config.bind_address, config.web_service_port)
        binary_socket = opened.enter_context(binary_address.bind())
        web_socket = opened.enter_context(web_address.bind())
        host = self._told_host()
        self.service_url = f"pulsar://{host}:{binary_socket.getsockname()[1]}"
        self.web_url = f"http://{host}:{web_socket.getsockname()[1]}"
        self.this_broker = this_broker(self.service_url, self.web_url)

        metadata, logs = await self._open_storage(opened)
        await self._build_rooms(metadata, logs)
        self.access = self._build_access(metadata)
        self.binary_door = binary_door = self._build_binary_door(metadata)
        opened.push_async_callback(binary_door.close)
        await self._start_registry(opened, metadata, binary_door)
        with binary_address.listening():
            await binary_door.start(binary_socket)
        opened.callback(binary_door.stop_accepting)
        supervisor = self._build_supervisor(metadata)
        rest_rooms = self._build_rest_rooms(metadata, supervisor, self._instruments(logs, binary_door))
        rest_door = RestServer(rest_rooms, web_socket)
        with web_address.listening():
            await rest_door.start()
        opened.push_async_callback(rest_door.stop)
        await self._start_upkeep(opened, rest_rooms, supervisor)

    def _told_host(self) -> str:
        """The host in the addresses that clients are told."""
        config = self.config
        try:
            host = host_in_url(config.advertised_host)
        except ValueError:
            raise CannotServe(
                f"advertisedAddress={config.advertised_host}: must be a host name or address, without scheme and port"
            ) from None
        if is_every_address(config.advertised_host):
            _logger.warning(
                "clients on other machines are sent to themselves told=%s listening=%s remedy=%s",
                host,
                config.bind_address,
                "advertisedAddress=NAME (--advertised-address), a name or address by which they reach this machine",
            )
        return host

    async def _start_upkeep(
        self, opened: AsyncExitStack, rest_rooms: RestRooms, supervisor: ReplicationSupervisor
    ) -> None:
        """What the broker does by itself from now on."""
        opened.push_async_callback(rest_rooms.links.close)
        await rest_rooms.remote_topics.start()
        opened.push_async_callback(rest_rooms.remote_topics.stop)
        await supervisor.start()
        opened.push_async_callback(supervisor.stop)
        self.registry.spawn(rest_rooms.deletion.resume())
        self.inactive_topics = rest_rooms.inactive_topics
        self.inactive_topics.start()
        opened.push_async_callback(self.inactive_topics.stop)

    async def _open_storage(self, opened: AsyncExitStack) -> tuple[MetadataStore, TopicLogStore]:
        lock = DirectoryLock.acquire(self.data_dir)
        opened.callback(lock.release)
        self.disk_room = DiskRoom(self.data_dir, self._files, self.config.disk_reserve_in_mb * 1024 * 1024)
        self.disk_room.measure()
        on_full = self.disk_room.ran_out
        metadata = await SqliteMetadataStore.open(self.data_dir / "metadata.sqlite", on_full=on_full)
        opened.push_async_callback(metadata.close)
        logs = await open_log_store(
            self.data_dir / "log",
            metadata,
            config=_log_config(self.config),
            files=self._files,
            on_full=on_full,
            on_write=self.disk_room.takes,
        )
        opened.push_async_callback(logs.close)
        cluster = ClusterData(service_url=self.web_url, broker_service_url=self.service_url)
        try:
            await bootstrap(metadata, local_cluster=self.config.cluster_name, cluster=cluster)
        except PreconditionFailed as error:
            raise CannotServe(f"data directory {self.data_dir} cannot be served: {error}") from error
        return metadata, logs

    async def _build_rooms(self, metadata: MetadataStore, logs: LogStore) -> None:
        config = self.config
        self.dynamic = DynamicConfig(metadata, config)
        await self.dynamic.load()
        self.namespaces = Namespaces(metadata, local_cluster=config.cluster_name)
        self.registry = TopicRegistry(
            cluster=config.cluster_name,
            metadata=metadata,
            logs=logs,
            clock=self._clock,
            open_rule=lambda name, by, create: self.lifecycle.open(name, by=by, create=create),
            settings=self._topic_settings,
            replicator_prefix=config.replicator_prefix,
            upkeep_seconds=config.retention_check_interval_in_seconds,
            compaction_seconds=config.broker_service_compaction_monitor_interval_in_seconds,
            subscription_expiry_seconds=config.subscription_expiry_check_interval_in_minutes * 60,
            quota_check_seconds=config.backlog_quota_check_interval_in_seconds
            if config.backlog_quota_check_enabled
            else None,
            stamping=BrokerEntryFields.named(config.broker_entry_metadata_interceptors),
            read_bytes_max=config.managed_ledger_cache_size_mb * 1024 * 1024,
            check_room=self.disk_room.check,
        )
        self.lifecycle = TopicLifecycle(
            metadata,
            self.namespaces,
            LifecycleSettings.following(lambda: self.dynamic.config),
            loaded=self.registry.names,
            remote_partitions=AdminRemotePartitions(
                Clusters(metadata), self._clock, timeout_ms=config.auto_topic_creation_lookup_timeout_ms
            ),
        )
        self.topic_policies = TopicPolicyRecords(metadata, self.lifecycle)
        self.schemas = Schemas(metadata, self.namespaces, self._schema_settings, self._clock)
        self.refusals = Refusals(self._clock.now_ms)
        self.permits = LookupPermits(lambda: self.dynamic.config.max_concurrent_lookup_request)
        self.lookups = self._build_lookups(metadata)

    def _build_lookups(self, metadata: MetadataStore) -> Lookups:
        return Lookups(
            self.namespaces,
            Clusters(metadata),
            self.lifecycle,
            SoleOwner(self.this_broker),
            permits=self.permits,
            limits=lambda: BatchLimits.of(self.dynamic.config),
            ready=lambda: self.ready,
        )

    async def _start_registry(self, opened: AsyncExitStack, metadata: MetadataStore, binary_door: BinaryServer) -> None:
        await self.registry.start()
        self.disk_room.on_full = lambda: self.registry.spawn(self.registry.rounds.make_room())
        self.registry.spawn(regularly("room on the disk", lambda: _ROOM_CHECK_SECONDS, self._look_for_room))
        opened.push_async_callback(self.registry.close)
        opened.callback(metadata.watch(keys.POLICIES, self._on_policies_changed))
        self.dynamic.watch(lambda _: self.registry.begin_applying())
        if self.access is not None:
            opened.callback(metadata.watch(keys.POLICIES, partial(self._on_permissions_changed, binary_door)))

    async def _look_for_room(self) -> None:
        await self.disk_room.look_again()
        if self.disk_room.problem is not None:
            await self.registry.rounds.make_room()

    def _build_access(self, metadata: MetadataStore) -> Access | None:
        try:
            access = build_access(self.config, Tenants(metadata), self.namespaces)
        except PreconditionFailed as error:
            raise CannotServe(str(error)) from error
        if access is None and not is_loopback(self.config.bind_address):
            _logger.warning(
                "anybody who reaches this broker may do everything address=%s remedy=%s",
                self.config.bind_address,
                "authenticationEnabled=true and authorizationEnabled=true, or bindAddress=127.0.0.1",
            )
        return access

    def _build_binary_door(self, metadata: MetadataStore) -> BinaryServer:
        config = self.config
        context = BinaryContext(
            registry=self.registry,
            lifecycle=self.lifecycle,
            namespaces=self.namespaces,
            schemas=self.schemas,
            lookups=self.lookups,
            permits=self.permits,
            refusals=self.refusals,
            topic_watches=TopicWatches(metadata, self.lifecycle, self.registry.spawn),
            replicator_prefix=config.replicator_prefix,
            access=self.access,
            check_room=self.disk_room.check,
        )
        limits = ConnectionLimits(
            keep_alive_seconds=config.keep_alive_interval_seconds,
            message_bytes_max=config.max_message_size,
            pending_publishes_max=config.max_pending_publish_requests_per_connection,
            liveness_check_seconds=config.connection_liveness_check_timeout_millis / 1000,
            patterns_evaluated=config.enable_broker_side_subscription_pattern_evaluation,
            pattern_length_max=config.subscription_pattern_max_length,
            topic_watchers_allowed=config.enable_broker_topic_list_watcher,
            broker_entry_metadata_exposed=config.exposing_broker_entry_metadata_to_client_enabled,
        )
        return BinaryServer(context, limits, self._handlers)

    def _instruments(self, logs: TopicLogStore, binary_door: BinaryServer) -> Instruments:
        return Instruments(
            refusals=self.refusals,
            lookups=self.lookups.meter,
            topic_loads=self.registry.loads,
            lookups_pending=lambda: self.permits.taken,
            lookups_rejected=lambda: self.permits.rejected,
            connections=lambda: binary_door.connections,
            written=lambda: {group.rpartition("/")[0]: entries for group, entries in logs.written().items()},
            journal=logs.journal.statistics,
            access=self.access.authentication.meter if self.access else None,
            disk_room=self.disk_room,
        )

    def _build_rest_rooms(
        self, metadata: MetadataStore, supervisor: ReplicationSupervisor, instruments: Instruments
    ) -> RestRooms:
        return build_rest_rooms(
            metadata,
            namespaces=self.namespaces,
            lifecycle=self.lifecycle,
            registry=self.registry,
            lookups=self.lookups,
            schemas=self.schemas,
            dynamic=self.dynamic,
            this_broker=self.this_broker,
            ready=lambda: self.ready,
            clock=self._clock,
            access=self.access,
            instruments=instruments,
            without_job=lambda topics: records_without_job(supervisor.view, topics),
        )

    def _build_supervisor(self, metadata: MetadataStore) -> ReplicationSupervisor:
        config = self.config
        command = JobCommand(
            cluster=config.cluster_name,
            service_url=self.service_url,
            web_url=self.web_url,
            data_dir=self.data_dir,
            spark_master=config.replication_job_spark_master,
            driver_memory=config.replication_job_driver_memory,
            creation_allowed=config.create_topic_to_remote_cluster_for_replication,
            token=self._job_token(),
            arguments=self._job_arguments,
        )
        return ReplicationSupervisor(metadata, command, mode=config.replication_job, clock=self._clock)

    def _job_token(self) -> str | None:
        """Who the replication job is here. Raises CannotServe for what it cannot use."""
        config = self.config
        try:
            credentials = Credentials.from_plugin(
                config.broker_client_authentication_plugin, config.broker_client_authentication_parameters
            )
        except ValueError as error:
            raise CannotServe(f"brokerClientAuthenticationParameters: {error}") from error
        if credentials is not None and credentials.method != "token":
            raise CannotServe("brokerClientAuthenticationPlugin: the replication job can use tokens only")
        return None if credentials is None else credentials.source

    async def _topic_settings(self, topic: TopicName) -> LiveSettings:
        """The effective policies of one topic."""
        namespace = await self.namespaces.find_policies(topic.namespace_name)
        own = await self.topic_policies.find(topic)
        return topic_settings(topic, own, namespace, self.dynamic.config)

    def _schema_settings(self) -> SchemaSettings:
        config = self.dynamic.config
        return SchemaSettings(
            auto_update_allowed=config.is_allow_auto_update_schema_enabled,
            validation_enforced=config.is_schema_validation_enforced,
            strategy=config.schema_compatibility_strategy,
            system_topic_strategy=config.system_topic_schema_compatibility_strategy,
        )

    def _on_policies_changed(self, key: str) -> None:
        namespace = keys.namespace_of_policies_key(key)
        if namespace is not None:
            self.registry.begin_applying(namespace)

    def _on_permissions_changed(self, binary_door: BinaryServer, key: str) -> None:
        namespace = keys.namespace_of_policies_key(key)
        if namespace is not None:
            self.registry.spawn(binary_door.permissions_changed(namespace))


def _log_config(config: BrokerConfig) -> LogConfig:
    minute_ms, mib = 60_000, 1024 * 1024
    return LogConfig(
        ledger_entries_max=config.managed_ledger_max_entries_per_ledger,
        ledger_bytes_max=config.managed_ledger_max_size_per_ledger_mbytes * mib,
        ledger_age_min_ms=config.managed_ledger_min_ledger_rollover_time_minutes * minute_ms,
        ledger_age_max_ms=config.managed_ledger_max_ledger_rollover_time_minutes * minute_ms,
        cache_bytes_max=config.managed_ledger_cache_size_mb * mib,
    )

"""One broker, started and stopped in order.

Start: addresses, stores, cluster and namespaces, then the front ends, binary before REST, so that a client can publish
once the broker reports that it is healthy, and the replication job. Stop is the reverse and takes a bounded time: the
job ends, the front ends accept no more clients, the topics answer pending requests and store their cursors, clients are
disconnected, the stores are closed.

`assembly` builds the objects. `BrokerAlone` and `cluster_member` hold the differences between a standalone broker and a
member of a cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.access.setup import own_access
from interpulse.broker.assembly import (
    CannotServe,
    Foundation,
    Membership,
    Replication,
    Tenancy,
    Topics,
    build_binary_server,
    build_context,
    build_instruments,
    build_replication,
    build_tenancy,
    build_topics,
)
from interpulse.broker.binary.handlers import HANDLERS
from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.binary.transport.context import Handlers
from interpulse.broker.closing import close_in_time
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.console_host import console_of_broker
from interpulse.broker.instruments import LoopLag
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.ownership.ownership import SoleOwner
from interpulse.broker.periodic import run_periodically
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.server import RestServer
from interpulse.broker.services import Services
from interpulse.broker.stores import OpenStores, in_data_directory
from interpulse.broker.tenancy.namespaces import bootstrap
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.clock import Clock, SystemClock
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.rules.placement import sent_to
from interpulse.serving.admission import ConnectionQuota, sockets_max
from interpulse.serving.listening import Bind, CannotListen, ServiceAddress
from interpulse.serving.settings import ConfigError
from interpulse.serving.tls import ExpiryLog
from interpulse.storage.metadata.session_bounded import SessionBoundedMetadata, leave_if_session_lost
from interpulse.storage.segments.disk_space import DiskSpace

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from interpulse.broker.ownership.registered_brokers import ProcessUsage

_DISK_SPACE_CHECK_SECONDS: Final = 1.0
_CERTIFICATE_CHECK_SECONDS_MIN: Final = 1

_logger = logging.getLogger(__name__)

_STOP_SECONDS_MAX: Final = 4.5
"""Limit for the stop, so that SIGTERM ends within 5 s. The end of the process closes the rest."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects of a started broker."""

    base: Foundation
    tenancy: Tenancy
    member: Membership
    topics: Topics
    replication: Replication
    binary_server: BinaryServer
    context: RestContext


class BrokerApp:
    """One broker with all its objects, started and stopped in order."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        handlers: Handlers = HANDLERS,
        open_stores: OpenStores | None = None,
        bind: Bind = ServiceAddress.bind,
        job_arguments: tuple[str, ...] = (),
        meter_provider: MeterProvider | None = None,
        process_usage: Callable[[], ProcessUsage] | None = None,
    ) -> None:
        """Use these parts in place of the usual ones.

        ``job_arguments`` configure the log of the replication job. ``meter_provider`` exports metrics by OpenTelemetry;
        without it, none of its modules is loaded. ``process_usage`` is for the load reports of a cluster.
        """
        self.config = config
        self.data_dir = Path(config.data_dir)
        self.addresses = ListenerAddresses()
        self.ready = False
        """True from the moment clients can publish until the broker begins to stop."""
        self.must_stop = asyncio.Event()
        """Set when this broker may serve no more; the log gives the reason."""
        self._clock = clock or SystemClock()
        self._handlers = handlers
        self._bind = bind
        self._open_stores = open_stores or in_data_directory()
        self._job_arguments = job_arguments
        self._meter_provider = meter_provider
        self._process_usage = process_usage
        self._loop_lag = LoopLag()
        self._opened = AsyncExitStack()
        self._sockets = ConnectionQuota(sockets_max())
        self._parts: Parts | None = None

    @property
    def service_url(self) -> str:
        """The address of the binary service, without TLS if there is one; "" before the start."""
        return self.addresses.service(tls=False)

    @property
    def web_url(self) -> str:
        """The address of the web service, without TLS if there is one; "" before the start."""
        return self.addresses.web(tls=False)

    @property
    def parts(self) -> Parts:
        """The objects of the broker, once it started."""
        assert self._parts is not None, "not started"
        return self._parts

    @property
    def context(self) -> RestContext:
        """The objects behind the admin API."""
        return self.parts.context

    @property
    def registry(self) -> TopicRegistry:
        """The loaded topics."""
        return self.parts.topics.registry

    @property
    def lifecycle(self) -> TopicLifecycle:
        """The records of topics, with their rules."""
        return self.parts.topics.lifecycle

    @property
    def lookups(self) -> Lookups:
        """The source of answers to lookups."""
        return self.parts.topics.lookups

    async def start(self) -> None:
        """Start the broker. Returns when clients can publish.

        Raises CannotServe, or DataDirectoryInUse / DataDirectoryUnusable of the storage; then nothing is left open.
        """
        async with AsyncExitStack() as opened:
            try:
                parts = self._parts = await self._assemble(opened)
                self.ready = True
                await parts.member.announce(parts.topics.registry)
            except (MetadataError, CannotListen, ConfigError, PreconditionFailed) as error:
                self.ready = False
                raise CannotServe(str(error)) from error
            self._opened = opened.pop_all()

    async def stop(self) -> None:
        """Stop accepting, make everything acknowledged durable, disconnect. Takes less than 5 s.

        In a cluster the broker first gives its bundles away, which may take about 65 s at most.
        """
        self.ready = False
        if self._parts is not None:
            await self._parts.member.close(self._opened)

    async def _assemble(self, opened: AsyncExitStack) -> Parts:
        """Build everything, serve, and start the upkeep. ``opened`` closes it in reverse order."""
        services = Services.take(self.config, opened, self._bind)
        self.addresses = services.addresses
        own = own_access(self.config)
        stores = await self._open_stores(self.config, opened)
        metadata = stores.metadata if stores.guarded is None else SessionBoundedMetadata(stores.metadata)
        base = Foundation.of(self.config, self._clock, own, services, stores, metadata)
        tenancy, member = await self._join(base)
        topics = build_topics(base, tenancy, member, lambda: self.ready)
        replication = build_replication(base, tenancy, topics, self._job_arguments)
        binary_server = build_binary_server(base, tenancy, topics, self._handlers, self._sockets)
        instruments = build_instruments(base, tenancy, topics, binary_server, self._loop_lag)
        context = build_context(base, tenancy, topics, replication, member, instruments, lambda: self.ready)
        parts = Parts(base, tenancy, member, topics, replication, binary_server, context)
        await self._serve(parts, services, opened)
        await self._start_upkeep(parts, opened)
        return parts

    async def _join(self, base: Foundation) -> tuple[Tenancy, Membership]:
        guarded = base.stores.guarded
        if guarded is None:
            alone = await BrokerAlone.begin(base)
            return await build_tenancy(base), alone
        from interpulse.broker.cluster_member import ClusterMember  # loaded only in a cluster

        tenancy = await build_tenancy(base)
        return tenancy, await ClusterMember.join(base, tenancy, guarded, self.must_stop.set, self._process_usage)

    async def _serve(self, parts: Parts, services: Services, opened: AsyncExitStack) -> None:
        binary_server, context = parts.binary_server, parts.context
        opened.push_async_callback(parts.tenancy.links.close)
        opened.push_async_callback(binary_server.close)
        await _start_registry(parts, opened)
        opened.callback(binary_server.sockets.close)
        for service in services.binary:
            await service.open(binary_server.start)
        quota = ConnectionQuota(self.config.max_http_server_connections, within=self._sockets)
        rest_server = RestServer(context, quota)
        rest_server.mount(console_of_broker(context, rest_server.calls))
        opened.push_async_callback(rest_server.stop)
        for service in services.web:
            await service.open(rest_server.start)
        if services.tls is not None:
            _follow_certificates(parts, ExpiryLog(services.tls), rest_server)

    async def _start_upkeep(self, parts: Parts, opened: AsyncExitStack) -> None:
        replication, topics = parts.replication, parts.topics
        await replication.remote_topics.start()
        opened.push_async_callback(replication.remote_topics.stop)
        await parts.member.start_upkeep(topics, replication, opened)
        topics.inactive_topics.start()
        opened.push_async_callback(topics.inactive_topics.stop)
        if self._meter_provider is not None:
            _export_metrics(parts, self._meter_provider, opened)
        self._loop_lag.start()
        opened.callback(self._loop_lag.stop)
        parts.member.leave_with(opened)


async def _start_registry(parts: Parts, opened: AsyncExitStack) -> None:
    registry, tenancy, stores = parts.topics.registry, parts.tenancy, parts.base.stores
    await registry.start()
    if stores.disk_space is not None:
        _follow_disk_space(stores.disk_space, registry)
    opened.push_async_callback(registry.close)
    parts.member.follow(parts.topics, parts.binary_server.resume_sending, opened)
    roles = parts.topics.failover_roles
    if roles.peer is not None:
        roles.peer.start(roles, registry.spawn, registry.begin_applying)
        registry.spawn(leave_if_session_lost(roles.look_at_all()))

    def on_policies_changed(key: str) -> None:
        namespace = keys.namespace_of_policies_key(key)
        if namespace is None and key != keys.POLICIES:
            return
        registry.begin_applying(namespace)
        parts.member.namespaces_changed(registry)
        if tenancy.access is not None:
            registry.spawn(leave_if_session_lost(parts.binary_server.permissions_changed(namespace)))

    opened.callback(stores.metadata.watch(keys.POLICIES, on_policies_changed))
    migration = keys.cluster_migration(parts.base.config.cluster_name)
    opened.callback(stores.metadata.watch(migration, lambda _: registry.begin_applying()))
    tenancy.dynamic.watch(lambda _: registry.begin_applying())
    opened.callback(tenancy.dynamic.follow())


def _follow_disk_space(disk_space: DiskSpace, registry: TopicRegistry) -> None:
    async def look() -> None:
        await disk_space.recheck()
        if disk_space.problem is not None:
            await registry.topic_tasks.free_disk_space()

    disk_space.on_full = lambda: registry.spawn(registry.topic_tasks.free_disk_space())
    registry.spawn(run_periodically("disk space", lambda: _DISK_SPACE_CHECK_SECONDS, look))


def _follow_certificates(parts: Parts, expiry: ExpiryLog, rest_server: RestServer) -> None:
    async def refresh() -> None:
        await parts.binary_server.sockets.refresh()
        await rest_server.sockets.refresh()
        expiry.look()

    expiry.look()
    seconds = parts.base.config.tls_cert_refresh_check_duration_sec or _CERTIFICATE_CHECK_SECONDS_MIN
    parts.topics.registry.spawn(run_periodically("certificates", lambda: seconds, refresh))


def _export_metrics(parts: Parts, provider: MeterProvider, opened: AsyncExitStack) -> None:
    from interpulse.broker.telemetry.exported_metrics import ExportedMetrics

    context = parts.context
    exported = ExportedMetrics(
        provider,
        topics=context.registry.topics,
        instruments=context.instruments,
        config=parts.tenancy.current,
        survey=context.replication_survey,
    )
    opened.callback(exported.close)


class BrokerAlone:
    """The membership of a standalone broker; see `Membership`."""

    shared = None
    others = None

    def __init__(self, base: Foundation) -> None:
        addresses = base.this_addresses
        self.owners = SoleOwner(base.this_broker, {name: sent_to(addresses, name) for name in addresses.listeners})

    @classmethod
    async def begin(cls, base: Foundation) -> BrokerAlone:
        """Write the records that every cluster has. Raise CannotServe for a data directory of another cluster."""
        addresses, config = base.addresses, base.config
        cluster = ClusterData(
            service_url=addresses.web_url or None,
            service_url_tls=addresses.web_url_tls or None,
            broker_service_url=addresses.service_url or None,
            broker_service_url_tls=addresses.service_url_tls or None,
        )
        try:
            await bootstrap(base.stores.metadata, local_cluster=config.cluster_name, cluster=cluster)
        except PreconditionFailed as error:
            raise CannotServe(f"data directory {config.data_dir} cannot be served: {error}") from error
        return cls(base)

    def change_events(self, loaded: Set[TopicName]) -> None:
        return None

    def follow(self, topics: Topics, resume_sending: Callable[[], None], opened: AsyncExitStack) -> None:
        return

    async def start_upkeep(self, topics: Topics, replication: Replication, opened: AsyncExitStack) -> None:
        await replication.supervisor.start()
        opened.push_async_callback(replication.supervisor.stop)
        topics.registry.spawn(topics.deletion.resume())

    def namespaces_changed(self, registry: TopicRegistry) -> None:
        return

    def leave_with(self, opened: AsyncExitStack) -> None:
        return

    async def announce(self, registry: TopicRegistry) -> None:
        return

    async def close(self, opened: AsyncExitStack) -> None:
        await close_in_time(opened, _STOP_SECONDS_MAX)

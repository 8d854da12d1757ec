"""Construction of every object of the proxy."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from interpulse import __version__
from interpulse.client.config import ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.model.errors import PulsarError
from interpulse.proxy.access import build_access
from interpulse.proxy.binary_server import BinaryServer, GreetingContext
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.dialer import Dialer, TargetRules
from interpulse.proxy.lookup.lookup_session import Answers
from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.proxy.web_server import WebServer, WebSettings
from interpulse.serving.admission import LookupPermits
from interpulse.serving.listening import CannotListen, ServiceAddress, advertised_host
from interpulse.serving.settings import ConfigError
from interpulse.serving.tls import ExpiryLog, ServerTls
from interpulse.serving.web_pages import KnownHosts
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.server import ServerProtocol

_logger = logging.getLogger(__name__)

_SERVER_VERSION: Final = f"Pulsar Server interpulse-{__version__}"
_FLAGS: Final = pb.FeatureFlags(
    supports_get_partitioned_metadata_without_auto_creation=True, supports_batch_lookup=True
)
"""Flags of connections for lookups. Topic watchers need a broker, so clients behind a proxy ask for lists instead."""
_OPERATION_TIMEOUT_MS: Final = 30_000
_CERTIFICATE_CHECK_SECONDS_MIN: Final = 1


class CannotStartProxy(Exception):
    """The proxy cannot start; ``str()`` is the sentence for the user."""


class ProxyApp:
    """One proxy. `start` it, and `stop` it in any case."""

    def __init__(self, config: ProxyConfig) -> None:
        """Check the settings. Raise CannotStartProxy if they cannot be used."""
        self.config = config
        self.meter = ProxyMeter()
        self.brokers = Brokers(config.broker_urls, config.web_urls)
        self.service_url = self.web_url = ""
        self.service_url_tls = self.web_url_tls = ""
        self._opened = AsyncExitStack()
        try:
            self._access = build_access(config)
            self._rules = TargetRules.read(
                config.broker_proxy_allowed_host_names,
                config.broker_proxy_allowed_ip_addresses,
                config.broker_proxy_allowed_target_ports,
            )
        except ConfigError as error:
            raise CannotStartProxy("; ".join(error.problems)) from error
        except PulsarError as error:
            raise CannotStartProxy(str(error)) from error
        if self._access is not None:
            self.meter.access = self._access.authentication.meter

    @property
    def ready(self) -> bool:
        """True while there is a broker to ask."""
        return self.brokers.count > 0

    async def start(self) -> None:
        """Discover the brokers and listen. Raise CannotStartProxy."""
        try:
            await self._start()
        except (CannotListen, PulsarError) as error:
            raise CannotStartProxy(str(error)) from error

    async def stop(self) -> None:
        """Disconnect clients and brokers, in bounded time."""
        await self._opened.aclose()

    async def _start(self) -> None:
        config = self.config
        host = advertised_host(config.advertised_address, listening=config.bind_address, shown_to_clients=False)
        tls = ServerTls(
            config.tls_certificate_file_path,
            config.tls_key_file_path,
            config.tls_trust_certs_file_path,
            client_certificate_required=config.tls_require_trusted_client_cert_on_connect,
        )
        if config.service_port_tls is not None or config.web_service_port_tls is not None:
            tls.context()  # refused before anything is opened
        await self._follow_brokers()
        binary = self._binary_server()
        self._opened.push_async_callback(binary.close)
        web = self._web_server()
        await web.start()
        self._opened.push_async_callback(web.stop)
        port = await self._listen("binary service", config.service_port, binary.listen)
        self.service_url = f"pulsar://{host}:{port}"
        web_port = await self._listen("web service", config.web_service_port, web.listen)
        self.web_url = f"http://{host}:{web_port}"
        if config.service_port_tls is not None:
            listen = partial(binary.listen_encrypted, tls=tls)
            port = await self._listen("binary service with TLS", config.service_port_tls, listen)
            self.service_url_tls = f"pulsar+ssl://{host}:{port}"
        if config.web_service_port_tls is not None:
            listen = partial(web.listen_encrypted, tls=tls)
            web_port = await self._listen("web service with TLS", config.web_service_port_tls, listen)
            self.web_url_tls = f"https://{host}:{web_port}"
        if self.service_url_tls or self.web_url_tls:
            self._follow_certificates(ExpiryLog(tls), binary, web)

    def _follow_certificates(self, expiry: ExpiryLog, binary: BinaryServer, web: WebServer) -> None:
        async def look() -> None:
            seconds = self.config.tls_cert_refresh_check_duration_sec or _CERTIFICATE_CHECK_SECONDS_MIN
            while True:
                expiry.look()
                await asyncio.sleep(seconds)
                await binary.refresh_certificates()
                await web.refresh_certificates()

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        task = asyncio.create_task(look())
        self._opened.push_async_callback(stop)

    async def _listen(self, service: str, port: int, listen: Callable[[socket.socket], Awaitable[None]]) -> int:
        address = ServiceAddress(service, self.config.bind_address, port)
        bound = address.bind()
        taken: int = bound.getsockname()[1]
        with address.listening():
            await listen(bound)
        return taken

    async def _follow_brokers(self) -> None:
        config = self.config
        if not config.metadata_store_url:
            return
        from interpulse.proxy.registered_brokers import RegisteredBrokers  # not needed by a proxy of configured brokers
        from interpulse.storage.zookeeper.errors import ZooKeeperError

        try:
            registered = await RegisteredBrokers.follow(
                config.metadata_store_url,
                self.brokers.register,
                tls=config.tls_enabled_with_broker,
                session_timeout_ms=config.metadata_store_session_timeout_millis,
            )
        except (ZooKeeperError, ValueError) as error:
            raise CannotStartProxy(f"metadataStoreUrl={config.metadata_store_url}: {error}") from error
        self._opened.push_async_callback(registered.stop)

    def _binary_server(self) -> BinaryServer:
        config, tls = self.config, self.config.tls_enabled_with_broker
        permits = LookupPermits(lambda: config.max_concurrent_lookup_requests)
        dialer = Dialer(
            self.brokers,
            self._rules,
            timeout_seconds=config.broker_proxy_connect_timeout_ms / 1000,
            tls=config.broker_tls if tls else None,
        )
        context = GreetingContext(
            brokers=self.brokers,
            rules=self._rules,
            dialer=dialer,
            answers=Answers(permits, self.meter),
            meter=self.meter,
            new_protocol=self._new_protocol,
            new_config=self._client_config,
            credentials_forwarded=config.forward_authorization_credentials,
            tls_with_brokers=tls,
            idle_seconds=config.broker_proxy_read_timeout_ms / 1000,
            access=self._access,
        )
        return BinaryServer(
            context,
            connections_max=config.max_concurrent_inbound_connections,
            connections_per_ip_max=config.max_concurrent_inbound_connections_per_ip,
        )

    def _web_server(self) -> WebServer:
        config = self.config
        settings = WebSettings(
            hosts=KnownHosts.of(config, "proxy"),
            rules=self._rules,
            credentials_forwarded=config.forward_authorization_credentials,
            calls_max=config.max_concurrent_http_requests,
            connections_max=config.max_http_server_connections,
            idle_seconds=config.http_server_idle_timeout / 1000,
            timeout_seconds=config.http_proxy_timeout / 1000,
            connect_timeout_seconds=config.broker_proxy_connect_timeout_ms / 1000,
            body_bytes_max=config.http_input_max_replay_buffer_size,
            broker_context=config.broker_tls.context() if config.tls_enabled_with_broker else None,
            access=self._access,
        )
        return WebServer(self.brokers, settings, metrics=self._metrics, ready=lambda: self.ready)

    def _metrics(self) -> bytes:
        return self.meter.page(self.brokers.count)

    def _client_config(self, credentials: Credentials | None) -> ClientConfig:
        """Return settings for connections to brokers. The service URL is unused, since each call names its broker."""
        config, scheme = self.config, "pulsar+ssl" if self.config.tls_enabled_with_broker else "pulsar"
        return ClientConfig(
            service_url=f"{scheme}://localhost",
            credentials=credentials,
            tls=config.broker_tls,
            connect_timeout_ms=config.broker_proxy_connect_timeout_ms,
            operation_timeout_ms=_OPERATION_TIMEOUT_MS,
        )

    def _new_protocol(self, now: float) -> ServerProtocol:
        return ServerProtocol(
            server_version=_SERVER_VERSION,
            feature_flags=_FLAGS,
            now=now,
            keep_alive_interval=self.config.keep_alive_interval_seconds,
            message_limit_announced=False,
        )

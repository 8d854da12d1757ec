"""Construction of every object of the proxy."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Final

from interpulse.model.errors import PulsarError
from interpulse.proxy.access import build_access
from interpulse.proxy.binary_server import BinaryServer, GreetingContext
from interpulse.proxy.brokers import Brokers
from interpulse.proxy.dialer import Dialer, TargetRules
from interpulse.proxy.lookup.lookup_session import Answers
from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.proxy.web_server import WebServer
from interpulse.serving.admission import LookupPermits
from interpulse.serving.listening import Bind, CannotListen, ServiceAddress, advertised_host
from interpulse.serving.settings import ConfigError
from interpulse.serving.tls import ExpiryLog, ListeningSockets, ServerTls

_logger = logging.getLogger(__name__)

_CERTIFICATE_CHECK_SECONDS_MIN: Final = 1


class CannotStartProxy(Exception):
    """The proxy cannot start; ``str()`` is the sentence for the user."""


class ProxyApp:
    """One proxy. `start` it, and `stop` it in any case."""

    def __init__(self, config: ProxyConfig, *, bind: Bind = ServiceAddress.bind) -> None:
        """Check the settings. Raise CannotStartProxy if they cannot be used."""
        self.config = config
        self._bind = bind
        self.meter = ProxyMeter()
        self.brokers = Brokers(config.broker_urls, config.web_urls)
        self.permits = LookupPermits(lambda: config.max_concurrent_lookup_requests)
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
        web = WebServer(config, self.brokers, self._rules, self._access, lambda: self.meter.page(self.brokers.count))
        await web.start()
        self._opened.push_async_callback(web.stop)
        port = await self._listen("binary service", config.service_port, binary.sockets)
        self.service_url = f"pulsar://{host}:{port}"
        port = await self._listen("web service", config.web_service_port, web.sockets)
        self.web_url = f"http://{host}:{port}"
        if config.service_port_tls is not None:
            port = await self._listen("binary service with TLS", config.service_port_tls, binary.sockets, tls)
            self.service_url_tls = f"pulsar+ssl://{host}:{port}"
        if config.web_service_port_tls is not None:
            port = await self._listen("web service with TLS", config.web_service_port_tls, web.sockets, tls)
            self.web_url_tls = f"https://{host}:{port}"
        if self.service_url_tls or self.web_url_tls:
            self._follow_certificates(ExpiryLog(tls), binary, web)

    def _follow_certificates(self, expiry: ExpiryLog, binary: BinaryServer, web: WebServer) -> None:
        async def look() -> None:
            seconds = self.config.tls_cert_refresh_check_duration_sec or _CERTIFICATE_CHECK_SECONDS_MIN
            while True:
                expiry.look()
                await asyncio.sleep(seconds)
                await binary.sockets.refresh()
                await web.sockets.refresh()

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        task = asyncio.create_task(look())
        self._opened.push_async_callback(stop)

    async def _listen(self, service: str, port: int, sockets: ListeningSockets, tls: ServerTls | None = None) -> int:
        address = ServiceAddress(service, self.config.bind_address, port)
        bound = self._bind(address)
        taken: int = bound.getsockname()[1]
        with address.listening():
            await sockets.listen(bound, tls)
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
        config = self.config
        dialer = Dialer(
            self.brokers,
            self._rules,
            timeout_seconds=config.broker_proxy_connect_timeout_ms / 1000,
            tls=config.broker_tls if config.tls_enabled_with_broker else None,
        )
        answers = Answers(self.permits, self.meter)
        return BinaryServer(
            GreetingContext(self.brokers, self._rules, dialer, answers, self.meter, config, self._access)
        )

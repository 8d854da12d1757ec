"""The services of a broker, with and without TLS: bound when it starts, listening when it is ready."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Self

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.brokers import ListenerAddresses
from interpulse.rules.listeners import Listeners, plan_listeners
from interpulse.serving.listening import Bind, ServiceAddress, advertised_host
from interpulse.serving.tls import ServerTls

Listen = Callable[[socket.socket, ServerTls | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _TakenAddress:
    address: ServiceAddress
    bound: socket.socket
    tls: ServerTls | None

    async def open(self, listen: Listen) -> None:
        with self.address.listening():
            await listen(self.bound, self.tls)


@dataclass(frozen=True, slots=True)
class Services:
    """The bound addresses, and the addresses that clients see."""

    addresses: ListenerAddresses
    """Addresses for other brokers, and for clients that name no listener."""
    listeners: Listeners
    binary: tuple[_TakenAddress, ...]
    web: tuple[_TakenAddress, ...]

    @classmethod
    def take(cls, config: BrokerConfig, opened: AsyncExitStack, bind: Bind = ServiceAddress.bind) -> Self:
        """Bind the services of the settings; ``opened`` closes them. Raises CannotListen, UnusableTls."""
        listeners = plan_listeners(config.advertised_listeners, config.internal_listener_name)
        host = listeners.host or advertised_host(config.advertised_address, listening=config.bind_address)
        bound: dict[str, _TakenAddress] = {}
        for scheme, name, port, tls in (
            ("pulsar", "binary service", config.broker_service_port, None),
            ("pulsar+ssl", "binary service with TLS", config.broker_service_port_tls, config.binary_tls),
            ("http", "web service", config.web_service_port, None),
            ("https", "web service with TLS", config.web_service_port_tls, config.web_tls),
        ):
            if port is not None:
                address = ServiceAddress(name, config.bind_address, port)
                if tls is not None:
                    tls.context()  # fails before anything is opened
                bound[scheme] = _TakenAddress(address, opened.enter_context(bind(address)), tls)
        urls = {scheme: f"{scheme}://{host}:{service.bound.getsockname()[1]}" for scheme, service in bound.items()}
        own = ListenerAddresses(*(urls.get(scheme, "") for scheme in ("pulsar", "pulsar+ssl", "http", "https")))
        internal = listeners.by_name.get(listeners.internal)
        return cls(
            own if internal is None else internal.filled_by(own),
            listeners,
            tuple(bound[scheme] for scheme in ("pulsar", "pulsar+ssl") if scheme in bound),
            tuple(bound[scheme] for scheme in ("http", "https") if scheme in bound),
        )

    @property
    def tls(self) -> ServerTls | None:
        """The certificate of the TLS services; None if there are none."""
        return next((service.tls for service in (*self.binary, *self.web) if service.tls is not None), None)

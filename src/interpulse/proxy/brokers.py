"""The brokers behind the proxy: those that it asks, and those that it connects clients to.

The proxy's own brokers are named in the settings or registered in the metadata store. Accepted are those, the owners of
topics that one of them names in the answer to a lookup, and a broker that a lookup was redirected to and that names
itself. A redirect alone accepts no broker: it may lead to any address, such as that of a peer cluster. Clients are
connected to accepted brokers only: the proxy is never an open relay.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from interpulse.client.config import BrokerAddress
from interpulse.model.errors import ServiceNotReady

Found = TypeVar("Found")

_NAMED_MAX: Final = 10_000
"""Far more than a cluster has brokers. Those that were named longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """The addresses that a broker registers."""

    service_url: BrokerAddress
    web_url: str


def endpoint_of(address: BrokerAddress) -> str:
    """Return ``host:port``, by which clients name a broker in CONNECT."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}".lower()


class Brokers:
    """The accepted brokers, and the next one to ask."""

    def __init__(self, service_urls: Sequence[BrokerAddress], web_urls: Sequence[str]) -> None:
        """Start with the brokers of the settings."""
        self._configured = tuple(service_urls)
        self._configured_web = tuple(web_urls)
        self._configured_endpoints = frozenset(map(endpoint_of, service_urls))
        self._registered: tuple[RegisteredBroker, ...] = ()
        self._registered_endpoints: frozenset[str] = frozenset()
        self._named: OrderedDict[str, None] = OrderedDict()
        self._turn = self._web_turn = 0

    def register(self, brokers: Mapping[str, RegisteredBroker]) -> None:
        """Replace the registered brokers, by id."""
        self._registered = tuple(brokers.values())
        self._registered_endpoints = frozenset(endpoint_of(broker.service_url) for broker in self._registered)

    def note_named(self, address: BrokerAddress) -> None:
        """Accept the owner of a topic that one of our brokers, or this one itself, names."""
        endpoint = endpoint_of(address)
        self._named[endpoint] = None
        self._named.move_to_end(endpoint)
        if len(self._named) > _NAMED_MAX:
            self._named.popitem(last=False)

    def knows(self, endpoint: str) -> bool:
        """Return True if ``host:port`` is the binary port of an accepted broker."""
        endpoint = endpoint.lower()
        return (
            endpoint in self._configured_endpoints or endpoint in self._registered_endpoints or endpoint in self._named
        )

    @property
    def count(self) -> int:
        """The number of brokers to ask."""
        return len(self._configured or self._registered)

    def to_ask(self) -> list[BrokerAddress]:
        """Return the brokers to ask, beginning with another one each time. Raise ServiceNotReady."""
        brokers = self._configured or tuple(broker.service_url for broker in self._registered)
        self._turn += 1
        return _rotated(brokers, self._turn)

    def web_urls(self) -> list[str]:
        """Return the web services to call, beginning with another one each time. Raise ServiceNotReady."""
        brokers = self._configured_web or tuple(broker.web_url for broker in self._registered if broker.web_url)
        self._web_turn += 1
        return _rotated(brokers, self._web_turn)


def _rotated(brokers: Sequence[Found], turn: int) -> list[Found]:
    if not brokers:
        raise ServiceNotReady("no broker is registered")
    start = turn % len(brokers)
    return [*brokers[start:], *brokers[:start]]

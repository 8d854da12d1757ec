"""The brokers behind the proxy: those it asks, and those it connects clients to.

A broker is ours if the settings name it, or if it is registered in the metadata store. Known are those, the owners of
topics that one of them names in the answer to a lookup, and a broker that a lookup was redirected to and that names
itself. A redirect alone makes none known: it may lead to any address, as that of a peer cluster does. Clients are
connected to known brokers only: the proxy is never an open relay.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from interpulse.client.config import BrokerAddress
from interpulse.model.errors import ServiceNotReady

__all__ = ["Brokers", "RegisteredBroker", "endpoint_of"]

Found = TypeVar("Found")

_NAMED_MAX: Final = 10_000
"""Far more than a cluster has brokers; the ones that were named longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """What a broker tells of itself where it registers."""

    service_url: BrokerAddress
    web_url: str


def endpoint_of(address: BrokerAddress) -> str:
    """``host:port`` as clients name a broker in CONNECT."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}".lower()


class Brokers:
    """Asked for the next broker to ask, and whether a place is a broker's."""

    def __init__(self, service_urls: Sequence[BrokerAddress], web_urls: Sequence[str]) -> None:
        """The brokers that the settings name."""
        self._configured = tuple(service_urls)
        self._configured_web = tuple(web_urls)
        self._configured_endpoints = frozenset(map(endpoint_of, service_urls))
        self._registered: tuple[RegisteredBroker, ...] = ()
        self._registered_endpoints: frozenset[str] = frozenset()
        self._named: OrderedDict[str, None] = OrderedDict()
        self._turn = self._web_turn = 0

    def register(self, brokers: Mapping[str, RegisteredBroker]) -> None:
        """All brokers that are registered now, by id."""
        self._registered = tuple(brokers.values())
        self._registered_endpoints = frozenset(endpoint_of(broker.service_url) for broker in self._registered)

    def note_named(self, address: BrokerAddress) -> None:
        """One of our brokers, or this one itself, names it as the owner of a topic."""
        endpoint = endpoint_of(address)
        self._named[endpoint] = None
        self._named.move_to_end(endpoint)
        if len(self._named) > _NAMED_MAX:
            self._named.popitem(last=False)

    def knows(self, endpoint: str) -> bool:
        """Whether ``host:port`` is the binary port of a broker."""
        endpoint = endpoint.lower()
        return (
            endpoint in self._configured_endpoints or endpoint in self._registered_endpoints or endpoint in self._named
        )

    @property
    def count(self) -> int:
        """How many brokers there are to ask."""
        return len(self._configured or self._registered)

    def to_ask(self) -> list[BrokerAddress]:
        """The brokers to put a question to, the first of them another one each time. Raises ServiceNotReady."""
        brokers = self._configured or tuple(broker.service_url for broker in self._registered)
        self._turn += 1
        return _from(brokers, self._turn)

    def web_urls(self) -> list[str]:
        """The web services to call, likewise."""
        brokers = self._configured_web or tuple(broker.web_url for broker in self._registered if broker.web_url)
        self._web_turn += 1
        return _from(brokers, self._web_turn)


def _from(brokers: Sequence[Found], turn: int) -> list[Found]:
    if not brokers:
        raise ServiceNotReady("no broker is registered")
    start = turn % len(brokers)
    return [*brokers[start:], *brokers[:start]]

"""The owners of bundles, as lookups and loaded topics see them, and the broker that is alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from interpulse.model.brokers import ListenerAddresses
from interpulse.model.errors import UnknownListener
from interpulse.model.names import NamespaceName
from interpulse.rules.lookup import LookupTarget, Owner


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """The options of a lookup."""

    authoritative: bool = False
    """True if another broker redirected the client, so that this one takes the bundle."""
    listener_name: str = ""


NO_OPTIONS: Final = LookupOptions()
NO_LISTENERS: Final[Mapping[str, LookupTarget]] = {}


class Bundle(NamedTuple):
    """A hash range ``<lower>_<upper>`` of a namespace."""

    namespace: NamespaceName
    range: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


class Ownership(Protocol):
    """The owners of bundles."""

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        """Return a function that gives the owner of each bundle for clients with these options.

        This broker takes the free bundles that are placed on it. Failures are recorded by bundle and raised by the
        function.
        """

    def check_serving(self) -> None:
        """Raise ServiceNotReady while this broker cannot be sure of the bundles it owns."""

    def cached(self) -> Owner | None:
        """Return the owner function for clients without options, which answers from memory; None if nothing is cached.

        The function raises for bundles that are not cached.
        """


class SoleOwner:
    """One broker that owns every bundle of its cluster."""

    def __init__(self, broker: LookupTarget, listeners: Mapping[str, LookupTarget] = NO_LISTENERS) -> None:
        """Create a sole owner; ``listeners`` are the broker's own addresses by listener name."""
        self._broker = broker
        self._listeners = listeners

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        """Return a function that always answers with this broker's address on the listener."""
        if not options.listener_name:
            return self._own
        target = self._listeners.get(options.listener_name)
        if target is None:
            return partial(_no_listener, options.listener_name)
        return lambda namespace, bundle: target

    def check_serving(self) -> None:
        return

    def cached(self) -> Owner:
        return self._own

    def _own(self, namespace: NamespaceName, bundle: str) -> LookupTarget:
        return self._broker


def this_broker(addresses: ListenerAddresses) -> LookupTarget:
    """Return the lookup answer for this broker's topics; its id is ``host:port`` of the web service, as in Pulsar."""
    return LookupTarget(
        addresses.service_url,
        addresses.service_url_tls,
        addresses.web_url,
        addresses.web_url_tls,
        broker_id=addresses.web(tls=False).partition("://")[2],
    )


def _no_listener(listener_name: str, namespace: NamespaceName, bundle: str) -> LookupTarget:
    raise UnknownListener(
        f"the broker do not have {listener_name} listener, it does not have '{listener_name}' listener configured"
    )

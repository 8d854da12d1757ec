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

__all__ = ["NO_LISTENERS", "NO_OPTIONS", "Bundle", "LookupOptions", "Ownership", "SoleOwner", "this_broker"]


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """The options of a lookup."""

    authoritative: bool = False
    """Another broker sent the client here to have the bundle owned."""
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
        """The owners of these bundles, for clients that ask with these options; what this broker is to take it takes.

        Failures are kept per bundle: the function that is returned raises them.
        """

    def check_serving(self) -> None:
        """Raises ServiceNotReady while this broker cannot know what is its own."""

    def known(self) -> Owner | None:
        """The owner function for clients without options, from memory and at once; it raises what is not known.

        None: nothing is known now.
        """


class SoleOwner:
    """One broker that owns every bundle of its cluster."""

    def __init__(self, broker: LookupTarget, listeners: Mapping[str, LookupTarget] = NO_LISTENERS) -> None:
        """``listeners``: the same broker as clients of each of them reach it."""
        self._broker = broker
        self._listeners = listeners

    async def prepare(self, bundles: Sequence[Bundle], options: LookupOptions) -> Owner:
        """This broker, as clients of the listener reach it."""
        if not options.listener_name:
            return self._own
        target = self._listeners.get(options.listener_name)
        if target is None:
            return partial(_no_listener, options.listener_name)
        return lambda namespace, bundle: target

    def check_serving(self) -> None:
        return

    def known(self) -> Owner:
        return self._own

    def _own(self, namespace: NamespaceName, bundle: str) -> LookupTarget:
        return self._broker


def this_broker(addresses: ListenerAddresses) -> LookupTarget:
    """The answer to lookups of this broker's topics; its id is ``host:port`` of the web service, as Pulsar has it."""
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

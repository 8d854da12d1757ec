"""The broker that serves a bundle, and the answer to a lookup.

Source: docs/reference/cluster-protocol.md#placement, docs/reference/cluster-protocol.md#redirects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crc32c import crc32c

from interpulse.model.brokers import BrokerAddresses, BundleLock, LoadReport
from interpulse.model.errors import MetadataError, ServiceNotReady, UnknownListener
from interpulse.model.isolation import IsolationPolicies
from interpulse.rules.isolation import nobody_permitted, permitted_brokers
from interpulse.rules.lookup import LookupTarget

__all__ = ["TAKE", "BrokersView", "Take", "candidate", "decide_placement", "is_load_change", "redirected", "sent_to"]

_BITS = 0xFFFFFFFF
_EXTENSIBLE = "ExtensibleLoadManager"
_CHANGE_SECONDS, _REFRESH_SECONDS = 5, 15 * 60


@dataclass(frozen=True, slots=True)
class BrokersView:
    """The brokers of a cluster: which one asks, which are registered, the leader if there is one, and who may what."""

    me: str
    reports: Mapping[str, LoadReport]
    leader: str | None = None
    isolation: IsolationPolicies = field(default_factory=dict)

    @property
    def elected(self) -> LoadReport | None:
        """The leader that decides, which only a broker of Apache Pulsar is; None: every broker decides alike."""
        return self.reports.get(self.leader or "") if any(not each.is_ours for each in self.reports.values()) else None

    @property
    def extensible(self) -> str | None:
        """A broker that keeps ownership elsewhere than in locks, so that no other may be beside it; None if all do."""
        return next((name for name, each in self.reports.items() if _EXTENSIBLE in each.load_manager), None)


@dataclass(frozen=True, slots=True)
class Take:
    """The broker that is asked takes the bundle."""


TAKE = Take()


def candidate(bundle_path: str, broker_ids: Iterable[str]) -> str | None:
    """The broker that a free bundle goes to: every broker computes the same. None if there is none.

    Where one leaves, its bundles spread over all others, and no other bundle has another candidate. A checksum alone
    would not spread them: those of two texts differ in the same bits whatever stands in front, so it is mixed.
    """
    return max(broker_ids, key=lambda each: (_mixed(crc32c(f"{bundle_path}|{each}".encode())), each), default=None)


def _mixed(checksum: int) -> int:
    """MurmurHash3's last step: every bit depends on all."""
    checksum = (checksum ^ checksum >> 16) * 0x85EBCA6B & _BITS
    checksum = (checksum ^ checksum >> 13) * 0xC2B2AE35 & _BITS
    return checksum ^ checksum >> 16


def decide_placement(
    bundle_path: str,
    lock: BundleLock | None,
    brokers: BrokersView,
    *,
    authoritative: bool,
    listener_name: str = "",
    destination: str | None = None,
) -> LookupTarget | Take:
    """The answer to a lookup, given the lock of the bundle.

    ``destination`` is a broker that the bundle is being unloaded for; while it is there it comes before others.

    ``authoritative``: another broker sent the client here to have the bundle taken; an owner wins over it. Raises
    MetadataError while the owner gives the bundle away, ServiceNotReady if no broker can take it, UnknownListener.
    Whether this broker may have what it is to take is looked at when it is taken.
    """
    if lock is not None:
        if lock.disabled:
            raise MetadataError(f"Namespace bundle {bundle_path} is being unloaded by {lock.broker.broker_id}")
        return sent_to(lock.broker, listener_name)
    if destination == brokers.me:
        return TAKE
    if destination is not None and destination in brokers.reports:
        return redirected(brokers.reports[destination].broker, listener_name, authoritative=True)
    if authoritative:
        return TAKE
    if (leader := brokers.elected) is not None:
        return redirected(leader.broker, listener_name, authoritative=False)
    if not brokers.reports:
        raise ServiceNotReady(f"No broker is registered that could serve namespace bundle {bundle_path}")
    namespace = bundle_path.rpartition("/")[0]
    chosen = candidate(bundle_path, permitted_brokers(brokers.isolation, namespace, brokers.reports))
    if chosen is None:
        reason = nobody_permitted(brokers.isolation, namespace, brokers.reports)
        raise ServiceNotReady(f"Namespace bundle {bundle_path} has no broker: {reason}")
    if chosen == brokers.me:
        return TAKE
    return redirected(brokers.reports[chosen].broker, listener_name, authoritative=True)


def sent_to(broker: BrokerAddresses, listener_name: str) -> LookupTarget:
    """The broker is the owner: connect there. Raises UnknownListener."""
    addresses = broker.addresses
    if listener_name:
        found = broker.listeners.get(listener_name)
        if found is None:
            raise UnknownListener(
                f"The broker '{broker.broker_id}' does not have '{listener_name}' listener configured."
            )
        addresses = found
    return LookupTarget(
        addresses.service_url,
        addresses.service_url_tls,
        addresses.web_url or broker.addresses.web_url,
        addresses.web_url_tls or broker.addresses.web_url_tls,
        broker.broker_id,
    )


def redirected(broker: BrokerAddresses, listener_name: str, *, authoritative: bool) -> LookupTarget:
    """The broker knows more, or with ``authoritative`` shall take the bundle: ask there. Raises UnknownListener."""
    target = sent_to(broker, listener_name)
    return LookupTarget(
        target.service_url,
        target.service_url_tls,
        target.web_url,
        target.web_url_tls,
        target.broker_id,
        redirect=True,
        authoritative=authoritative,
    )


def is_load_change(before: Mapping[str, float], now: Mapping[str, float], *, seconds: float) -> bool:
    """Whether a load report of ``seconds`` ago is to be written anew: a figure moved by a tenth, or it is old."""
    if seconds >= _REFRESH_SECONDS:
        return True
    moved = any(abs(count - before.get(name, 0)) * 10 >= max(before.get(name, 0), 1) for name, count in now.items())
    return seconds >= _CHANGE_SECONDS and moved and before != now

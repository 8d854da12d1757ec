"""Placement: the broker that serves a bundle, and the answer to a lookup.

Source: docs/reference/cluster-protocol.md#placement, docs/reference/cluster-protocol.md#redirects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crc32c import crc32c

from interpulse.model.brokers import BrokerAddresses, BundleLock, LoadReport
from interpulse.model.errors import MetadataError, ServiceNotReady, UnknownListener
from interpulse.model.isolation import IsolationPolicies
from interpulse.rules.isolation import nobody_permitted, permitted_brokers
from interpulse.rules.lookup import LookupTarget

_BITS = 0xFFFFFFFF
_EXTENSIBLE = "ExtensibleLoadManager"
_CHANGE_SECONDS, _REFRESH_SECONDS = 5, 15 * 60


@dataclass(frozen=True, slots=True)
class BrokersView:
    """Brokers of a cluster: the one that was asked, the registered ones, the leader, and the isolation policies."""

    me: str
    reports: Mapping[str, LoadReport]
    leader: str | None = None
    isolation: IsolationPolicies = field(default_factory=dict)

    @property
    def elected(self) -> LoadReport | None:
        """Leader that decides, only if it is a broker of Apache Pulsar. None: every broker decides equally."""
        return (
            self.reports.get(self.leader or "") if any(not report.is_ours for report in self.reports.values()) else None
        )

    @property
    def extensible(self) -> str | None:
        """Broker that stores ownership elsewhere than in locks, which excludes other brokers; None if all use locks."""
        return next((name for name, report in self.reports.items() if _EXTENSIBLE in report.load_manager), None)


@dataclass(frozen=True, slots=True)
class Take:
    """Answer: the broker that was asked takes the bundle."""


TAKE = Take()


def candidate(bundle_path: str, broker_ids: Iterable[str]) -> str | None:
    """Return the broker that a free bundle goes to; None if there is none. Every broker computes the same.

    When a broker leaves, its bundles spread over all others, and all other bundles keep their candidate. The checksum
    is mixed because it alone would not spread them: the checksums of two texts differ in the same bits after any
    prefix.
    """
    return max(broker_ids, key=lambda each: (_mixed(crc32c(f"{bundle_path}|{each}".encode())), each), default=None)


def _mixed(checksum: int) -> int:
    """Apply MurmurHash3's last step, after which every bit depends on all."""
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
    """Return the answer to a lookup, given the lock of the bundle.

    ``destination`` is a broker for which the bundle is being unloaded. While it is registered it takes precedence.
    ``authoritative``: another broker sent the client here to have the bundle taken, but an existing owner takes
    precedence. Raise MetadataError while the owner releases the bundle, ServiceNotReady if no broker can take it,
    UnknownListener. The permission of this broker to take the bundle is checked when it is taken.
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
    """Return the answer to connect to this broker, the owner. Raise UnknownListener."""
    addresses = broker.addresses
    if listener_name:
        advertised = broker.listeners.get(listener_name)
        if advertised is None:
            raise UnknownListener(
                f"The broker '{broker.broker_id}' does not have '{listener_name}' listener configured."
            )
        addresses = advertised
    return LookupTarget(
        addresses.service_url,
        addresses.service_url_tls,
        addresses.web_url or broker.addresses.web_url,
        addresses.web_url_tls or broker.addresses.web_url_tls,
        broker.broker_id,
    )


def redirected(broker: BrokerAddresses, listener_name: str, *, authoritative: bool) -> LookupTarget:
    """Return the answer to ask this broker, which with ``authoritative`` must take the bundle.

    Raise UnknownListener.
    """
    return replace(sent_to(broker, listener_name), redirect=True, authoritative=authoritative)


def is_load_change(before: Mapping[str, float], now: Mapping[str, float], *, seconds: float) -> bool:
    """Return True if a load report must be written again: a value changed by a tenth, or the report is old.

    ``seconds`` is its age.
    """
    if seconds >= _REFRESH_SECONDS:
        return True
    moved = any(abs(count - before.get(name, 0)) * 10 >= max(before.get(name, 0), 1) for name, count in now.items())
    return seconds >= _CHANGE_SECONDS and moved and before != now

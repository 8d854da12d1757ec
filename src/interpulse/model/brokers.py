"""Metadata of the brokers of one cluster: their addresses, the locks of bundles, and load reports.

The JSON is that of Apache Pulsar's brokers: NamespaceEphemeralData, LocalBrokerData.
Source: docs/reference/cluster-protocol.md#locks, docs/reference/cluster-protocol.md#load-report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Final, Self

INTERNAL_LISTENER: Final = "internal"
"""The listener of a broker that names none, as in Pulsar."""

_OURS: Final = "interpulse"
_NO_LIMIT: Final = -1000.0
"""The bandwidth of a network card of unknown speed."""


def address_for(plain: str, encrypted: str, *, tls: bool) -> str:
    """Return the encrypted address for a caller that needs TLS, else the first one that exists; "" = none."""
    return encrypted if tls or not plain else plain


@dataclass(frozen=True, slots=True)
class ListenerAddresses:
    """The addresses of a broker on one listener. "" = not offered."""

    service_url: str = ""
    service_url_tls: str = ""
    web_url: str = ""
    web_url_tls: str = ""

    def filled_by(self, other: ListenerAddresses) -> ListenerAddresses:
        """Return these addresses, with missing ones taken from another listener."""
        return ListenerAddresses(
            self.service_url or other.service_url,
            self.service_url_tls or other.service_url_tls,
            self.web_url or other.web_url,
            self.web_url_tls or other.web_url_tls,
        )

    def service(self, *, tls: bool) -> str:
        """Return the address of the binary protocol for a caller; see `address_for`."""
        return address_for(self.service_url, self.service_url_tls, tls=tls)

    def web(self, *, tls: bool) -> str:
        """Return the address of the web service for a caller; see `address_for`."""
        return address_for(self.web_url, self.web_url_tls, tls=tls)

    def to_json(self) -> dict[str, str]:
        """Return Pulsar's JSON of an advertised listener."""
        urls = {
            "brokerServiceUrl": self.service_url,
            "brokerServiceUrlTls": self.service_url_tls,
            "brokerHttpUrl": self.web_url,
            "brokerHttpsUrl": self.web_url_tls,
        }
        return {key: url for key, url in urls.items() if url}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        keys = ("brokerServiceUrl", "brokerServiceUrlTls", "brokerHttpUrl", "brokerHttpsUrl")
        return cls(*(str(body.get(key) or "") for key in keys))


@dataclass(frozen=True, slots=True)
class BrokerAddresses:
    """A broker with its addresses, by listener. Its id is ``host:port`` of its web service."""

    broker_id: str
    addresses: ListenerAddresses
    listeners: Mapping[str, ListenerAddresses] = field(default_factory=dict)

    def listeners_json(self) -> dict[str, dict[str, str]]:
        """Return Pulsar's ``advertisedListeners``."""
        return {name: addresses.to_json() for name, addresses in self.listeners.items()}


@dataclass(frozen=True, slots=True)
class BundleLock:
    """The value of the node that names the owner of a bundle. The node is removed with the owner's session."""

    broker: BrokerAddresses
    disabled: bool = False
    """True while the owner gives the bundle away: no client is sent there."""

    def dump(self) -> bytes:
        """Return the compact JSON of NamespaceEphemeralData."""
        urls = self.broker.addresses
        body: dict[str, Any] = {"brokerId": self.broker.broker_id, "nativeUrl": urls.service_url}
        if urls.service_url_tls:
            body["nativeUrlTls"] = urls.service_url_tls
        body["httpUrl"] = urls.web_url
        if urls.web_url_tls:
            body["httpUrlTls"] = urls.web_url_tls
        return _compact(body | {"disabled": self.disabled, "advertisedListeners": self.broker.listeners_json()})

    @classmethod
    def load(cls, value: bytes) -> Self:
        """Parse the value. Raise ValueError."""
        body = _object(value)
        urls = (body.get(key) or "" for key in ("nativeUrl", "nativeUrlTls", "httpUrl", "httpUrlTls"))
        addresses = ListenerAddresses(*map(str, urls))
        broker_id = body.get("brokerId") or (addresses.web_url or addresses.web_url_tls).partition("://")[2]
        broker = BrokerAddresses(str(broker_id), addresses, _listeners(body.get("advertisedListeners")))
        return cls(broker, bool(body.get("disabled", False)))


@dataclass(frozen=True, slots=True)
class BundleLoad:
    """The load of a bundle: messages and bytes per second, and loaded topics, producers and consumers."""

    topics: int = 0
    producers: int = 0
    consumers: int = 0
    rate_in: float = 0.0
    throughput_in: float = 0.0
    rate_out: float = 0.0
    throughput_out: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of NamespaceBundleStats."""
        return {
            "msgRateIn": self.rate_in,
            "msgThroughputIn": self.throughput_in,
            "msgRateOut": self.rate_out,
            "msgThroughputOut": self.throughput_out,
            "consumerCount": self.consumers,
            "producerCount": self.producers,
            "topics": self.topics,
            "cacheSize": 0,
        }


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The momentary load of a broker: by bundles ``tenant/namespace/range``, and its resources."""

    bundles: Mapping[str, BundleLoad] = field(default_factory=dict)
    cpu_percent: float = 0.0
    """In per cent of one core."""
    cores: int = 1
    memory_mib: float = 0.0
    memory_limit_mib: float = 0.0
    """The memory of the machine; 0 = unknown."""

    @property
    def all(self) -> BundleLoad:
        """The sum over all bundles."""
        return BundleLoad(*map(sum, zip(*map(astuple, self.bundles.values()), strict=True)))

    @property
    def usage(self) -> float:
        """The highest used share of any resource, 0 to 1."""
        memory = self.memory_mib / self.memory_limit_mib if self.memory_limit_mib else 0.0
        return max(self.cpu_percent / 100 / self.cores, memory)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The record by which a broker exists for the others. Network speed and off-heap memory are unknown."""

    broker: BrokerAddresses
    version: str = ""
    load_manager: str = ""

    @property
    def is_ours(self) -> bool:
        """False for a broker of Apache Pulsar."""
        return _OURS in self.version

    def dump(self, load: BrokerLoad, *, started_ms: int, now_ms: int) -> bytes:
        """Return the compact JSON of LocalBrokerData."""
        urls, served = self.broker.addresses, load.all
        body: dict[str, Any] = {"brokerId": self.broker.broker_id, "webServiceUrl": urls.web_url}
        if urls.web_url_tls:
            body["webServiceUrlTls"] = urls.web_url_tls
        body["pulsarServiceUrl"] = urls.service_url
        if urls.service_url_tls:
            body["pulsarServiceUrlTls"] = urls.service_url_tls
        body |= {
            "persistentTopicsEnabled": True,
            "nonPersistentTopicsEnabled": True,
            "cpu": {"usage": load.cpu_percent, "limit": 100.0 * load.cores},
            "memory": {"usage": load.memory_mib, "limit": load.memory_limit_mib},
            "directMemory": {"usage": 0.0, "limit": 0.0},
            "bandwidthIn": {"usage": 0.0, "limit": _NO_LIMIT},
            "bandwidthOut": {"usage": 0.0, "limit": _NO_LIMIT},
            "msgThroughputIn": served.throughput_in,
            "msgThroughputOut": served.throughput_out,
            "msgRateIn": served.rate_in,
            "msgRateOut": served.rate_out,
            "lastUpdate": now_ms,
            "lastStats": {bundle: usage.to_json() for bundle, usage in load.bundles.items()},
            "numTopics": served.topics,
            "numBundles": len(load.bundles),
            "numConsumers": served.consumers,
            "numProducers": served.producers,
            "bundles": list(load.bundles),
            "lastBundleGains": [],
            "lastBundleLosses": [],
            "brokerVersionString": self.version,
            "protocols": {},
            "advertisedListeners": self.broker.listeners_json(),
            "loadManagerClassName": self.load_manager,
            "startTimestamp": started_ms,
            "maxResourceUsage": load.usage,
            "loadReportType": "LocalBrokerData",
        }
        return _compact(body)

    @classmethod
    def load(cls, broker_id: str, value: bytes) -> Self:
        """Parse the fields of a report that we use. Raise ValueError."""
        body = _object(value)
        keys = ("pulsarServiceUrl", "pulsarServiceUrlTls", "webServiceUrl", "webServiceUrlTls")
        addresses = ListenerAddresses(*(str(body.get(key) or "") for key in keys))
        broker = BrokerAddresses(broker_id, addresses, _listeners(body.get("advertisedListeners")))
        return cls(broker, str(body.get("brokerVersionString") or ""), str(body.get("loadManagerClassName") or ""))


def leader_in(value: bytes) -> str | None:
    """Return the id of the leading broker; None if the value names none."""
    try:
        return str(_object(value).get("brokerId") or "") or None
    except ValueError:
        return None


def _listeners(body: Any) -> dict[str, ListenerAddresses]:
    if not isinstance(body, dict):
        return {}
    return {str(name): ListenerAddresses.from_json(value) for name, value in body.items() if isinstance(value, dict)}


def _object(value: bytes) -> dict[str, Any]:
    body = json.loads(value)
    if not isinstance(body, dict):
        raise ValueError(f"not a JSON object: {value[:100]!r}")
    return body


def _compact(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()

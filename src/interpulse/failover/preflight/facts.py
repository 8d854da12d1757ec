"""Facts about the sites of a pair that the rules of the preflight need, and their reading from statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.failover_role import ROLE_PROPERTY, FailoverRole, is_exempt, stored_role
from interpulse.rules.inventory import NamespaceInventory

_OUR_CLIENT: Final = "Interpulse-v"
_INTERNAL: Final = ("__compaction", "interpulse.", "interpulse-", "pulsar.repl.", "pulsar.dedup")
"""Prefixes of subscriptions that brokers, replication jobs and this tool make for themselves."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """Producer or consumer that is connected."""

    name: str
    address: str
    version: str
    access_mode: str = "Shared"

    @property
    def is_official(self) -> bool:
        """True for a client that is not ours."""
        return not self.version.startswith(_OUR_CLIENT)

    def __str__(self) -> str:
        return f"{self.address.lstrip('/')} ({self.version or 'unknown client'})"


@dataclass(frozen=True, slots=True)
class SubscriptionFacts:
    """Subscription of one topic-partition."""

    name: str
    kind: str = ""
    """Exclusive, Failover, Shared or Key_Shared; "" without consumers."""

    is_durable: bool = True
    is_marked: bool = False
    is_used: bool = False
    """True if it has consumers, or messages were acknowledged since the topic was loaded."""

    delayed: int = 0
    consumers: tuple[ClientFacts, ...] = ()

    @property
    def is_internal(self) -> bool:
        return self.name.startswith(_INTERNAL)


@dataclass(frozen=True, slots=True)
class ReplicatorFacts:
    """Replication of one topic-partition with another cluster, by its statistics."""

    sends: bool = False
    receives: bool = False
    backlog: int = 0


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic-partition."""

    producers: tuple[ClientFacts, ...] = ()
    subscriptions: tuple[SubscriptionFacts, ...] = ()
    replicators: Mapping[str, ReplicatorFacts] = field(default_factory=dict)
    """Replication by cluster."""

    rate_in: float = 0.0
    backlog_bytes: int = 0
    is_compacted: bool = False
    transactions: int = 0


def topic_facts(stats: Mapping[str, Any]) -> TopicFacts:
    """Read the statistics of one topic-partition. Brokers leave out what they do not have."""
    subscriptions = stats.get("subscriptions") or {}
    replication = stats.get("replication") or {}
    compaction = stats.get("compaction") or {}
    return TopicFacts(
        tuple(map(_client, stats.get("publishers") or ())),
        tuple(_subscription(name, each) for name, each in subscriptions.items()),
        {cluster: _replicator(each) for cluster, each in replication.items()},
        float(stats.get("msgRateIn", 0.0)),
        int(stats.get("backlogSize", 0)),
        int(compaction.get("lastCompactionSucceedTimestamp", 0)) > 0,
        int(stats.get("ongoingTxnCount", 0)),
    )


def _client(stats: Mapping[str, Any]) -> ClientFacts:
    name = stats.get("producerName") or stats.get("consumerName") or ""
    address, version = stats.get("address") or "", stats.get("clientVersion") or ""
    return ClientFacts(name, address, version, stats.get("accessMode") or "Shared")


def _subscription(name: str, stats: Mapping[str, Any]) -> SubscriptionFacts:
    consumers = tuple(map(_client, stats.get("consumers") or ()))
    is_used = bool(consumers) or int(stats.get("lastAckedTimestamp", 0)) > 0
    return SubscriptionFacts(
        name,
        stats.get("type") or "",
        bool(stats.get("isDurable", stats.get("durable", True))),
        bool(stats.get("isReplicated", stats.get("replicated", False))),
        is_used,
        int(stats.get("msgDelayed", 0)),
        consumers,
    )


def _replicator(stats: Mapping[str, Any]) -> ReplicatorFacts:
    return ReplicatorFacts(
        bool(stats.get("connected")), bool(stats.get("inboundConnection")), int(stats.get("replicationBacklog", 0))
    )


@dataclass(frozen=True, slots=True)
class WayRecord:
    """Report of a replication job about one topic and one remote cluster."""

    state: str
    reason: str = ""
    remedy: str = ""
    lag_messages: int = 0
    rate_out: float = 0.0
    subscription_state: str = ""
    subscription_reason: str = ""
    subscription_age_ms: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> WayRecord:
        return cls(
            record["state"],
            record.get("reason") or "",
            record.get("remedy") or "",
            int(record.get("lagMessages") or 0),
            float(record.get("msgRateOut") or 0.0),
            record.get("subscriptionState") or "",
            record.get("subscriptionReason") or "",
            int(record.get("subscriptionAgeMs") or 0),
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Request that the site refused, because the role of the command lacks a permission."""

    what: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """One site: what it answered within one look."""

    name: str
    cluster: str
    admin_url: str
    is_ours: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    """Broker configuration in force, by Pulsar's keys."""

    namespaces: Mapping[NamespaceName, NamespaceInventory] = field(default_factory=dict)
    topics: Mapping[TopicName, TopicFacts] = field(default_factory=dict)
    """Persistent topic-partitions, without system topics and those of the tool itself."""

    ways: Mapping[tuple[TopicName, str], WayRecord] = field(default_factory=dict)
    """Reports by topic or topic-partition, and remote cluster."""

    last_ledgers: Mapping[TopicName, int] = field(default_factory=dict)
    """Newest ledgers of topic-partitions with clients that compare ledger numbers."""

    unmarked_copies: tuple[TopicName, ...] = ()
    """Topic-partitions whose newest copy does not name its source position."""

    disk: tuple[float, float] | None = None
    """Free bytes and size of the disk of the broker that was asked; None for clusters that do not report them."""

    clock_ms: int = 0
    """Difference of the site's clock from the local one."""

    refusals: tuple[Refusal, ...] = ()

    def role(self, namespace: NamespaceName) -> tuple[FailoverRole, str, bool]:
        """Return the role of a namespace, the problem of a malformed one, and True if a role is stored at all."""
        inventory = self.namespaces.get(namespace)
        properties = inventory.state.policies.properties if inventory and inventory.state else {}
        return *stored_role(properties), ROLE_PROPERTY in properties

    def clients(self) -> Iterator[tuple[TopicName, ClientFacts]]:
        """Yield all producers and consumers with their topics."""
        for topic, facts in self.topics.items():
            for producer in facts.producers:
                yield topic, producer
            for subscription in facts.subscriptions:
                for consumer in subscription.consumers:
                    yield topic, consumer


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """Limits and intentions of the operator."""

    lag_messages_max: int = 100_000
    outage_s: int = 86_400
    """Longest expected outage of a site."""

    one_way: bool = False
    """True if nothing has to be copied back."""

    redirects: bool = True
    """True if clients are moved by redirects."""

    moves_otherwise: bool = False
    """True if a file or a program moves clients."""


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Facts of both sites: ``a`` serves now, ``b`` is switched to."""

    a: SiteFacts
    b: SiteFacts
    limits: CheckLimits = field(default_factory=CheckLimits)


def is_checked(topic: TopicName) -> bool:
    """Return True for topics that a switch moves: persistent ones, without system topics and those of the tool."""
    return topic.is_persistent and not is_exempt(topic)

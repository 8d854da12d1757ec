"""The documents of policies in Pulsar's JSON: of a namespace, and of a topic, whose namespace decides on the others.

Each policy that the broker acts on is an attribute here and an entry in `interpulse.model.policies.catalogue`. Unknown
fields are stored in ``other`` and written back unchanged, so that no policy of a newer tool is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.ids import Position
from interpulse.model.permissions import NO_PERMISSIONS, Permissions
from interpulse.model.policies.catalogue import NAMESPACE, TOPIC, read_document, write_document
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """Policies of one namespace."""

    replication_clusters: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = ()
    auto_topic_creation: AutoTopicCreation | None = None
    auto_subscription_creation_allowed: bool | None = None
    deduplication_enabled: bool | None = None
    inactive_topics: InactiveTopicPolicies | None = None
    retention: RetentionPolicies | None = None
    message_ttl_seconds: int | None = None
    subscription_expiration_minutes: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties set by operators. The broker interprets only those of `interpulse.rules.failover_role`."""
    max_topics_per_namespace: int | None = None
    schema_compatibility_strategy: str = "UNDEFINED"
    allow_auto_update_schema: bool | None = None
    allow_auto_update_schema_with_replicator: bool = True
    schema_validation_enforced: bool = False
    deleted: bool = False
    publish_rates: Mapping[str, PublishRate] = field(default_factory=dict)
    """Publish rates by cluster, like the next four fields: a replicated namespace may have other rates elsewhere."""
    dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    subscription_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    subscribe_rates: Mapping[str, SubscribeRate] = field(default_factory=dict)
    replicator_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=dict)
    backlog_quotas: Mapping[str, BacklogQuota] = field(default_factory=dict)
    """Backlog quotas by type."""
    max_producers: int | None = None
    max_consumers: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions: int | None = None
    max_unacked_per_consumer: int | None = None
    max_unacked_per_subscription: int | None = None
    delayed_delivery: DelayedDelivery | None = None
    persistence: Persistence | None = None
    deduplication_snapshot_seconds: int | None = None
    compaction_threshold_bytes: int | None = None
    encryption_required: bool = False
    subscription_types_enabled: frozenset[str] | None = None
    granted: Permissions | None = None
    subscription_auth_mode: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    @property
    def permissions(self) -> Permissions:
        """Permissions on the namespace and its topics; none if they were never set."""
        return self.granted or NO_PERMISSIONS

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON without nulls. Unknown fields are returned as they were stored."""
        known = write_document(NAMESPACE, self)
        unread = {key for key, value in known.items() if key in self.other and value == _DEFAULTS.get(key)}
        return dict(self.other) | {key: value for key, value in known.items() if key not in unread}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> NamespacePolicies:
        """Parse Pulsar's JSON. A missing or null field takes its default."""
        values, understood = read_document(NAMESPACE, body)
        other = {key: value for key, value in body.items() if key not in understood and value is not None}
        return cls(**values, other=other)

    def dump(self) -> bytes:
        return json.dumps(self.to_json()).encode()

    @classmethod
    def load(cls, raw: bytes) -> NamespacePolicies:
        return cls.from_json(json.loads(raw))

    def changed(self, **values: Any) -> NamespacePolicies:
        """Return a copy with some fields replaced."""
        return replace(self, **values)


_DEFAULTS: Final = write_document(NAMESPACE, NamespacePolicies())


_GLOBAL: Final = "global"
_POSITIONS: Final = "told"  # codespell:ignore told
_LEVELS: Final = {False: "here", True: "everywhere"}


@dataclass(frozen=True, slots=True)
class TopicPolicies:
    """The policies of one topic, of all partitions if it is partitioned. None = not set here."""

    inactive_topics: InactiveTopicPolicies | None = None
    replication_clusters: tuple[str, ...] | None = None
    """The local cluster is one of them; the others get what is published, whatever the namespace says."""
    retention: RetentionPolicies | None = None
    message_ttl_seconds: int | None = None
    subscription_expiration_minutes: int | None = None
    backlog_quotas: Mapping[str, BacklogQuota] | None = None
    """Quotas by type."""
    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    subscription_dispatch_rate: DispatchRate | None = None
    subscribe_rate: SubscribeRate | None = None
    replicator_dispatch_rate: DispatchRate | None = None
    """Rate at which one topic or partition is copied to each other cluster."""
    max_producers: int | None = None
    max_consumers: int | None = None
    max_consumers_per_subscription: int | None = None
    max_subscriptions: int | None = None
    max_unacked_per_consumer: int | None = None
    max_unacked_per_subscription: int | None = None
    max_message_size: int | None = None
    delayed_delivery: DelayedDelivery | None = None
    persistence: Persistence | None = None
    deduplication_enabled: bool | None = None
    deduplication_snapshot_seconds: int | None = None
    compaction_threshold_bytes: int | None = None
    subscription_types_enabled: frozenset[str] | None = None
    auto_subscription_creation_allowed: bool | None = None
    schema_compatibility_strategy: str | None = None
    schema_validation_enforced: bool | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the policies that are set; empty if none is."""
        return dict(self.other) | write_document(TOPIC, self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> TopicPolicies:
        """Read Pulsar's JSON; a missing or null field is not set."""
        values, understood = read_document(TOPIC, body)
        other = {key: value for key, value in body.items() if key not in understood and value is not None}
        return cls(**values, other=other)

    def changed(self, **values: Any) -> TopicPolicies:
        """Return a copy with some policies replaced. None removes a policy."""
        return replace(self, **values)


@dataclass(frozen=True, slots=True)
class TopicPolicyRecord:
    """Policies set for one topic: on this cluster alone, and for all its clusters (``isGlobal``)."""

    here: TopicPolicies = field(default_factory=TopicPolicies)
    everywhere: TopicPolicies = field(default_factory=TopicPolicies)
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    """In a cluster: the position of the event that announced the policies, by level.

    Source: docs/reference/cluster-protocol.md#topic-policies.
    """

    def level(self, *, everywhere: bool) -> TopicPolicies:
        return self.everywhere if everywhere else self.here

    def changed(self, policies: TopicPolicies, *, everywhere: bool) -> TopicPolicyRecord:
        """Return a copy with one level replaced."""
        return replace(self, everywhere=policies) if everywhere else replace(self, here=policies)

    def position(self, *, everywhere: bool) -> Position | None:
        """Return the position of the event that reported the level; None if it was never reported."""
        found = self.positions.get(_LEVELS[everywhere])
        return None if found is None else Position(*found)

    def reported_at(self, position: Position, *, everywhere: bool) -> TopicPolicyRecord:
        """Return a copy with the position of the event that reported one level."""
        return replace(self, positions={**self.positions, _LEVELS[everywhere]: position})

    @property
    def unreported(self) -> list[bool]:
        """Levels that are set and were never reported: False for this cluster, True for all clusters."""
        levels = (False, True)
        return [
            level for level in levels if self.level(everywhere=level).to_json() and _LEVELS[level] not in self.positions
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the policies that are set, empty if none is."""
        everywhere = self.everywhere.to_json()
        return self.here.to_json() | ({_GLOBAL: everywhere} if everywhere else {})

    def dump(self) -> bytes:
        return json.dumps(self.to_json() | ({_POSITIONS: dict(self.positions)} if self.positions else {})).encode()

    @classmethod
    def load(cls, raw: bytes) -> TopicPolicyRecord:
        body = json.loads(raw)
        everywhere = TopicPolicies.from_json(body.pop(_GLOBAL, {}))
        positions = {level: (ledger, entry) for level, (ledger, entry) in body.pop(_POSITIONS, {}).items()}
        return cls(TopicPolicies.from_json(body), everywhere, positions)

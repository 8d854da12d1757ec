"""The policies of one topic as Pulsar's JSON knows them: what they do not set, its namespace decides.

The policies this broker acts on are attributes, one line each here and in `_FIELDS`; everything else that is stored
is kept in ``other`` and written back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.ids import Position
from interpulse.model.numbers import LONG_MAX
from interpulse.model.policies.messaging_policies import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    Persistence,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.policies.namespace_policies import InactiveTopicPolicies, RetentionPolicies
from interpulse.model.policies.policy_fields import (
    flag,
    number,
    one_each,
    read_fields,
    record,
    text,
    texts,
    write_fields,
)

__all__ = ["TopicPolicies", "TopicPolicyRecord"]

_CLUSTERS: Final = "replicationClusters"
_GLOBAL: Final = "global"
_TOLD: Final = "told"
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
    """By type."""

    publish_rate: PublishRate | None = None
    dispatch_rate: DispatchRate | None = None
    subscription_dispatch_rate: DispatchRate | None = None
    subscribe_rate: SubscribeRate | None = None
    replicator_dispatch_rate: DispatchRate | None = None
    """What the replication to each other cluster may copy of one topic, or of one partition."""

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
        """What is set; empty if nothing is."""
        body = dict(self.other) | write_fields(_FIELDS, self)
        if self.replication_clusters is not None:
            body[_CLUSTERS] = sorted(self.replication_clusters)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> TopicPolicies:
        known, understood = read_fields(_FIELDS, body)
        clusters = body.get(_CLUSTERS)
        understood.add(_CLUSTERS)
        return cls(
            **known,
            replication_clusters=tuple(sorted(clusters)) if clusters else None,
            other={key: value for key, value in body.items() if key not in understood and value is not None},
        )

    def changed(self, **values: Any) -> TopicPolicies:
        """A copy with some policies replaced; None takes one away."""
        return replace(self, **values)


@dataclass(frozen=True, slots=True)
class TopicPolicyRecord:
    """What is set for one topic: on this cluster alone, and for all its clusters at once (``isGlobal``)."""

    here: TopicPolicies = field(default_factory=TopicPolicies)
    everywhere: TopicPolicies = field(default_factory=TopicPolicies)
    told: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    """In a cluster: the position of the event that announced the policies, by level.

    Source: docs/reference/cluster-protocol.md#topic-policies.
    """

    def level(self, *, everywhere: bool) -> TopicPolicies:
        return self.everywhere if everywhere else self.here

    def changed(self, policies: TopicPolicies, *, everywhere: bool) -> TopicPolicyRecord:
        """A copy with one level replaced."""
        return replace(self, everywhere=policies) if everywhere else replace(self, here=policies)

    def position(self, *, everywhere: bool) -> Position | None:
        """Where the level was told; None: nowhere."""
        found = self.told.get(_LEVELS[everywhere])
        return None if found is None else Position(*found)

    def told_at(self, position: Position, *, everywhere: bool) -> TopicPolicyRecord:
        """A copy that knows where one level was told."""
        return replace(self, told={**self.told, _LEVELS[everywhere]: position})

    @property
    def untold(self) -> list[bool]:
        """Whether it is that for all clusters, of each level that is set and was told nowhere."""
        levels = (False, True)
        return [each for each in levels if self.level(everywhere=each).to_json() and _LEVELS[each] not in self.told]

    def to_json(self) -> dict[str, Any]:
        """What is set; empty if nothing is."""
        everywhere = self.everywhere.to_json()
        return self.here.to_json() | ({_GLOBAL: everywhere} if everywhere else {})

    def dump(self) -> bytes:
        return json.dumps(self.to_json() | ({_TOLD: dict(self.told)} if self.told else {})).encode()

    @classmethod
    def load(cls, raw: bytes) -> TopicPolicyRecord:
        body = json.loads(raw)
        everywhere = TopicPolicies.from_json(body.pop(_GLOBAL, {}))
        told = {level: (ledger, entry) for level, (ledger, entry) in body.pop(_TOLD, {}).items()}
        return cls(TopicPolicies.from_json(body), everywhere, told)


_FIELDS: Final = (
    record("inactiveTopicPolicies", "inactive_topics", InactiveTopicPolicies),
    record("retentionPolicies", "retention", RetentionPolicies),
    number("messageTTLInSeconds", "message_ttl_seconds"),
    number("subscriptionExpirationTimeInMinutes", "subscription_expiration_minutes"),
    one_each("backLogQuotaMap", "backlog_quotas", BacklogQuota),
    record("publishRate", "publish_rate", PublishRate),
    record("dispatchRate", "dispatch_rate", DispatchRate),
    record("subscriptionDispatchRate", "subscription_dispatch_rate", DispatchRate),
    record("subscribeRate", "subscribe_rate", SubscribeRate),
    record("replicatorDispatchRate", "replicator_dispatch_rate", DispatchRate),
    number("maxProducerPerTopic", "max_producers"),
    number("maxConsumerPerTopic", "max_consumers"),
    number("maxConsumersPerSubscription", "max_consumers_per_subscription"),
    number("maxSubscriptionsPerTopic", "max_subscriptions"),
    number("maxUnackedMessagesOnConsumer", "max_unacked_per_consumer"),
    number("maxUnackedMessagesOnSubscription", "max_unacked_per_subscription"),
    number("maxMessageSize", "max_message_size"),
    record("delayedDelivery", "delayed_delivery", DelayedDelivery),
    record("persistence", "persistence", Persistence),
    flag("deduplicationEnabled", "deduplication_enabled"),
    number("deduplicationSnapshotIntervalSeconds", "deduplication_snapshot_seconds"),
    number("compactionThreshold", "compaction_threshold_bytes", most=LONG_MAX),
    texts("subscriptionTypesEnabled", "subscription_types_enabled"),
    flag("autoSubscriptionCreation", "auto_subscription_creation_allowed"),
    text("schemaCompatibilityStrategy", "schema_compatibility_strategy"),
    flag("schemaValidationEnforced", "schema_validation_enforced"),
)

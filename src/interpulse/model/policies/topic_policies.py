"""The document of a topic's own policies, in Pulsar's JSON; the namespace decides on the others.

Each policy that the broker acts on is an attribute here and an entry in `interpulse.model.policies.catalogue`. Unknown
fields are stored in ``other`` and written back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.ids import Position
from interpulse.model.policies.catalogue import TOPIC, read_document, write_document
from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)

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

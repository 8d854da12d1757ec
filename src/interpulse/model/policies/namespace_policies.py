"""Document of a namespace's policies, in Pulsar's JSON.

Each policy that the broker enforces is an attribute here and an entry in `interpulse.model.policies.catalogue`. Unknown
fields are stored in ``other`` and written back unchanged, so that no policy of a newer tool is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from interpulse.model.permissions import NO_PERMISSIONS, Permissions
from interpulse.model.policies.catalogue import NAMESPACE, read_document, write_document
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
    """Properties set by operators. The broker does not interpret them."""
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

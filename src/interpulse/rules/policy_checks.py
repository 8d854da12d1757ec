"""Policies as operators send them, read and refused: what cannot be meant is named with its value.

Pulsar takes some of what is refused here without acting on it: unknown texts, negative times, a period of no length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from interpulse.model.errors import InvalidRequest, PreconditionFailed
from interpulse.model.messaging_policies import (
    DESTINATION_STORAGE,
    QUOTA_POLICIES,
    QUOTA_TYPES,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    PublishRate,
    SubscribeRate,
)
from interpulse.model.names import NamespaceName
from interpulse.model.policies import RetentionPolicies

__all__ = [
    "SCHEMA_STRATEGIES",
    "SUBSCRIPTION_TYPES",
    "check_backlog_quota",
    "check_delayed_delivery",
    "check_dispatch_rate",
    "check_max_message_size",
    "check_publish_rate",
    "check_quota_type",
    "check_quotas_fit",
    "check_subscribe_rate",
    "check_subscription_types",
]

SCHEMA_STRATEGIES: Final = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

Body = Mapping[str, Any]
T = TypeVar("T")


def check_publish_rate(body: Body) -> PublishRate:
    """Read a rate; raises InvalidRequest for values of another type."""
    return _read(PublishRate.from_json, body)


def check_dispatch_rate(body: Body) -> DispatchRate:
    """Read a rate; raises InvalidRequest for values of another type, and for a period of no length."""
    rate = _read(DispatchRate.from_json, body)
    _check_period(rate.period_seconds)
    return rate


def check_subscribe_rate(body: Body) -> SubscribeRate:
    """Read a rate; raises InvalidRequest for values of another type, and for a period of no length."""
    rate = _read(SubscribeRate.from_json, body)
    _check_period(rate.period_seconds)
    return rate


def _check_period(seconds: int) -> None:
    if seconds < 1:
        raise InvalidRequest(f"ratePeriodInSecond must be 1 or more, not {seconds}")


def check_delayed_delivery(body: Body) -> DelayedDelivery:
    """Read the policy; raises InvalidRequest for values of another type, and for times below 0."""
    policy = _read(DelayedDelivery.from_json, body)
    for name, value in (("tickTime", policy.tick_millis), ("maxDeliveryDelayInMillis", policy.max_delay_millis)):
        if value < 0:
            raise InvalidRequest(f"{name} must be 0 or more, not {value}")
    return policy


def check_quota_type(text: str | None) -> str:
    """Which of the quotas is meant, that of the size unless it is said; raises InvalidRequest."""
    if text is None:
        return DESTINATION_STORAGE
    if text not in QUOTA_TYPES:
        raise InvalidRequest(f"backlogQuotaType must be {' or '.join(QUOTA_TYPES)}, not {text[:100]}")
    return text


def check_backlog_quota(kind: str, body: Body, *, namespace: NamespaceName | None = None) -> BacklogQuota:
    """Read a quota; raises InvalidRequest if it does not say what happens beyond it, or if it leaves no room."""
    if body.get("policy") not in QUOTA_POLICIES:
        raise InvalidRequest(
            f"Set namespace{f'[{namespace}]' if namespace else ''} backlog quota failed because the data validation "
            f"failed. the attribute policy cannot be null: it must be one of {', '.join(QUOTA_POLICIES)}, "
            f"not {body.get('policy')}"
        )
    quota = _read(BacklogQuota.from_json, body)
    name, limit = (
        ("limitSize", quota.limit_bytes) if kind == DESTINATION_STORAGE else ("limitTime", quota.limit_seconds)
    )
    if limit == 0:
        raise InvalidRequest(f"{name} must be above 0, or -1 for no limit: a quota of 0 would let nobody publish")
    return quota


def check_quotas_fit(quotas: Iterable[BacklogQuota], retention: RetentionPolicies | None, refusal: str) -> None:
    """Refuse a backlog that may hold more, or be older, than what is kept after it; raises PreconditionFailed."""
    if retention is None:
        return
    size, seconds = retention.size_mb * 2**20, retention.time_minutes * 60
    for quota in quotas:
        if 0 < size <= quota.limit_bytes:
            raise PreconditionFailed(
                f"{refusal} (limitSize {quota.limit_bytes}, retentionSizeInMB {retention.size_mb})"
            )
        if 0 < seconds <= quota.limit_seconds:
            raise PreconditionFailed(
                f"{refusal} (limitTime {quota.limit_seconds}, retentionTimeInMinutes {retention.time_minutes})"
            )


def check_subscription_types(names: Iterable[str]) -> frozenset[str]:
    """The types that may be used, spelled exactly; raises InvalidRequest."""
    types = frozenset(names)
    for name in sorted(types.difference(SUBSCRIPTION_TYPES)):
        raise InvalidRequest(f"{name[:100]} is no subscription type; there are {', '.join(SUBSCRIPTION_TYPES)}")
    return types


def check_max_message_size(size: int, *, broker_max: int) -> int:
    """A topic's own maximum; raises PreconditionFailed if it is above the broker's."""
    if not 0 <= size <= broker_max:
        raise PreconditionFailed(
            "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
            f"broker-level ({broker_max}), not {size}"
        )
    return size


def _read(reader: Callable[[Body], T], body: Body) -> T:
    try:
        return reader(body)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None

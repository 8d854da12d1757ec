"""Limits on the clients and the unacknowledged data of a topic. Pure.

A refusal names the policy and its value. 0 = no limit. Replicators and system topics are exempt; the caller excludes
them.

A backlog quota of the type `DESTINATION_STORAGE` limits the bytes that the slowest subscription has not acknowledged,
one of the type `MESSAGE_AGE` the age of its oldest message. A size is exceeded when it reaches the quota, an age when
it is above it.

At the limit of unacknowledged messages a consumer or subscription is blocked until about half of them are acknowledged.
Otherwise each acknowledgement would deliver one message.
"""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.errors import (
    ConsumerBusy,
    NotAllowed,
    ProducerBusy,
    PulsarError,
    QuotaExceededError,
    QuotaExceededException,
)
from interpulse.model.policies.policy_records import (
    CONSUMER_BACKLOG_EVICTION,
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    PRODUCER_REQUEST_HOLD,
    BacklogQuota,
)


def check_producers(topic: str, open_count: int, limit: int) -> None:
    """Raise ProducerBusy if the topic has the maximum number of producers."""
    if 0 < limit <= open_count:
        raise ProducerBusy(f"Topic '{topic}' reached max producers limit (maxProducers={limit})")


def check_consumers_of_topic(open_count: int, limit: int) -> None:
    """Raise ConsumerBusy if all subscriptions together have the maximum number of consumers."""
    if 0 < limit <= open_count:
        raise ConsumerBusy(f"Topic reached max consumers limit (maxConsumers={limit})")


def check_consumers_of_subscription(open_count: int, limit: int) -> None:
    """Raise ConsumerBusy if the subscription has the maximum number of consumers."""
    if 0 < limit <= open_count:
        raise ConsumerBusy(f"Subscription reached max consumers limit (maxConsumersPerSubscription={limit})")


def check_subscriptions(topic: str, count: int, limit: int) -> None:
    """Raise NotAllowed if the topic has the maximum number of subscriptions."""
    if 0 < limit <= count:
        raise NotAllowed(
            f"Exceed the maximum number of subscriptions of the topic: {topic} (maxSubscriptionsPerTopic={limit})"
        )


def check_subscription_type(topic: str, label: str, enabled: frozenset[str] | None) -> None:
    """Raise NotAllowed for a type that is not enabled; None = all are."""
    if enabled is not None and label not in enabled:
        labels = ",".join(sorted(enabled))
        raise NotAllowed(f"Topic[{{{topic}}}] doesn't support {label} sub type! (subscriptionTypesEnabled={labels})")


_KEPT_PERCENT = 90
"""Share of the quota that an eviction leaves, so that not every new message exceeds the quota again."""


def exceeded(quotas: Mapping[str, BacklogQuota], size: int, age_ms: int) -> dict[str, BacklogQuota]:
    """Return the quotas that a backlog of this size and age exceeds, by type."""
    over: dict[str, BacklogQuota] = {}
    storage, age = quotas.get(DESTINATION_STORAGE), quotas.get(MESSAGE_AGE)
    if storage is not None and 0 < storage.limit_bytes <= size:
        over[DESTINATION_STORAGE] = storage
    if age is not None and 0 < age.limit_seconds * 1000 < age_ms:
        over[MESSAGE_AGE] = age
    return over


def refusal(over: Mapping[str, BacklogQuota]) -> PulsarError | None:
    """Return the refusal of a producer that opens a topic above these quotas; None if it may open."""
    for quota_type, quota in over.items():
        if quota.policy != CONSUMER_BACKLOG_EVICTION:
            error = QuotaExceededError if quota.policy == PRODUCER_REQUEST_HOLD else QuotaExceededException
            reason = described(quota_type, quota)
            return error(f"Cannot create producer on topic with backlog quota exceeded ({reason})")
    return None


def described(quota_type: str, quota: BacklogQuota) -> str:
    """Return the quota in words."""
    limit = f"{quota.limit_bytes} bytes" if quota_type == DESTINATION_STORAGE else f"{quota.limit_seconds} seconds"
    return f"backlogQuota {quota_type}: {limit}, {quota.policy}"


def bytes_kept(quota: BacklogQuota) -> int:
    """Return the maximum size of the backlog after an eviction."""
    return quota.limit_bytes * _KEPT_PERCENT // 100


def age_kept_ms(quota: BacklogQuota) -> int:
    """Return the maximum age of messages after an eviction, in whole seconds."""
    return quota.limit_seconds * _KEPT_PERCENT // 100 * 1000


def consumer_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """Return True if a consumer is blocked, given if it was blocked ``before``."""
    return unacknowledged >= limit or (before and unacknowledged > limit // 2)


def subscription_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """Return True if all consumers of a subscription together are blocked; unblocking needs fewer than half.

    For a limit of 1, no integer is below its half: nothing unacknowledged is sufficient.
    """
    return unacknowledged >= limit or (before and unacknowledged >= max(limit // 2, 1))

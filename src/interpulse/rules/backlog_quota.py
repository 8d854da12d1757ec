"""Backlog quotas: the limits on unacknowledged data of a topic, and their effect on producers. Pure.

A quota of the type `DESTINATION_STORAGE` limits the bytes that the slowest subscription has not acknowledged, one of
the type `MESSAGE_AGE` the age of its oldest message. A size is exceeded when it reaches the quota, an age when it is
above it.
"""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.errors import PulsarError, QuotaExceededError, QuotaExceededException
from interpulse.model.policies.messaging_policies import (
    CONSUMER_BACKLOG_EVICTION,
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    PRODUCER_REQUEST_HOLD,
    BacklogQuota,
)

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

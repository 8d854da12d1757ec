"""When a topic has more unacknowledged than its policies allow, and what becomes of its producers. Pure.

Of a quota of the type `DESTINATION_STORAGE` the bytes count that the slowest subscription still waits for, of one of
the type `MESSAGE_AGE` how long ago its oldest message was published. Bytes reach a quota, an age has to pass it.
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

__all__ = ["age_kept_ms", "bytes_kept", "described", "exceeded", "refusal"]

_KEPT_PERCENT = 90
"""An eviction goes somewhat below the quota, so that not every new message is the next one too many."""


def exceeded(quotas: Mapping[str, BacklogQuota], size: int, age_ms: int) -> dict[str, BacklogQuota]:
    """Those of the quotas that a backlog of this size and age is over, by type."""
    over: dict[str, BacklogQuota] = {}
    storage, age = quotas.get(DESTINATION_STORAGE), quotas.get(MESSAGE_AGE)
    if storage is not None and 0 < storage.limit_bytes <= size:
        over[DESTINATION_STORAGE] = storage
    if age is not None and 0 < age.limit_seconds * 1000 < age_ms:
        over[MESSAGE_AGE] = age
    return over


def refusal(over: Mapping[str, BacklogQuota]) -> PulsarError | None:
    """What a producer is told that wants to open a topic over these quotas; None: it may."""
    for quota_type, quota in over.items():
        if quota.policy != CONSUMER_BACKLOG_EVICTION:
            error = QuotaExceededError if quota.policy == PRODUCER_REQUEST_HOLD else QuotaExceededException
            reason = described(quota_type, quota)
            return error(f"Cannot create producer on topic with backlog quota exceeded ({reason})")
    return None


def described(quota_type: str, quota: BacklogQuota) -> str:
    """The quota in words."""
    limit = f"{quota.limit_bytes} bytes" if quota_type == DESTINATION_STORAGE else f"{quota.limit_seconds} seconds"
    return f"backlogQuota {quota_type}: {limit}, {quota.policy}"


def bytes_kept(quota: BacklogQuota) -> int:
    """How much of the backlog an eviction leaves at most."""
    return quota.limit_bytes * _KEPT_PERCENT // 100


def age_kept_ms(quota: BacklogQuota) -> int:
    """How old a message may be that an eviction leaves; whole seconds."""
    return quota.limit_seconds * _KEPT_PERCENT // 100 * 1000

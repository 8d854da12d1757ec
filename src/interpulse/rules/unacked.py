"""The limit of unacknowledged messages of a consumer or subscription. Pure.

At the limit it is blocked, and stays so until about half of it is acknowledged; else each acknowledgement would bring
one message.
"""

from __future__ import annotations

__all__ = ["consumer_blocked", "subscription_blocked"]


def consumer_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """Whether a consumer is blocked, after it was or was not ``before``."""
    return unacknowledged >= limit or (before and unacknowledged > limit // 2)


def subscription_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """As `consumer_blocked`, for all consumers of a subscription together; it has to fall below the half.

    A limit of 1 has no integer below its half: there, nothing unacknowledged is enough.
    """
    return unacknowledged >= limit or (before and unacknowledged >= max(limit // 2, 1))

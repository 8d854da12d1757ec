"""Limit of unacknowledged messages of a consumer or subscription. Pure.

At the limit it is blocked until about half of the messages are acknowledged. Otherwise each acknowledgement would
deliver one message.
"""

from __future__ import annotations


def consumer_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """Return True if a consumer is blocked, given if it was blocked ``before``."""
    return unacknowledged >= limit or (before and unacknowledged > limit // 2)


def subscription_blocked(unacknowledged: int, limit: int, *, before: bool) -> bool:
    """Return True if all consumers of a subscription together are blocked; unblocking needs fewer than half.

    For a limit of 1, no integer is below its half: nothing unacknowledged is sufficient.
    """
    return unacknowledged >= limit or (before and unacknowledged >= max(limit // 2, 1))

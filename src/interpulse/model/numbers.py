"""Whole numbers as Pulsar's clients, which are written in Java, can read them: of 32 bits or of 64."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

__all__ = ["INT_MAX", "LONG_MAX", "is_whole_number"]

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


def is_whole_number(value: Any, *, most: int = INT_MAX) -> TypeGuard[int]:
    """An integer from ``-most - 1`` to ``most``; not true or false, which are integers to Python."""
    return isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most

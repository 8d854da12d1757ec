"""Integers of 32 or 64 bits, the range of Pulsar's Java clients."""

from __future__ import annotations

import re
from typing import Any, Final, TypeGuard

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)


def is_integer(value: Any, *, most: int = INT_MAX) -> TypeGuard[int]:
    """Return True for integers from ``-most - 1`` to ``most``, but not for True and False."""
    return isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most


def read_integer(value: Any, *, most: int = INT_MAX) -> int | None:
    """Return the integer of a JSON value or a string, as Jackson reads it; None for other values."""
    if (isinstance(value, str) and _DIGITS.fullmatch(value)) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return value if is_integer(value, most=most) else None

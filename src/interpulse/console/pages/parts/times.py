"""Times as visitors write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import LONG_MAX

__all__ = ["read_time"]

_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


def read_time(text: str) -> int:
    """Milliseconds since the epoch, of that number or of ISO 8601, which is UTC where it names no zone.

    Raises InvalidRequest.
    """
    if _DIGITS.fullmatch(text) and int(text) <= LONG_MAX:
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidRequest(
            f"A time is milliseconds since 1970 or like 2026-01-31T12:00:00Z, not {text[:100]!r}"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)

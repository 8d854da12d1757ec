"""What metrics tell of the credentials of clients."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from interpulse.storage.meters.histogram import Histogram

__all__ = ["AccessMeter"]

_TOKEN_MINUTES: Final = (5.0, 10.0, 60.0, 240.0)


@dataclass(slots=True)
class AccessMeter:
    """How often credentials were accepted or refused since the program started."""

    successes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By provider and method."""
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By provider, method and reason."""
    expired_tokens: int = 0
    token_minutes: Histogram = field(default_factory=lambda: Histogram(_TOKEN_MINUTES))
    """How long the tokens were still good that were accepted and do expire."""

"""Judgement of a history by all its properties. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from interpulse.failover.history.consuming import delivered, passed, repeats
from interpulse.failover.history.publishing import invented, kept, late, order
from interpulse.failover.history.record import History, Violation
from interpulse.failover.history.roles import epochs, fenced
from interpulse.failover.history.stakes import growth, stake

PROPERTIES: Final[Mapping[str, Callable[[History], Iterator[Violation]]]] = {
    "kept": kept,
    "invented": invented,
    "order": order,
    "late": late,
    "passed": passed,
    "delivered": delivered,
    "repeats": repeats,
    "fenced": fenced,
    "epochs": epochs,
    "stake": stake,
    "growth": growth,
}
"""Function of each property, by its name."""

_EACH_MAX: Final = 1000


def judge(history: History, *, each_max: int = _EACH_MAX) -> list[Violation]:
    """Return the violations of all properties, at most ``each_max`` of each. A clean history has none."""
    return [violation for violations in PROPERTIES.values() for violation in islice(violations(history), each_max)]

"""How much of a topic-partition may be copied now: ``replicatorDispatchRate``.

An entry counts as one message however many a batch holds, as with Pulsar's own replicators. Permits come evenly over
the period and gather up to those of one period. How large entries are is known when they are written; so what was
written is charged afterwards, and a debt that remains is worked off before anything more is planned.

Pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Rate", "Throttle"]


class Rate(NamedTuple):
    """What may be copied per period; 0 or less: no limit. ``relative``: on top of what is being published."""

    entries: int
    bytes: int
    period_s: int = 1
    relative: bool = False

    @property
    def shown(self) -> str:
        """For people; a part without a limit is left out."""
        limits = [
            f"{limit:,} {what}" for limit, what in ((self.entries, "messages"), (self.bytes, "bytes")) if limit > 0
        ]
        period = "second" if self.period_s == 1 else f"{self.period_s} s"
        return f"{' and '.join(limits)} per {period}" + (" beside what is published" if self.relative else "")


@dataclass
class _Permits:
    """Of one kind: what is left of the rate, and besides it what was published since, if the rate is relative."""

    limit: int
    left: float
    published: float = 0.0

    @property
    def available(self) -> float:
        return self.left + self.published

    def fill(self, periods: float) -> None:
        self.left = min(float(self.limit), self.left + periods * self.limit)

    def take(self, count: float) -> None:
        if self.limit > 0:
            besides = min(self.published, count)
            self.published -= besides
            self.left -= count - besides

    def change(self, limit: int) -> None:
        """What is owed stays owed."""
        self.left = min(self.left, limit) if self.limit > 0 else limit
        self.limit = limit


class _Budget:
    """The permits of one topic-partition."""

    def __init__(self, rate: Rate, now: float) -> None:
        self.rate = rate
        self.entries = _Permits(rate.entries, rate.entries)
        self.bytes = _Permits(rate.bytes, rate.bytes)
        self.filled_at = now
        self.entry_bytes = 0.0
        """As they were lately; 0 before the first is written."""

    def fill(self, now: float) -> None:
        periods, self.filled_at = max(0.0, now - self.filled_at) / self.rate.period_s, now
        self.entries.fill(periods)
        self.bytes.fill(periods)

    def change(self, rate: Rate) -> None:
        self.rate = rate
        self.entries.change(rate.entries)
        self.bytes.change(rate.bytes)

    def room(self) -> int | None:
        """Entries that may be planned; None without a limit. A size allows one at least while there is anything: an
        entry larger than what a period allows goes too, and leaves a debt."""
        limits = []
        if self.rate.entries > 0:
            limits.append(int(self.entries.available))
        if self.rate.bytes > 0:
            size = self.bytes.available
            known = int(size / self.entry_bytes) if self.entry_bytes else 0
            limits.append(max(1, known) if size > 0 else 0)
        return max(0, min(limits)) if limits else None


class Throttle:
    """The permits of all topic-partitions that have a rate."""

    def __init__(self) -> None:
        self._budgets: dict[str, _Budget] = {}

    def set_rates(self, rates: Mapping[str, Rate], now: float) -> None:
        """Those of all topics that have one."""
        for name in [name for name in self._budgets if name not in rates]:
            del self._budgets[name]
        for name, rate in rates.items():
            budget = self._budgets.get(name)
            if budget is None:
                self._budgets[name] = _Budget(rate, now)
            elif budget.rate != rate:
                budget.fill(now)
                budget.change(rate)

    def room(self, now: float) -> dict[str, int]:
        """How many entries of each may be planned."""
        found = {}
        for name, budget in self._budgets.items():
            budget.fill(now)
            room = budget.room()
            if room is not None:
                found[name] = room
        return found

    def charge(self, name: str, entries: int, size: int) -> None:
        """So much of it was written."""
        budget = self._budgets.get(name)
        if budget is not None and entries:
            budget.entries.take(entries)
            budget.bytes.take(size)
            budget.entry_bytes = size / entries

    def note_published(self, name: str, entries: int) -> None:
        """So much came to it on the source: a relative rate is what may be copied besides."""
        budget = self._budgets.get(name)
        if budget is not None and budget.rate.relative:
            budget.entries.published += entries
            budget.bytes.published += entries * budget.entry_bytes

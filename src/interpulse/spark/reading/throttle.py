"""Copy limits of topic-partitions: ``replicatorDispatchRate``. Pure: time is an argument.

An entry counts as one message however many a batch holds, as with Pulsar's own replicators. Permits accrue evenly over
the period, up to those of one period. The size of entries is known only after writing, so writes are charged
afterwards, and a debt is worked off before more is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Rate(NamedTuple):
    """A limit per period; 0 or less is none. A ``relative`` limit is added to the publish rate."""

    entries: int
    bytes: int
    period_s: int = 1
    relative: bool = False

    @property
    def shown(self) -> str:
        """Return the rate as text for people, without the parts that have no limit."""
        limits = [
            f"{limit:,} {what}" for limit, what in ((self.entries, "messages"), (self.bytes, "bytes")) if limit > 0
        ]
        period = "second" if self.period_s == 1 else f"{self.period_s} s"
        return f"{' and '.join(limits)} per {period}" + (" beside what is published" if self.relative else "")


@dataclass
class _Permits:
    """The permits of one unit: the remainder of the rate, and recent publishes if the rate is relative."""

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

    @property
    def debt_periods(self) -> float:
        """Periods that it takes to work off a debt."""
        return max(0.0, -self.available / self.limit) if self.limit > 0 else 0.0

    def change(self, limit: int) -> None:
        """Change the limit. A debt remains."""
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
        """Recent average size of an entry; 0 before the first is written."""

    def fill(self, now: float) -> None:
        periods, self.filled_at = max(0.0, now - self.filled_at) / self.rate.period_s, now
        self.entries.fill(periods)
        self.bytes.fill(periods)

    def change(self, rate: Rate) -> None:
        self.rate = rate
        self.entries.change(rate.entries)
        self.bytes.change(rate.bytes)

    def room(self) -> int | None:
        """Return the number of entries that may be planned, or None without a limit.

        A size limit allows at least one entry while any permit is left: an entry larger than a period's permits is sent
        too, and leaves a debt.
        """
        limits = []
        if self.rate.entries > 0:
            limits.append(int(self.entries.available))
        if self.rate.bytes > 0:
            size = self.bytes.available
            fitting = int(size / self.entry_bytes) if self.entry_bytes else 0
            limits.append(max(1, fitting) if size > 0 else 0)
        return max(0, min(limits)) if limits else None


class Throttle:
    """The permits of all topic-partitions that have a rate."""

    def __init__(self) -> None:
        self._budgets: dict[str, _Budget] = {}

    def set_rates(self, rates: Mapping[str, Rate], now: float) -> None:
        """Set the rates of all topics that have one."""
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
        """Return the number of entries that may be planned, by topic-partition."""
        rooms = {}
        for name, budget in self._budgets.items():
            budget.fill(now)
            room = budget.room()
            if room is not None:
                rooms[name] = room
        return rooms

    def charge(self, name: str, entries: int, size: int) -> None:
        """Charge written entries."""
        budget = self._budgets.get(name)
        if budget is not None and entries:
            budget.entries.take(entries)
            budget.bytes.take(size)
            budget.entry_bytes = size / entries

    def debt_s(self, name: str, now: float) -> float:
        """Return the seconds until a topic-partition may go on, 0 without a debt."""
        budget = self._budgets[name]
        budget.fill(now)
        return max(budget.entries.debt_periods, budget.bytes.debt_periods) * budget.rate.period_s

    def note_published(self, name: str, entries: int) -> None:
        """Note entries that were published on the source. A relative rate is added to them."""
        budget = self._budgets.get(name)
        if budget is not None and budget.rate.relative:
            budget.entries.published += entries
            budget.bytes.published += entries * budget.entry_bytes

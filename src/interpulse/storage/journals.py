"""The journal, as logs see it: `SegmentJournal` on disk, `MemoryJournal` in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from interpulse.storage.api import LedgerRecord

__all__ = ["Journal", "JournalClient", "JournalStatistics", "LedgerGone", "Run"]


class Run(NamedTuple):
    """Consecutive entries of one ledger."""

    ledger_id: int
    first: int
    entries: list[bytes]


@dataclass(slots=True)
class JournalStatistics:
    """Counts since start, for metrics. A group is one write with one sync."""

    groups: int = 0
    group_bytes: int = 0
    group_seconds: float = 0.0
    failed_groups: int = 0


class LedgerGone(Exception):
    """The ledger was dropped while it was being read."""


class JournalClient(Protocol):
    """A log with entries to write, as the journal sees it."""

    def take_pending(self) -> list[Run]:
        """The appended runs that are not yet being written, in order."""

    def committed(self, runs: list[Run]) -> None:
        """These runs are durable."""

    def failed(self, error: Exception) -> None:
        """These and later runs are not."""


class Journal(Protocol):
    """Keeps runs of entries, per ledger. Called in the event loop only."""

    statistics: JournalStatistics

    def enqueue(self, client: JournalClient) -> None:
        """Write the client's pending runs with the next group; called once until `JournalClient.take_pending`."""

    def measure(self, ledger_id: int) -> tuple[int, int]:
        """How many durable entries the ledger has, and their bytes."""

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Raise `LogDamaged` if a record of these ledgers is not what was written, or is missing."""

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        """Durable entries of one ledger from ``first`` on; at least one. Raises `LogDamaged` or `LedgerGone`."""

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        """Give back the room of ledgers that no log has any more."""

    async def close(self) -> None:
        """Write what is pending, then give everything back."""

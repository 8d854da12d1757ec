"""The journal, as logs see it: segments on disk, BookKeeper, or memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from interpulse.model.ids import Position
from interpulse.storage.api import Change, LedgerRecord
from interpulse.storage.meters.histogram import Histogram

__all__ = [
    "TOPIC_LEDGER",
    "Journal",
    "JournalClient",
    "JournalStatistics",
    "LedgerGone",
    "LedgerPurpose",
    "LedgerUse",
    "LedgerWriter",
    "Run",
    "Sealed",
]


class Run(NamedTuple):
    """Consecutive entries of one ledger."""

    ledger_id: int
    first: int
    entries: list[bytes]


class Sealed(NamedTuple):
    """How many entries a ledger has for ever, and their bytes."""

    entries: int
    size: int


class LedgerUse(Enum):
    """What kind of entries a ledger holds."""

    TOPIC = "topic"
    COMPACTED = "compacted"


class LedgerPurpose(NamedTuple):
    """What a ledger is for. Where ledgers are shared with others, it is written down with them."""

    use: LedgerUse
    horizon: Position | None = None
    """The last position that went into a compacted one."""


GROUP_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

TOPIC_LEDGER: Final = LedgerPurpose(LedgerUse.TOPIC)


@dataclass(slots=True)
class JournalStatistics:
    """Counts since start, for metrics. A group is what is made durable together, in one step."""

    groups: int = 0
    group_bytes: int = 0
    group_seconds: Histogram = field(default_factory=lambda: Histogram(GROUP_SECONDS))
    """How long groups took that were made durable: a write and its sync, or the answers of bookies."""
    failed_groups: int = 0

    def count(self, size: int, seconds: float) -> None:
        """One more group is durable."""
        self.groups += 1
        self.group_bytes += size
        self.group_seconds.add(seconds)


class LedgerGone(Exception):
    """The ledger is not there: it was dropped while it was being read, or is lost."""


class JournalClient(Protocol):
    """A log with entries to write, as the journal sees it."""

    def take_pending(self) -> list[Run]:
        """The appended runs that are not yet being written, in order."""

    def committed(self, runs: list[Run]) -> None:
        """These runs are durable: what one `take_pending` gave, in the order of the calls."""

    def failed(self, error: Exception) -> None:
        """These and later runs are not. `LogFenced` if another process took the ledger over."""


class Journal(Protocol):
    """Keeps runs of entries, per ledger. Called in the event loop only."""

    statistics: JournalStatistics

    counts_may_follow: bool
    """Whether a record may name a ledger that takes no more entries before its count is known.

    If not, only the last one of a record may be without a count: others would take the rest for empty.
    """

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        """The id of a new ledger of this log, which takes entries; ids grow.

        Raises PersistenceError or MetadataError.
        """

    def record_changes(self, log: str, before: Collection[int], after: Collection[int]) -> list[Change]:
        """What is committed together with a record of the log that names other ledgers than the one before."""

    async def recover(self, ledger_id: int) -> Sealed | None:
        """End a ledger for ever, whoever was writing it; nothing that was durable is missing. None if there is none.

        Raises PersistenceError or MetadataError while that cannot be told.
        """

    async def seal(self, ledger_id: int) -> Sealed:
        """End a ledger that this journal writes, once all of it is durable.

        Raises PersistenceError, or MetadataError: then it may be tried again.
        """

    def abandon(self, ledger_id: int) -> None:
        """Write nothing more of a ledger, and leave it to `recover`. Nothing happens if it has ended."""

    def enqueue(self, client: JournalClient) -> None:
        """Write the client's pending runs with the next group; called once until `JournalClient.take_pending`."""

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Raise `LogDamaged` if a record of these ledgers is not what was written, or is missing.

        A journal that checks entries when they are read, and has others to read them from, checks nothing here.
        """

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        """Durable entries of one ledger from ``first`` on; at least one.

        Raises `LogDamaged`, `LedgerGone`, or `NotReadableNow`.
        """

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        """Give back the room of ledgers that no record names any more, now or when that is possible again."""

    async def close(self) -> None:
        """Write what is pending, and nothing more."""


class LedgerWriter:
    """Writes one ledger that is not a log's from its beginning to its end, in turn with all logs."""

    def __init__(self, journal: Journal, ledger_id: int) -> None:
        self.ledger_id = ledger_id
        self.entries = 0
        self.size = 0
        self._journal = journal
        self._pending: Run | None = None
        self._written: asyncio.Future[None] | None = None
        self._failure: Exception | None = None

    async def write(self, entries: list[bytes]) -> None:
        """Append these entries; durable on return. One call at a time. Raises PersistenceError."""
        assert self._pending is None, "one write at a time"
        if self._failure is not None:
            raise self._failure
        written = self._written = asyncio.get_running_loop().create_future()
        self._pending = Run(self.ledger_id, self.entries, entries)
        self._journal.enqueue(self)
        try:
            await written
        finally:
            self._pending = None  # the waiting caller may have been cancelled
        self.entries += len(entries)
        self.size += sum(map(len, entries))

    # what the journal calls

    def take_pending(self) -> list[Run]:
        return [] if self._pending is None else [self._pending]

    def committed(self, runs: list[Run]) -> None:
        if self._written is not None and not self._written.done():
            self._written.set_result(None)

    def failed(self, error: Exception) -> None:
        self._failure = error
        if self._written is not None and not self._written.done():
            self._written.set_exception(error)

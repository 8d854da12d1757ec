"""The journal below all logs: segments on disk, BookKeeper, or memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from interpulse.model.ids import Position
from interpulse.storage.api import Change, LedgerRecord
from interpulse.storage.meters import Histogram


class Run(NamedTuple):
    """Consecutive entries of one ledger."""

    ledger_id: int
    first: int
    entries: list[bytes]


class Sealed(NamedTuple):
    """The final number of entries of a ledger, and their bytes."""

    entries: int
    size: int


class LedgerUse(Enum):
    """The kind of entries in a ledger."""

    TOPIC = "topic"
    COMPACTED = "compacted"


class LedgerPurpose(NamedTuple):
    """The purpose of a ledger. Shared journals store it with the ledger."""

    use: LedgerUse
    horizon: Position | None = None
    """The last position that was compacted into a compacted ledger."""


GROUP_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

TOPIC_LEDGER: Final = LedgerPurpose(LedgerUse.TOPIC)


@dataclass(slots=True)
class JournalStatistics:
    """Counts since the start, for metrics. A group is made durable in one step."""

    groups: int = 0
    group_bytes: int = 0
    group_seconds: Histogram = field(default_factory=lambda: Histogram(GROUP_SECONDS))
    """Seconds that groups took to become durable: a write and its sync, or the answers of bookies."""
    failed_groups: int = 0

    def count(self, size: int, seconds: float) -> None:
        """Count one more durable group."""
        self.groups += 1
        self.group_bytes += size
        self.group_seconds.add(seconds)


class LedgerGone(Exception):
    """The ledger does not exist: it was dropped while it was being read, or is lost."""


class JournalClient(Protocol):
    """A log with entries to write, as seen by the journal."""

    def take_pending(self) -> list[Run]:
        """Return the appended runs that are not being written yet, in order."""

    def committed(self, runs: list[Run]) -> None:
        """Report that the runs of one `take_pending` are durable. Calls keep the order."""

    def failed(self, error: Exception) -> None:
        """Report that these and later runs are not durable. `LogFenced` if another process took over the ledger."""


class Journal(Protocol):
    """Storage for runs of entries, per ledger. Called only in the event loop."""

    statistics: JournalStatistics

    counts_may_follow: bool
    """True if a record may list an ended ledger before its count is stored.

    If not, only the last ledger of a record may lack a count: other readers would take the rest for empty.
    """

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        """Create a ledger of this log and return its id; ids grow. Raise PersistenceError or MetadataError."""

    def record_changes(self, log: str, before: Collection[int], after: Collection[int]) -> list[Change]:
        """Return the changes to commit with a record of the log that names other ledgers than before."""

    async def recover(self, ledger_id: int) -> Sealed | None:
        """End a ledger for good, whichever process wrote it. Return None if it does not exist.

        No durable entry is lost. Raise PersistenceError or MetadataError while the end cannot be determined.
        """

    async def seal(self, ledger_id: int) -> Sealed:
        """End a ledger that this journal writes, once all of it is durable.

        Raise PersistenceError, or MetadataError: then the caller may try again.
        """

    def abandon(self, ledger_id: int) -> None:
        """Write nothing more to a ledger, and leave it to `recover`. Do nothing if it has ended."""

    def enqueue(self, client: JournalClient) -> None:
        """Write the client's pending runs with the next group. Called once until `JournalClient.take_pending`."""

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Raise `LogDamaged` if a record of these ledgers is missing or differs from what was written.

        A journal that checks entries on each read, and has copies to read from, checks nothing here.
        """

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        """Return durable entries of one ledger from ``first`` on; at least one.

        Raise `LogDamaged`, `LedgerGone`, or `NotReadableNow`.
        """

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        """Release the space of ledgers that no record names any more, now or as soon as possible."""

    async def close(self) -> None:
        """Write what is pending, and then nothing more."""


class LedgerWriter:
    """A writer of one complete ledger outside a log, in turn with all logs."""

    def __init__(self, journal: Journal, ledger_id: int) -> None:
        self.ledger_id = ledger_id
        self.entries = 0
        self.size = 0
        self._journal = journal
        self._pending: Run | None = None
        self._written: asyncio.Future[None] | None = None
        self._failure: Exception | None = None

    async def write(self, entries: list[bytes]) -> None:
        """Append these entries; durable on return. One call at a time. Raise PersistenceError."""
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

    # called by the journal

    def take_pending(self) -> list[Run]:
        return [] if self._pending is None else [self._pending]

    def committed(self, runs: list[Run]) -> None:
        if self._written is not None and not self._written.done():
            self._written.set_result(None)

    def failed(self, error: Exception) -> None:
        self._failure = error
        if self._written is not None and not self._written.done():
            self._written.set_exception(error)

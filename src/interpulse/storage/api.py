"""The three seams to durable state: metadata, and logs of entries. Entries are opaque bytes here.

Every engine behind these seams promises:

* What `MetadataStore.commit` returned from, and what `LogListener.on_durable` announced, survives the death of the
  process and of the machine.
* After a failed write or sync nothing more is acknowledged: the log is fenced and must be opened again.
* Ledger ids are never used twice, even after a deletion or a crash. Entry ids of a ledger are dense from 0.

A failing disk raises PersistenceError (logs) or MetadataError (metadata) from ``model.errors``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import Position
from interpulse.storage.meters import WrittenEntries
from interpulse.storage.sessions import Session


@dataclass(eq=False, repr=False)
class CommitConflict(Exception):
    """An expectation of a commit did not hold; nothing was applied."""

    key: str

    def __str__(self) -> str:
        return f"metadata key {self.key} was changed meanwhile"


class MetadataUnavailable(MetadataError):
    """The metadata store cannot be read or written: disk full, not writable, damaged, or closed."""


class MetadataFull(MetadataUnavailable, http=503):
    """The disk has no room for a commit."""


class CommitTooLarge(MetadataError, retriable=False):
    """A commit, or one of its values, is larger than the metadata store accepts."""


@dataclass(eq=False, repr=False)
class DataDirectoryUnusable(PersistenceError):
    """The data directory cannot be created, read or written."""

    directory: str
    reason: str

    def __str__(self) -> str:
        return f"data directory {self.directory} cannot be used: {self.reason}"


@dataclass(eq=False, repr=False)
class DataDirectoryInUse(PersistenceError):
    """Another process uses this data directory."""

    directory: str
    owner: str = ""

    def __str__(self) -> str:
        by = f" (process {self.owner})" if self.owner else ""
        return f"data directory {self.directory} is in use by another process{by}"


@dataclass(eq=False, repr=False)
class LogNotFound(PersistenceError):
    """No log has this name."""

    name: str

    def __str__(self) -> str:
        return f"log {self.name} does not exist"


class FenceCause(Enum):
    """The reasons for which a log takes no more entries."""

    CLOSED = "closed"
    DELETED = "deleted"
    FAILED = "failed"
    """A write failed, so entries that were not acknowledged may or may not be stored. Opened again, the log goes on."""
    OWNED_ELSEWHERE = "owned elsewhere"
    """Another process opened the log, or may have. Nothing that concerns the log may be written any more."""
    TERMINATED = "terminated"


@dataclass(eq=False, repr=False)
class LogFenced(PersistenceError):
    """The log takes no more entries. Open it again. ``cause`` is the kind of reason, ``reason`` describes it."""

    name: str
    reason: str
    cause: FenceCause = FenceCause.FAILED

    def __str__(self) -> str:
        return f"log {self.name} is fenced: {self.reason}"


@dataclass(eq=False, repr=False)
class LogTerminated(LogFenced):
    """The log was terminated and never takes entries again."""

    reason: str = "terminated"
    cause: FenceCause = FenceCause.TERMINATED


@dataclass(eq=False, repr=False)
class LogDamaged(PersistenceError, retriable=False):
    """A record of this log is not what was written. Other logs are not affected.

    ``segment`` is the file and ``offset`` the byte in it at which the damaged record starts (-1 = the record is
    missing). In BookKeeper ``segment`` is the ledger or the entry, and ``offset`` is -1.
    """

    name: str
    segment: str
    offset: int
    reason: str

    def __str__(self) -> str:
        at = f" at byte {self.offset}" if self.offset >= 0 else ""
        return f"log {self.name} is damaged in {self.segment}{at}: {self.reason}"


class NotReadableNow(PersistenceError):
    """No holder of the entries answers. Nothing is lost or damaged: read again a little later."""


class StorageFull(PersistenceError, http=503):
    """The disk is full; the latest write is not stored."""


class Versioned(NamedTuple):
    """A metadata value, and the version of its key when it was read."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key, whether it exists or not.

    An ephemeral key is removed with the store's session; putting it is a `CommitConflict` if the key exists and does
    not belong to that session. A key stays ephemeral or not as it was created, and an ephemeral key must have no keys
    below it.
    """

    key: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key. An absent key is not an error."""

    key: str


Change = Put | Delete


def sizes_of(changes: Sequence[Change]) -> tuple[list[int], int]:
    """Return the size of each value that is set, and the number of keys that are removed.

    `MetadataMeter.committing` takes both.
    """
    sizes = [len(change.value) for change in changes if isinstance(change, Put)]
    return sizes, len(changes) - len(sizes)


class MetadataStore(Protocol):
    """A small tree of keys such as ``/admin/policies/public``, with versions.

    All methods raise `MetadataUnavailable` if the store does not work.
    """

    @property
    def session(self) -> Session:
        """The session that bounds the lifetime of this store's ephemeral keys."""

    async def get(self, key: str) -> Versioned | None:
        """Return the newest durable value of the key, None if it is absent. Cheap: recent keys are cached."""

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        """Read several keys consistently. Absent keys are left out."""

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        """Return True if the cache shows that `get` would now return these versions (None = absent).

        Return False if the cache has no current version of a key, for example while a commit of it is in flight. Where
        several processes write to the store, its watch updates the cache.
        """

    async def children(self, key: str) -> list[str]:
        """Return the sorted names of the direct children.

        A child exists if it, or a key below it, has a value. In stores whose keys are nodes of a tree, a key creates
        its parents, with empty values, and they stay.
        """

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        """Return the first ``limit`` keys that start with the prefix and follow ``after``, in order, with their values.

        The cost depends on the result, not on the size of the store, apart from at most one list of the sibling names.
        """

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        """Apply all changes or none; durable on return.

        ``expect`` holds the versions that keys must have (None = must be absent); otherwise `CommitConflict` is raised.
        Versions come from one durable counter: a key that is deleted and created again gets a higher version. Where
        other processes write too, the versions that this process has seen are compared; see the store.
        """

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        """Create an ephemeral key from the prefix and ten digits, and return it.

        No sibling ever had the same number. Later numbers are higher; they need not be dense.
        """

    async def sync(self, key: str) -> None:
        """Make later reads of the key at least as new as this moment, whichever server answers them."""

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with every changed key that starts with the prefix, in the event loop, after its commit.

        A store that lost sight of its server calls back with the prefix itself: any key below it may have changed.
        Return the function that ends the watch. A callback must not raise.
        """

    async def close(self) -> None:
        """Finish the accepted commits and release all resources."""


class LedgerRecord(NamedTuple):
    """One ledger of a log: its durable entries, their bytes, and the time at which it was opened."""

    ledger_id: int
    entries: int
    size: int
    created_ms: int


class LogEntry(NamedTuple):
    """An entry as its producer sent it and the broker stored it, with its position."""

    position: Position
    entry: bytes


class CompactedLedger(NamedTuple):
    """The compacted entries of a log up to and including ``horizon``: a ledger of entries with their old positions."""

    ledger_id: int
    entries: int
    size: int
    created_ms: int
    """0 if the time was not recorded."""
    horizon: Position


class CompactedPointer(Protocol):
    """The name of the compacted ledger outside the log's record. In a cluster a cursor holds it."""

    @property
    def named(self) -> tuple[int, Position] | None:
        """The ledger and its horizon as of the opening of the log, None if there is no compacted ledger."""

    async def name(self, ledger: CompactedLedger | None) -> None:
        """Name another ledger, or none; durable on return.

        After an error the new ledger may be named nevertheless: the next owner of the log reads the truth.
        """


class CompactedEntries(Protocol):
    """The compacted entries of one log. A log has at most one compacted ledger, which is replaced as a whole."""

    @property
    def current(self) -> CompactedLedger | None:
        """The current compacted ledger, None before the first compaction."""

    @property
    def committing(self) -> bool:
        """True while another ledger is being made current. Until then the entries that it replaces must stay."""

    async def follow(self, pointer: CompactedPointer) -> None:
        """Let the pointer name the current ledger from now on. Raise `LogDamaged` if its ledger is missing."""

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """Return compacted entries from ``start`` on, in order; at least one if there is one.

        Raise `LogDamaged`, or `NotReadableNow` if the holders of the entries do not answer. The same holds for `first`
        and `last`.
        """

    async def first(self, wanted: Callable[[LogEntry], bool]) -> LogEntry | None:
        """Return the first compacted entry that is wanted. All entries behind a wanted one must be wanted too."""

    async def last(self) -> LogEntry | None:
        """Return the last compacted entry."""

    async def replace(self, horizon: Position, parts: AsyncIterable[Sequence[LogEntry]]) -> CompactedLedger:
        """Replace all compacted entries by these, in this order; durable on return.

        All entries are written before one commit makes them current. An error or a crash before that leaves the old
        state. Raise `LogFenced` if the log was closed or deleted meanwhile.
        """

    async def drop(self) -> None:
        """Remove the compacted entries; durable on return."""


class LogListener(Protocol):
    """The recipient of the outcome of appends, called in the event loop at most once per group. Must not raise."""

    def on_durable(self, last: Position) -> None:
        """Report that every entry up to and including ``last`` is durable."""

    def on_log_failed(self, error: Exception) -> None:
        """Report that no entry after the last `on_durable` will be acknowledged: the log is fenced. Called once."""


class Log(Protocol):
    """The entries of one topic, in order. Only durable entries are read or counted."""

    @property
    def name(self) -> str:
        """The name, ``tenant/namespace/persistent/<encoded local name>``."""

    @property
    def written(self) -> WrittenEntries | None:
        """The entries that became durable in the last full minute; None if there are none since it began."""

    @property
    def write_rate(self) -> float:
        """The entries per second that became durable in the last full minute."""

    @property
    def read_rate(self) -> float:
        """The entries per second that were read in the last full minute because they were not in memory."""

    @property
    def last_position(self) -> Position:
        """The position of the last durable entry; ``(ledger, -1)`` of the current ledger if there is none."""

    @property
    def last_appended(self) -> Position:
        """The last position that was assigned, durable or not."""

    @property
    def first_position(self) -> Position | None:
        """The position of the first readable entry, None if there is none."""

    @property
    def ledgers(self) -> Sequence[LedgerRecord]:
        """The ledgers, oldest first. The last one is current, unless the log was terminated before it was opened."""

    @property
    def compacted(self) -> CompactedEntries:
        """The compacted entries."""

    @property
    def terminated(self) -> bool:
        """True once `terminate` was called, even by an earlier process."""

    def append(self, *entries: bytes) -> Position:
        """Append entries, at least one, and return the position of the last. They become durable together.

        The order of calls is the order of the log; `LogListener.on_durable` reports durable entries. Raises
        `LogFenced`, or `LogTerminated` after a `terminate`.
        """

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        """Return entries as `read` does, from memory without waiting; None if they are not in memory.

        An empty list means that no entry exists at or after ``start``.
        """

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """Return entries from ``start`` on, in order, across ledgers; at least one if there is one.

        Raise `LogDamaged`, or `NotReadableNow` if the holders of the entries do not answer.
        """

    def next_position(self, after: Position) -> Position | None:
        """Return the position of the next durable entry after ``after``, None at the end."""

    def entries_between(self, after: Position, upto: Position) -> int:
        """Return the number of durable entries in ``(after, upto]``."""

    async def roll(self) -> None:
        """End the current ledger and begin a new one. Do nothing if the current one is empty."""

    async def trim(self, before: Position) -> None:
        """Delete whole ledgers before the position, but never the one that takes entries."""

    async def settle(self) -> None:
        """Wait until all entries appended so far are durable and announced. Raise `LogFenced`."""

    async def terminate(self) -> Position:
        """Take no more entries from now on and return the last position. Durable on return."""

    async def close(self) -> None:
        """Wait until all appended entries are durable, and return the log to the store."""

    def disown(self) -> None:
        """Fence the log, since another broker may have it. A `close` under way ends at once; else `abandon` follows.

        Entries that are not durable yet are never announced.
        """

    async def abandon(self) -> None:
        """Disown the log, and return it to the store without waiting or writing."""


class LogStore(Protocol):
    """All logs of one data directory."""

    async def open(self, name: str, listener: LogListener, *, create: bool) -> Log:
        """Open a log; it goes on in a new ledger. Each name has at most one open `Log`.

        Raise `LogNotFound` if the log is absent and ``create`` is false, `LogDamaged` if one of its records is damaged,
        and `LogFenced` if another process opens it at the same time.
        """

    async def exists(self, name: str) -> bool:
        """Return True if a log of this name exists, open or not."""

    async def delete(self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        """Delete logs with their records and cursors, and apply ``also``, in one commit. Open logs are fenced.

        Raise `CommitConflict` if ``expect`` does not hold; then nothing is deleted. Absent logs are ignored.
        """

    async def close(self) -> None:
        """Close every log, then the store."""


async def scan_pages(store: MetadataStore, prefix: str, *, limit: int) -> AsyncIterator[list[tuple[str, Versioned]]]:
    """Yield all keys that start with the prefix, ``limit`` at a time, so that other tasks run in between.

    Each page is read on demand, so it shows changes made behind the page before it.
    """
    last = ""
    while page := await store.scan(prefix, after=last, limit=limit):
        yield page
        if len(page) < limit:
            return
        last = page[-1][0]

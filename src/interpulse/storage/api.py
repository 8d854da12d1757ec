"""The three seams to durable state: metadata, and logs of entries.

Entries are opaque bytes here. What every engine behind these seams promises:

* what `MetadataStore.commit` returned from, and what `LogListener.on_durable` announced, survives the death of the
  process and of the machine;
* after a failed write or sync nothing more is acknowledged: the log is fenced and has to be opened again;
* ledger ids are never used twice, also after deletion and after a crash; entry ids of a ledger are dense from 0.

Storage errors: a failing disk is a `PersistenceError` (logs) or a `MetadataError` (metadata) from ``model.errors``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import Position
from interpulse.storage.meters.write_meter import WrittenEntries
from interpulse.storage.sessions import Session

__all__ = [
    "Change",
    "CommitConflict",
    "CommitTooLarge",
    "CompactedEntries",
    "CompactedLedger",
    "CompactedPointer",
    "DataDirectoryInUse",
    "DataDirectoryUnusable",
    "Delete",
    "FenceCause",
    "LedgerRecord",
    "Log",
    "LogDamaged",
    "LogEntry",
    "LogFenced",
    "LogListener",
    "LogNotFound",
    "LogStore",
    "LogTerminated",
    "MetadataFull",
    "MetadataStore",
    "MetadataUnavailable",
    "NotReadableNow",
    "Put",
    "StorageFull",
    "Versioned",
    "scan_pages",
    "sizes_of",
]


class CommitConflict(Exception):
    """An expectation of a commit did not hold; nothing of it was applied."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"metadata key {self.key} was changed meanwhile"


class MetadataUnavailable(MetadataError):
    """The metadata store cannot be read or written: disk full, not writable, damaged, or closed."""


class MetadataFull(MetadataUnavailable):
    """The disk has no room left for what was to be committed."""

    http_status = 503


class CommitTooLarge(MetadataError):
    """One commit, or one value, is larger than the metadata store takes in one piece."""

    retriable = False


class DataDirectoryUnusable(PersistenceError):
    """The data directory cannot be created, read or written."""

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"data directory {directory} cannot be used: {reason}")
        self.directory = directory
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.directory, self.reason)


class DataDirectoryInUse(PersistenceError):
    """Another process works on this data directory."""

    def __init__(self, directory: str, owner: str = "") -> None:
        by = f" (process {owner})" if owner else ""
        super().__init__(f"data directory {directory} is in use by another process{by}")
        self.directory = directory
        self.owner = owner

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.directory, self.owner)


class LogNotFound(PersistenceError):
    """There is no log of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"log {name} does not exist")
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)


class FenceCause(Enum):
    """Why a log takes no more entries."""

    CLOSED = "closed"
    DELETED = "deleted"
    FAILED = "failed"
    """A write failed: what was not acknowledged may be stored or not. Opened again, the log goes on."""
    OWNED_ELSEWHERE = "owned elsewhere"
    """Another process opened the log, or may have. Nothing may be written any more that concerns it."""
    TERMINATED = "terminated"


class LogFenced(PersistenceError):
    """The log takes no more entries: ``cause`` tells why, ``reason`` in words. Open it again."""

    def __init__(self, name: str, reason: str, cause: FenceCause = FenceCause.FAILED) -> None:
        super().__init__(f"log {name} is fenced: {reason}")
        self.name = name
        self.reason = reason
        self.cause = cause

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.reason, self.cause)


class LogTerminated(LogFenced):
    """The log was terminated; it takes no more entries, ever."""

    def __init__(self, name: str, reason: str = "terminated", cause: FenceCause = FenceCause.TERMINATED) -> None:
        super().__init__(name, reason, cause)


class LogDamaged(PersistenceError):
    """A record of this log is not what was written. Other logs are not concerned.

    ``segment`` is the file, ``offset`` the byte in it where the damaged record starts (-1 = the record is missing).
    In BookKeeper ``segment`` is the ledger or the entry, and ``offset`` is -1.
    """

    retriable = False

    def __init__(self, name: str, segment: str, offset: int, reason: str) -> None:
        at = f" at byte {offset}" if offset >= 0 else ""
        super().__init__(f"log {name} is damaged in {segment}{at}: {reason}")
        self.name = name
        self.segment = segment
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.segment, self.offset, self.reason)


class NotReadableNow(PersistenceError):
    """Those who have the entries do not answer; nothing is lost or damaged, so read again a little later."""


class StorageFull(PersistenceError):
    """The disk has no room left; what was written last is not stored."""

    http_status = 503


class Versioned(NamedTuple):
    """A metadata value and the version its key had when it was read."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key, whether it exists or not.

    An ephemeral one goes with the store's session. It is a `CommitConflict` if the key is there and does not belong to
    that session. A key stays what it was created as, and an ephemeral one must have none below it.
    """

    key: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key; nothing happens if it is absent."""

    key: str


Change = Put | Delete


def sizes_of(changes: Sequence[Change]) -> tuple[list[int], int]:
    """The bytes of each value that is set, and how many keys are removed; as `MetadataMeter.committing` counts them."""
    sizes = [len(change.value) for change in changes if isinstance(change, Put)]
    return sizes, len(changes) - len(sizes)


class MetadataStore(Protocol):
    """A small tree of keys such as ``/admin/policies/public``, with versions.

    All methods raise `MetadataUnavailable` if the store cannot do its work.
    """

    @property
    def session(self) -> Session:
        """What the ephemeral keys of this store live as long as."""

    async def get(self, key: str) -> Versioned | None:
        """The newest durable value of the key, None if it is absent. Cheap: recently used keys are kept in memory."""

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        """One consistent read of several keys; absent keys are left out."""

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        """Whether `get` would find these versions (None = absent) now, told from memory alone.

        False where memory does not tell, as while a commit of one of the keys is under way. Where several processes
        write to the store, its memory is what its watch keeps true.
        """

    async def children(self, key: str) -> list[str]:
        """Names of the direct children, sorted. A child exists if it, or anything below it, has a value.

        Where keys are nodes of a tree, a key brings those above it along, with empty values, and these stay.
        """

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        """The first ``limit`` keys that start with the prefix and come behind ``after``, in order, with their values.

        Costs what it gives, however much lies beside it in the store, or at most a list of the names beside it.
        """

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        """Apply all changes or none; durable on return.

        ``expect`` gives versions that keys must have (None = must be absent), otherwise `CommitConflict` is raised.
        Versions come from one durable counter: a key that is deleted and created again gets a higher one. Where others
        write too, it is the versions that this process was told of which are compared, see the store.
        """

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        """Create an ephemeral key: the prefix and ten digits, a number that no key beside it ever had.

        Later ones are higher; they need not be dense.
        """

    async def sync(self, key: str) -> None:
        """What is read of the key from now on is at least as new as this moment, whichever server is asked."""

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with every changed key that starts with the prefix, in the event loop, after its commit.

        A store that lost sight of its server for a while calls back with the prefix itself: anything may have changed.
        Returns the function that ends the watch. A callback must not raise.
        """

    async def close(self) -> None:
        """Finish the commits that were accepted and give everything back."""


class LedgerRecord(NamedTuple):
    """One ledger of a log: how many durable entries it holds, their bytes, and when it was begun."""

    ledger_id: int
    entries: int
    size: int
    created_ms: int


class LogEntry(NamedTuple):
    """An entry, as its producer sent it and the broker stored it, and its position."""

    position: Position
    entry: bytes


class CompactedLedger(NamedTuple):
    """The compacted entries of a log up to and including ``horizon``: a ledger of entries with their old positions."""

    ledger_id: int
    entries: int
    size: int
    created_ms: int
    """0 = nobody wrote it down."""
    horizon: Position


class CompactedPointer(Protocol):
    """Names the compacted ledger of a log in place of its record: where brokers share logs, a cursor does."""

    @property
    def named(self) -> tuple[int, Position] | None:
        """The ledger and its horizon, as they were found when the log was opened; None = there is none."""

    async def name(self, ledger: CompactedLedger | None) -> None:
        """Name another ledger, or none; durable on return.

        Whatever it raises, the other one may be named all the same: whoever opens the log next finds out.
        """


class CompactedEntries(Protocol):
    """The compacted entries of one log. There is at most one compacted ledger, and it changes as a whole."""

    @property
    def current(self) -> CompactedLedger | None:
        """None until the log was compacted."""

    @property
    def committing(self) -> bool:
        """Another ledger is being made the current one: until that is done, what it stands for has to stay."""

    async def follow(self, pointer: CompactedPointer) -> None:
        """From now on the pointer names the current ledger. Raises `LogDamaged` if the one it names is missing."""

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """Kept entries from ``start`` on, in order; at least one if there is one.

        Raises `LogDamaged`, and `NotReadableNow` where entries lie with others; so do the next two.
        """

    async def first(self, wanted: Callable[[LogEntry], bool]) -> LogEntry | None:
        """The first kept entry that is wanted, if all behind a wanted one are wanted too."""

    async def last(self) -> LogEntry | None:
        """The last kept entry."""

    async def replace(self, horizon: Position, parts: AsyncIterable[Sequence[LogEntry]]) -> CompactedLedger:
        """Keep these entries, in this order, instead of what was kept before; durable on return.

        Everything is written first, then one commit makes it current: whatever ends this early, or ends the process,
        leaves the old state. Raises `LogFenced` if the log was closed or deleted meanwhile.
        """

    async def drop(self) -> None:
        """Keep nothing any more; durable on return."""


class LogListener(Protocol):
    """Told in the event loop what became of appended entries; at most once per group commit. Must not raise."""

    def on_durable(self, last: Position) -> None:
        """Every entry up to and including ``last`` is on disk."""

    def on_log_failed(self, error: Exception) -> None:
        """Nothing after the last `on_durable` will ever be acknowledged; the log is fenced. Called once."""


class Log(Protocol):
    """The entries of one topic, in order. Only durable entries are ever read or counted."""

    @property
    def name(self) -> str:
        """``tenant/namespace/persistent/<encoded local name>``"""

    @property
    def written(self) -> WrittenEntries | None:
        """The entries that became durable in the last full minute; None if there are none since it began."""

    @property
    def write_rate(self) -> float:
        """The same, as entries per second."""

    @property
    def read_rate(self) -> float:
        """The entries per second that were read in that period because they were not in memory."""

    @property
    def last_position(self) -> Position:
        """The last durable entry; ``(ledger, -1)`` of the current ledger if there is none."""

    @property
    def last_appended(self) -> Position:
        """The last position given out, durable or not."""

    @property
    def first_position(self) -> Position | None:
        """The first entry that can be read, None if there is none."""

    @property
    def ledgers(self) -> Sequence[LedgerRecord]:
        """Oldest first; the last one is the current one (unless the log was terminated before it was opened)."""

    @property
    def compacted(self) -> CompactedEntries:
        """The compacted entries."""

    @property
    def terminated(self) -> bool:
        """True once `terminate` was called, also by an earlier process."""

    def append(self, *entries: bytes) -> Position:
        """Append entries, at least one, and return the position of the last. They become durable together.

        The order of calls is the order of the log; `LogListener.on_durable` reports durable entries. Raises
        `LogFenced`, or `LogTerminated` after a `terminate`.
        """

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        """As `read`, from memory and at once; None if the entries are not in memory (then `read`).

        An empty list says that there is no entry at or after ``start``.
        """

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        """Entries from ``start`` on, in order, across ledgers; at least one if there is one.

        Raises `LogDamaged`, and `NotReadableNow` where entries lie with others.
        """

    def next_position(self, after: Position) -> Position | None:
        """The next durable entry after ``after``, None at the end."""

    def entries_between(self, after: Position, upto: Position) -> int:
        """How many durable entries lie in ``(after, upto]``."""

    async def roll(self) -> None:
        """End the current ledger and go on in a new one. Nothing happens if the current one is empty."""

    async def trim(self, before: Position) -> None:
        """Forget whole ledgers that lie entirely before the position; never the one that takes entries."""

    async def terminate(self) -> Position:
        """Take no more entries, for ever; durable on return. The last position."""

    async def close(self) -> None:
        """Wait until what was appended is durable, and give the log back to the store."""

    async def abandon(self) -> None:
        """Give the log back at once and write nothing more, since another broker may have it: `close` without a wait.

        What is not durable yet is never announced.
        """


class LogStore(Protocol):
    """All logs of one data directory."""

    async def open(self, name: str, listener: LogListener, *, create: bool) -> Log:
        """Load a log; it goes on in a new ledger. At most one open `Log` per name.

        Raises `LogNotFound` if it is absent and ``create`` is false, `LogDamaged` if one of its records is damaged,
        and `LogFenced` if another process opens it at the same time.
        """

    async def exists(self, name: str) -> bool:
        """Whether there is a log of this name, open or not."""

    async def delete(self, *names: str, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        """Remove logs with their records and cursors, and apply ``also``, in one commit; open ones are fenced.

        Raises `CommitConflict` if ``expect`` does not hold; then none is removed. Absent ones are none the matter.
        """

    async def close(self) -> None:
        """Close every log, then the store."""


async def scan_pages(store: MetadataStore, prefix: str, *, limit: int) -> AsyncIterator[list[tuple[str, Versioned]]]:
    """Everything that starts with the prefix, ``limit`` keys at a time, so that others get their turn in between.

    Each page is read when it is asked for; what was changed behind the one before it is seen.
    """
    last = ""
    while page := await store.scan(prefix, after=last, limit=limit):
        yield page
        if len(page) < limit:
            return
        last = page[-1][0]

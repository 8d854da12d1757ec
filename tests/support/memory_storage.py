"""Metadata and the journal of logs in memory, for tests and benchmarks.

Nothing survives the process. The log is the real `topic_log`, over `MemoryJournal` instead of segments.

Several brokers of one process share a `MemoryTree` and `MemoryLedgers`, each with its own store and journal. Every
store has a session, and a journal that opens a ledger fences the journal that wrote it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice

from interpulse.storage.api import (
    Change,
    CommitConflict,
    Delete,
    FenceCause,
    LedgerRecord,
    LogFenced,
    MetadataStore,
    MetadataUnavailable,
    Put,
    Versioned,
)
from interpulse.storage.cas import create_numbered
from interpulse.storage.logs.journal import JournalClient, JournalStatistics, LedgerGone, LedgerPurpose, Run, Sealed
from interpulse.storage.logs.tail_cache import within
from interpulse.storage.logs.topic_log import LogConfig
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.sessions import LastingSession, Watches


class MemoryTree:
    """The keys that several stores share, as servers hold them."""

    def __init__(self) -> None:
        self.values: dict[str, Versioned] = {}
        self.stores: list[MemoryMetadataStore] = []
        self._owners: dict[str, int] = {}  # the sessions of ephemeral keys
        self._sorted: list[str] = []  # the keys of values
        self._version = 0
        self._sessions = 0

    def new_session(self) -> int:
        """Return a session id that was never used."""
        self._sessions += 1
        return self._sessions

    def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None], session: int) -> None:
        """Apply a commit; see `MetadataStore.commit`."""
        for key, version in expect.items():
            if _version(self.values.get(key)) != version:
                raise CommitConflict(key)
        for change in changes:
            put = isinstance(change, Put) and change.ephemeral and change.key in self.values
            if put and self._owners.get(change.key) != session:
                raise CommitConflict(change.key)
        self._apply(changes, session)

    def expire(self, session: int) -> None:
        """Remove the keys of a session."""
        self._apply([Delete(key) for key, owner in sorted(self._owners.items()) if owner == session], session)

    def load(self, values: Mapping[str, Versioned]) -> None:
        """Replace all keys without announcing it."""
        self.values, self._owners, self._sorted = dict(values), {}, sorted(values)
        self._version = max((value.version for value in values.values()), default=0)

    def beginning_with(self, prefix: str, after: str = "") -> Iterator[str]:
        """Yield the keys with this prefix that follow ``after``, in order."""
        first = max(bisect_left(self._sorted, prefix), bisect_right(self._sorted, after))
        for index in range(first, len(self._sorted)):
            if not self._sorted[index].startswith(prefix):
                return
            yield self._sorted[index]

    def _apply(self, changes: Sequence[Change], session: int) -> None:
        self._version += 1
        for change in changes:
            if isinstance(change, Put):
                if change.key not in self.values:
                    insort(self._sorted, change.key)
                    if change.ephemeral:
                        self._owners[change.key] = session
                self.values[change.key] = Versioned(change.value, self._version)
            elif self.values.pop(change.key, None) is not None:
                self._owners.pop(change.key, None)
                del self._sorted[bisect_left(self._sorted, change.key)]
        keys = [change.key for change in changes]
        for store in list(self.stores):
            store.announce(keys)


class MemoryMetadataStore:
    """A `MetadataStore` in a dictionary: one session with a `MemoryTree`, which other stores may share."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = tree or MemoryTree()
        self.session = LastingSession(self.tree.new_session())
        self._watches = Watches()
        self._closed = False
        self._cut_off = False
        self._expired = False
        self.tree.stores.append(self)

    async def get(self, key: str) -> Versioned | None:
        self._check_open()
        return self.tree.values.get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        self._check_open()
        values = self.tree.values
        return {key: values[key] for key in keys if key in values}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        if self._closed or self._cut_off:
            return False
        values = self.tree.values
        return all(_version(values.get(key)) == version for key, version in versions.items())

    async def children(self, key: str) -> list[str]:
        self._check_open()
        prefix = key.rstrip("/") + "/"
        return sorted({key[len(prefix) :].partition("/")[0] for key in self.tree.beginning_with(prefix)})

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        self._check_open()
        return [(key, self.tree.values[key]) for key in islice(self.tree.beginning_with(prefix, after), limit)]

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self._check_open()
        self.tree.commit(changes, expect, self.session.id)

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        return await create_numbered(self, prefix, value)

    async def sync(self, key: str) -> None:
        self._check_open()

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._watches.add(prefix, callback)

    def announce(self, keys: Sequence[str]) -> None:
        """Announce the keys of a commit to the watches."""
        if not self._cut_off:
            self._watches.announce(keys)

    def expire_session(self) -> None:
        """Remove the ephemeral keys and begin another session, as a server does whose client fell silent."""
        self.tree.expire(self.session.id)
        self.session.lose()
        self.session.resume(self.tree.new_session())

    def cut_off(self) -> None:
        """Break the connection for so long that the session may be over: reads, writes and watches stop."""
        self._cut_off = True
        self.session.lose()

    def stand_still(self) -> None:
        """Simulate a process that gets no time: its clock says that the session holds, until `cut_off` wakes it."""
        self._cut_off = True

    def expire_unseen(self) -> None:
        """End the session on the servers while this store is cut off: other stores see its keys go."""
        assert self._cut_off, "cut_off or stand_still comes first"
        self._expired = True
        self.tree.expire(self.session.id)

    def reconnect(self) -> None:
        """End `cut_off`, in the same session unless it expired meanwhile."""
        self._cut_off = False
        self.session.resume(self.tree.new_session() if self._expired else self.session.id)
        self._expired = False
        self._watches.announce_all()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """Break the connection for a while: watches are notified afterwards, and only that any key may have changed."""
        watches, self._watches = self._watches, Watches()
        try:
            yield
        finally:
            self._watches = watches
        watches.announce_all()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.tree.stores.remove(self)
            self.tree.expire(self.session.id)
            self.session.lose()

    def _check_open(self) -> None:
        if self._closed:
            raise MetadataUnavailable("the metadata store is closed")
        if self._cut_off:
            raise MetadataUnavailable("the metadata store is cut off")


def _version(stored: Versioned | None) -> int | None:
    return None if stored is None else stored.version


class MemoryLedgers:
    """The entries that several journals share, as bookies hold them."""

    def __init__(self, first_ledger: int = 1) -> None:
        self.entries: dict[int, list[bytes]] = {}
        self.ids = count(first_ledger)
        self._writers: dict[int, MemoryJournal | None] = {}

    def admit(self, writer: MemoryJournal, ledger_id: int) -> bool:
        """Return True if this journal may write to the ledger: the first journal may, until another one fences it."""
        return self._writers.setdefault(ledger_id, writer) is writer

    def fence(self, reader: MemoryJournal, ledger_id: int) -> None:
        """Stop all writers of the ledger except the reader itself."""
        if self._writers.get(ledger_id) is not reader:
            self._writers[ledger_id] = None


class MemoryJournal:
    """A journal that holds runs in a list per ledger. They are durable at the end of this turn of the event loop."""

    def __init__(self, first_ledger: int = 1, ledgers: MemoryLedgers | None = None) -> None:
        """Create a journal.

        ``first_ledger`` must be above all ledgers that the metadata name already. Without ``ledgers`` the journal
        shares its entries with no other.
        """
        self.statistics = JournalStatistics()
        self.counts_may_follow = True
        self._shared = ledgers or MemoryLedgers(first_ledger)
        self._ledgers = self._shared.entries
        self._waiting: list[JournalClient] = []

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        ledger_id = next(self._shared.ids)
        self._ledgers[ledger_id] = []
        return ledger_id

    def record_changes(self, log: str, before: Collection[int], after: Collection[int]) -> list[Change]:
        return []

    def enqueue(self, client: JournalClient) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._commit)
        self._waiting.append(client)

    def _commit(self) -> None:
        clients, self._waiting = self._waiting, []
        for client in clients:
            runs = client.take_pending()
            fenced = next((run.ledger_id for run in runs if not self._shared.admit(self, run.ledger_id)), None)
            if fenced is not None:
                client.failed(LogFenced(f"of ledger {fenced}", "another broker opened it", FenceCause.OWNED_ELSEWHERE))
                continue
            self._store(runs)
            if runs:
                client.committed(runs)

    def _store(self, runs: list[Run]) -> None:
        for run in runs:
            self._ledgers.setdefault(run.ledger_id, []).extend(run.entries)

    async def recover(self, ledger_id: int) -> Sealed | None:
        self._shared.fence(self, ledger_id)
        entries = self._ledgers.get(ledger_id)
        return None if entries is None else Sealed(len(entries), sum(map(len, entries)))

    async def seal(self, ledger_id: int) -> Sealed:
        return await self.recover(ledger_id) or Sealed(0, 0)

    def abandon(self, ledger_id: int) -> None: ...

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Accept everything: memory does not decay."""

    async def read(self, name: str, ledger_id: int, first: int, entries_max: int, bytes_max: int) -> list[bytes]:
        if ledger_id not in self._ledgers:
            raise LedgerGone(ledger_id)
        return within(self._ledgers[ledger_id][first : first + entries_max], bytes_max)

    async def forget(self, ledger_ids: Iterable[int]) -> None:
        for ledger_id in ledger_ids:
            self._ledgers.pop(ledger_id, None)

    async def close(self) -> None:
        self._commit()


def memory_log_store(
    metadata: MetadataStore, config: LogConfig | None = None, journal: MemoryJournal | None = None
) -> TopicLogStore:
    """Return a `LogStore` in memory. Pass the journal of an earlier one to see the state after a restart."""
    return TopicLogStore(metadata, journal or MemoryJournal(), config)

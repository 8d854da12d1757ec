"""Metadata and the journal of logs in memory, for tests and benchmarks: the broker itself never uses them.

Nothing survives the process. The log itself is the real one, `topic_log`, over `MemoryJournal` instead of segments.
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
    LedgerRecord,
    MetadataStore,
    MetadataUnavailable,
    Put,
    Versioned,
)
from interpulse.storage.cas import create_numbered
from interpulse.storage.journals import JournalClient, JournalStatistics, LedgerGone, LedgerPurpose, Run, Sealed
from interpulse.storage.sessions import LastingSession
from interpulse.storage.tail_cache import within
from interpulse.storage.topic_log import LogConfig
from interpulse.storage.topic_log_store import TopicLogStore
from interpulse.storage.watches import Watches

__all__ = ["MemoryJournal", "MemoryMetadataStore", "memory_log_store"]


class MemoryMetadataStore:
    """A `MetadataStore` in a dictionary."""

    def __init__(self) -> None:
        self.session = LastingSession()
        self._values: dict[str, Versioned] = {}
        self._ephemeral: set[str] = set()
        self._sorted: list[str] = []  # its keys
        self._version = 0
        self._watches = Watches()
        self._closed = False

    async def get(self, key: str) -> Versioned | None:
        self._check_open()
        return self._values.get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        self._check_open()
        return {key: self._values[key] for key in keys if key in self._values}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        if self._closed:
            return False
        return all(_version(self._values.get(key)) == version for key, version in versions.items())

    async def children(self, key: str) -> list[str]:
        self._check_open()
        prefix = key.rstrip("/") + "/"
        return sorted({each[len(prefix) :].partition("/")[0] for each in self._beginning_with(prefix)})

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        self._check_open()
        return [(key, self._values[key]) for key in islice(self._beginning_with(prefix, after), limit)]

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        self._check_open()
        for key, version in expect.items():
            if _version(self._values.get(key)) != version:
                raise CommitConflict(key)
        for change in changes:
            if isinstance(change, Put) and change.ephemeral:
                self._check_free(change.key)
        self._version += 1
        for change in changes:
            self._apply(change)
        self._watches.announce(change.key for change in changes)

    async def create_sequential(self, prefix: str, value: bytes = b"") -> str:
        return await create_numbered(self, prefix, value)

    async def sync(self, key: str) -> None:
        self._check_open()

    def watch(self, prefix: str, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._watches.add(prefix, callback)

    def expire_session(self) -> None:
        """As a server whose client fell silent: the ephemeral keys go, and another session begins."""
        self._version += 1
        gone = sorted(self._ephemeral)
        for key in gone:
            self._apply(Delete(key))
        self._watches.announce(gone)
        self.session.renew()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """As a connection that breaks: watches are told only afterwards, and only that anything may have changed."""
        watches, self._watches = self._watches, Watches()
        try:
            yield
        finally:
            self._watches = watches
        watches.announce_all()

    async def close(self) -> None:
        self._closed = True
        self.session.close()

    def _check_free(self, key: str) -> None:
        if key in self._values and key not in self._ephemeral:
            raise CommitConflict(key)

    def _apply(self, change: Change) -> None:
        if isinstance(change, Put):
            if change.key not in self._values:
                insort(self._sorted, change.key)
                if change.ephemeral:
                    self._ephemeral.add(change.key)
            self._values[change.key] = Versioned(change.value, self._version)
        elif self._values.pop(change.key, None) is not None:
            self._ephemeral.discard(change.key)
            del self._sorted[bisect_left(self._sorted, change.key)]

    def _beginning_with(self, prefix: str, after: str = "") -> Iterator[str]:
        first = max(bisect_left(self._sorted, prefix), bisect_right(self._sorted, after))
        for index in range(first, len(self._sorted)):
            if not self._sorted[index].startswith(prefix):
                return
            yield self._sorted[index]

    def _check_open(self) -> None:
        if self._closed:
            raise MetadataUnavailable("the metadata store is closed")


def _version(found: Versioned | None) -> int | None:
    return None if found is None else found.version


class MemoryJournal:
    """Keeps every run in a list per ledger. "Durable" means: at the end of this turn of the event loop."""

    def __init__(self, first_ledger: int = 1) -> None:
        """``first_ledger`` is above all ledgers that the metadata name already, if this is not their first journal."""
        self.statistics = JournalStatistics()
        self.counts_may_follow = True
        self._ids = count(first_ledger)
        self._ledgers: dict[int, list[bytes]] = {}
        self._waiting: list[JournalClient] = []

    async def create(self, log: str, purpose: LedgerPurpose) -> int:
        ledger_id = next(self._ids)
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
            self._store(runs)
            if runs:
                client.committed(runs)

    def _store(self, runs: list[Run]) -> None:
        for run in runs:
            self._ledgers.setdefault(run.ledger_id, []).extend(run.entries)

    async def recover(self, ledger_id: int) -> Sealed | None:
        entries = self._ledgers.get(ledger_id)
        return None if entries is None else Sealed(len(entries), sum(map(len, entries)))

    async def seal(self, ledger_id: int) -> Sealed:
        return await self.recover(ledger_id) or Sealed(0, 0)

    def abandon(self, ledger_id: int) -> None:
        """What was written stays."""

    async def verify(self, name: str, ledgers: Sequence[LedgerRecord]) -> None:
        """Memory does not rot."""

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
    """A `LogStore` in memory. Give it the journal of an earlier one to see what a restart sees."""
    return TopicLogStore(metadata, journal or MemoryJournal(), config)

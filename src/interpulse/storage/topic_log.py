"""One log, over any journal; all of them are in `topic_log_store`.

A journal keeps runs of entries per ledger (`SegmentJournal` on disk, `MemoryJournal` in memory). Everything else is
here: which ledgers a log has, when it rolls, what it has promised. Invariants:

* All of this runs in the event loop. The order of `append` calls is the order of the log.
* A ledger takes entries only after its id stands durably in the record of its log.
* A ledger's count is written into the record only when nothing of it is pending any more; a written count is final.
* Once fenced, a log never acknowledges anything again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import (
    LedgerRecord,
    LogDamaged,
    LogEntry,
    LogFenced,
    LogListener,
    LogNotFound,
    LogTerminated,
)
from interpulse.storage.compacted import CompactedLog, CompactedStore
from interpulse.storage.journals import LedgerGone, Run
from interpulse.storage.ledgers import LedgerList
from interpulse.storage.tail_cache import LogTail, TailCache, as_log_entries
from interpulse.storage.topic_records import TopicRecord, with_ledgers
from interpulse.storage.write_meter import WriteMeter

__all__ = ["LogConfig", "LogOwner", "TopicLog"]

_new_tuple = tuple.__new__  # Position(...) without the generated Python function around it


@dataclass(frozen=True, slots=True)
class LogConfig:
    """When a ledger ends, and how much is kept in memory. A full ledger ends once it is ``ledger_age_min_ms`` old."""

    ledger_entries_max: int = 50_000  # managedLedgerMaxEntriesPerLedger
    ledger_bytes_max: int = 2048 * 1024 * 1024  # managedLedgerMaxSizePerLedgerMbytes
    ledger_age_min_ms: int = 10 * 60_000  # managedLedgerMinLedgerRolloverTimeMinutes
    ledger_age_max_ms: int = 240 * 60_000  # managedLedgerMaxLedgerRolloverTimeMinutes
    cache_bytes_max: int = 64 * 1024 * 1024


class LogOwner(CompactedStore, Protocol):
    """The store of all logs, as a log sees it."""

    cache: TailCache
    config: LogConfig

    def meter(self, name: str) -> WriteMeter:
        """Where the writes of a log are counted."""

    def closed(self, log: TopicLog) -> None:
        """The log is no longer in use."""


class TopicLog:
    """The entries of one topic. See `interpulse.storage.api.Log`."""

    def __init__(self, name: str, listener: LogListener, record: TopicRecord, store: LogOwner) -> None:
        self._name = name
        self._listener = listener
        self._store = store
        self._journal = store.journal
        self._ledgers = LedgerList(record.ledgers)
        self._tail = LogTail()
        self.compacted = CompactedLog(name, record.compacted, store, self._check_open, self.failed)
        self._end = record.terminated  # the last position of a terminated log
        self._refusal: Callable[[], LogFenced] | None = None if self._end is None else lambda: LogTerminated(name)
        self._ledger_id, self._entry = self._last_or_current()
        self._last_before_ledger = self._ledgers.last_position()  # appended, in an earlier ledger than the current one
        self._pending: list[bytes] = []
        self._runs: list[Run] = []  # pending runs of ledgers that were rolled meanwhile
        self._queued = False
        self._pending_since = self._writing_since = 0.0  # when the oldest entry came that waits, or is being written
        self._failure: Exception | None = None
        self._waiters: list[tuple[Position, asyncio.Future[None]]] = []
        self._changing = asyncio.Lock()  # one roll, trim or terminate at a time
        self._rolling: asyncio.Task[None] | None = None

    def _last_or_current(self) -> tuple[int, int]:
        newest = self._ledgers.newest
        return self.last_position if self._end is not None or newest is None else (newest.ledger_id, -1)

    @property
    def name(self) -> str:
        return self._name

    @property
    def last_position(self) -> Position:
        return self._ledgers.last_position() if self._end is None else self._end

    @property
    def last_appended(self) -> Position:
        return Position(self._ledger_id, self._entry) if self._entry >= 0 else self._last_before_ledger

    @property
    def first_position(self) -> Position | None:
        return self._ledgers.first_position()

    @property
    def ledgers(self) -> Sequence[LedgerRecord]:
        return self._ledgers.records

    @property
    def terminated(self) -> bool:
        return self._end is not None

    def append(self, entry: bytes | memoryview) -> Position:
        if self._refusal is not None:
            raise self._refusal()
        if type(entry) is not bytes:
            entry = bytes(entry)
        if not self._queued:
            self._queued = True
            self._pending_since = time.monotonic()
            self._journal.enqueue(self)
        self._pending.append(entry)
        self._entry = number = self._entry + 1
        return _new_tuple(Position, (self._ledger_id, number))

    def append_all(self, entries: Sequence[bytes]) -> Position:
        self.append(entries[0])
        self._pending += entries[1:]
        self._entry += len(entries) - 1
        return _new_tuple(Position, (self._ledger_id, self._entry))

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        found = self._ledgers.at_or_after(start)
        if found is None:
            return []
        return self._tail.read(found, entries_max, bytes_max)

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        result: list[LogEntry] = []
        position = self._ledgers.at_or_after(start)
        while position is not None and len(result) < entries_max and (bytes_max > 0 or not result):
            ledger, first = position
            left = min(entries_max - len(result), self._ledgers.entries_of(ledger) - first)
            try:
                entries = await self._journal.read(self._name, ledger, first, left, bytes_max)
            except LedgerGone:
                position = self._ledgers.at_or_after(position)  # trimmed meanwhile
                assert position is None or position.ledger != ledger, "a ledger in the list is in the journal"
                continue
            except LogDamaged as error:
                self.failed(error)
                raise
            result += as_log_entries(ledger, first, entries)
            if len(entries) < left:
                break
            bytes_max -= sum(map(len, entries))
            position = self._ledgers.next_position(result[-1].position)
        return result

    def next_position(self, after: Position) -> Position | None:
        return self._ledgers.next_position(after)

    def entries_between(self, after: Position, upto: Position) -> int:
        return self._ledgers.entries_between(after, upto)

    # what the journal calls

    def take_pending(self) -> list[Run]:
        self._queued = False
        self._writing_since = self._pending_since
        runs, self._runs = self._runs, []
        if self._pending:
            runs.append(self._pending_run())
            self._pending = []
        return runs

    def committed(self, runs: list[Run]) -> None:
        if self._failure is not None:
            return
        waited_s = time.monotonic() - self._writing_since
        meter = self._store.meter(self._name)
        for run in runs:
            size = sum(map(len, run.entries))
            meter.wrote(run.entries, size, waited_s)
            self._ledgers.extend(run.ledger_id, run.first, len(run.entries), size)
            self._store.cache.add(self._tail, run, size)
        last = Position(runs[-1].ledger_id, runs[-1].first + len(runs[-1].entries) - 1)
        if self._waiters:
            self._release_waiters(last)
        self._listener.on_durable(last)
        if self._refusal is None and (self._rolling is None or self._rolling.done()) and self._is_full():
            self._rolling = self._store.spawn(self._roll_in_background())

    def failed(self, error: Exception) -> None:
        """Fence the log because of a failed write."""
        if self._failure is not None:
            return
        self._failure = error
        self._drop_pending(str(error))
        self._listener.on_log_failed(error)

    def fence(self, reason: str) -> None:
        """Fence the log because its owner asked for it; the listener is not told."""
        if self._failure is None:
            self._failure = LogFenced(self._name, reason)
            self._drop_pending(reason)

    # changes of the ledger list

    async def roll(self) -> None:
        async with self._changing:
            self._check_usable()
            if self._entry < 0:
                return
            new = LedgerRecord(await self._store.ids.take(), 0, 0, self._store.now_ms())
            await self._write_record([*self._final_records(), new])
            self._check_usable()
            last = self._last_before_ledger = self.last_appended
            if self._pending:
                self._runs.append(self._pending_run())
                self._pending = []
            self._ledgers.begin(new.ledger_id, new.created_ms)
            self._ledger_id, self._entry = new.ledger_id, -1
            await self._durable(last)  # the next change finds the old ledger complete

    async def trim(self, before: Position) -> None:
        async with self._changing:
            self._check_open()
            current = self._ledger_id if self._end is None else None
            gone = [each for each in self._ledgers.before(before) if each != current]
            if not gone:
                return
            await self._write_record([row for row in self._final_records() if row.ledger_id not in gone])
            self._ledgers.drop(gone)
            await self._journal.forget(gone)

    async def terminate(self) -> Position:
        if self._end is not None:
            return self._end
        self._check_usable()
        self._refusal = lambda: LogTerminated(self._name)
        await self._durable(self.last_appended)
        async with self._changing:
            self._end = self.last_position
            try:
                await self._write_record(self._final_records())
            except PulsarError:
                self._end = self._refusal = None  # it is not terminated, so it goes on
                raise
        return self._end

    async def close(self) -> None:
        await self.compacted.close()
        try:
            if self._failure is None:
                await self._durable(self.last_appended)
            if self._rolling is not None:
                self._rolling.cancel()
                await asyncio.wait([self._rolling])
        except LogFenced:
            assert self._failure is not None, "the listener was told"
        finally:
            try:
                async with self._changing:
                    pass  # a change of the record under way must not overwrite one of the next open log
            finally:
                self.fence("closed")
                self._store.closed(self)

    async def abandon(self) -> None:
        self.fence("another broker may own the topic")
        await self.compacted.close()
        if self._rolling is not None:
            self._rolling.cancel()
            await asyncio.wait([self._rolling])
        async with self._changing:
            pass  # as in `close`
        self._store.closed(self)

    def forget_tail(self) -> None:
        """Give back the memory of cached entries."""
        self._store.cache.remove(self._tail)

    # parts

    def _pending_run(self) -> Run:
        return Run(self._ledger_id, self._entry + 1 - len(self._pending), self._pending)

    def _check_open(self) -> None:
        """A terminated log passes: it takes no entries, and is open all the same."""
        if self._failure is not None:
            raise LogFenced(self._name, str(self._failure))

    def _check_usable(self) -> None:
        if self._refusal is not None:
            raise self._refusal()

    def _drop_pending(self, reason: str) -> None:
        if self._end is None:
            self._refusal = lambda: LogFenced(self._name, reason)
        self._pending = []
        self._runs = []
        self._last_before_ledger = self._ledgers.last_position()
        self._entry = -1
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(LogFenced(self._name, reason))
        self._waiters.clear()

    def _release_waiters(self, last: Position) -> None:
        for position, waiter in self._waiters:
            if position <= last and not waiter.done():
                waiter.set_result(None)
        self._waiters = [(position, waiter) for position, waiter in self._waiters if not waiter.done()]

    async def _durable(self, position: Position) -> None:
        if position > self.last_position:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((position, waiter))
            await waiter

    def _is_full(self) -> bool:
        config = self._store.config
        current = self._ledgers.newest
        assert current is not None
        age_ms = self._store.now_ms() - current.created_ms
        large = current.entries >= config.ledger_entries_max or current.size >= config.ledger_bytes_max
        return (large and age_ms >= config.ledger_age_min_ms) or age_ms >= config.ledger_age_max_ms

    async def _roll_in_background(self) -> None:
        try:
            await self.roll()
        except LogFenced:
            return  # nothing to roll any more
        except Exception as error:  # noqa: BLE001 - a ledger that cannot end ends its log, and the listener is told
            self.failed(error)

    def _final_records(self) -> list[LedgerRecord]:
        """The list to write down: counts only where nothing can come any more."""
        rows = self._ledgers.records
        if self._end is not None:
            return list(rows)
        return [row._replace(entries=0, size=0) if row.ledger_id == self._ledger_id else row for row in rows]

    async def _write_record(self, rows: Sequence[LedgerRecord]) -> None:
        def step(record: TopicRecord | None) -> TopicRecord:
            if record is None:
                raise LogNotFound(self._name)
            return replace(with_ledgers(record, rows), terminated=self._end)

        await self._store.records.change(self._name, step)

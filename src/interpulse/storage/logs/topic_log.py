"""One log, over any journal; `topic_log_store` has all logs.

A journal stores runs of entries per ledger: `SegmentJournal` on disk, `BookKeeperJournal` on bookies. Everything else
is here: the ledgers of a log, the time to roll, and the promises made.

Invariants:

* All of this runs in the event loop. The order of `append` calls is the order of the log.
* A ledger accepts entries only after its id is durable in the record of its log.
* A ledger's count is written into the record only when nothing of it is pending any more; a written count is final.
* The newest ledger of the record is the one that this log began. Another one shows that another process opened the log.
* Once fenced, a log never acknowledges anything again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol
from weakref import proxy

from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.storage.api import (
    FenceCause,
    LedgerRecord,
    LogDamaged,
    LogEntry,
    LogFenced,
    LogListener,
    LogNotFound,
    LogTerminated,
    NotReadableNow,
)
from interpulse.storage.logs.compacted import CompactedLog, CompactedStore
from interpulse.storage.logs.journal import TOPIC_LEDGER, LedgerGone, Run
from interpulse.storage.logs.ledger_list import LedgerList
from interpulse.storage.logs.tail_cache import LogTail, TailCache, as_log_entries
from interpulse.storage.logs.topic_records import TopicRecord, check_newest, with_ledgers
from interpulse.storage.meters import WriteMeter, WrittenEntries

_log = logging.getLogger(__name__)

_AGAIN_S: Final = 1.0  # between attempts at work that can wait, such as the end of a full ledger
_STALL_S: Final = 30.0  # the longest wait of entries for a record before the log fails
_SEAL_S: Final = 5.0  # how long closing waits for the end of the ledger, which the next opener can determine too

_new_tuple = tuple.__new__  # Position(...) without the generated Python function around it


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The limits of ledgers and of the cache. A full ledger ends once it is ``ledger_age_min_ms`` old."""

    ledger_entries_max: int = 50_000  # managedLedgerMaxEntriesPerLedger
    ledger_bytes_max: int = 2048 * 1024 * 1024  # managedLedgerMaxSizePerLedgerMbytes
    ledger_age_min_ms: int = 10 * 60_000  # managedLedgerMinLedgerRolloverTimeMinutes
    ledger_age_max_ms: int = 240 * 60_000  # managedLedgerMaxLedgerRolloverTimeMinutes
    cache_bytes_max: int = 64 * 1024 * 1024


class LogOwner(CompactedStore, Protocol):
    """The store of all logs, as seen by a log."""

    cache: TailCache
    config: LogConfig
    meter: WriteMeter

    def closed(self, log: TopicLog) -> None:
        """Remove a log that is no longer in use."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work without a caller. The store keeps it alive, and cancels it when the store is closed."""


class _NoListener:
    def on_durable(self, last: Position) -> None: ...

    def on_log_failed(self, error: Exception) -> None: ...


_NO_LISTENER: Final = _NoListener()


class TopicLog:
    """The entries of one topic. See `interpulse.storage.api.Log`."""

    def __init__(
        self, name: str, listener: LogListener, record: TopicRecord, store: LogOwner, newest: int | None
    ) -> None:
        """``newest`` is the newest ledger of the stored record, which may have empty ones that ``record`` lacks."""
        self.name = name
        self._newest = newest
        self._listener = listener
        self._store = store
        self._journal = store.journal
        self._ledgers = LedgerList(record.ledgers)
        self._tail = LogTail()
        self.compacted = CompactedLog(name, record.compacted, store, proxy(self))
        self._end = record.terminated  # the last position of a terminated log
        self._refusal: Callable[[], LogFenced] | None = None if self._end is None else partial(LogTerminated, name)
        current = self._ledgers.newest if self._end is None else None
        self._ledger_id, self._entry = self.last_position if current is None else (current.ledger_id, -1)
        self._last_before_ledger = self._ledgers.last_position()  # the last appended position in an earlier ledger
        self._last_durable = self.last_position  # the last durable position, even if it was trimmed meanwhile
        self._pending: list[bytes] = []
        self._runs: list[Run] = []  # pending runs of ledgers that were rolled meanwhile
        self._queued = False
        self._held = False  # True if the ledger of pending entries is not in the record yet
        self._pending_since = 0.0  # the arrival of the oldest pending entry
        self._writing_since: list[float] = []  # the same for entries being written, one number per group
        self._failure: Exception | None = None
        self._cause = FenceCause.FAILED
        self._waiters: list[tuple[Position, asyncio.Future[None]]] = []
        self._changing = asyncio.Lock()  # one roll, trim or terminate at a time
        self._rolling: asyncio.Task[None] | None = None

    @property
    def written(self) -> WrittenEntries | None:
        return self._store.meter.written_of(self.name)

    @property
    def write_rate(self) -> float:
        written = self.written
        return written.sizes.count / self._store.meter.period_s if written is not None else 0.0

    @property
    def read_rate(self) -> float:
        return self._store.meter.read_rate_of(self.name)

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

    def append(self, *entries: bytes) -> Position:
        if self._refusal is not None:
            raise self._refusal()
        if not self._queued:
            self._queued = True
            self._pending_since = time.monotonic()
            self._journal.enqueue(self)
        self._pending += entries
        self._entry = last = self._entry + len(entries)
        return _new_tuple(Position, (self._ledger_id, last))

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        position = self._ledgers.at_or_after(start)
        if position is None:
            return []
        return self._tail.read(position, entries_max, bytes_max)

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        result: list[LogEntry] = []
        position = self._ledgers.at_or_after(start)
        while position is not None and len(result) < entries_max and (bytes_max > 0 or not result):
            ledger, first = position
            remaining = min(entries_max - len(result), self._ledgers.entries_of(ledger) - first)
            try:
                entries = await self._journal.read(self.name, ledger, first, remaining, bytes_max)
            except LedgerGone as error:
                position = self._ledgers.at_or_after(position)
                if position is None or position.ledger != ledger:
                    continue  # trimmed meanwhile
                damage = LogDamaged(self.name, f"ledger {ledger}", -1, "the ledger is missing")
                self.failed(damage)
                raise damage from error
            except LogDamaged as error:
                self.failed(error)
                raise
            except NotReadableNow:
                if result:
                    break
                raise
            self._store.meter.read(self.name, len(entries))
            result += as_log_entries(ledger, first, entries)
            if len(entries) < remaining:
                break
            bytes_max -= sum(map(len, entries))
            position = self._ledgers.next_position(result[-1].position)
        return result

    def next_position(self, after: Position) -> Position | None:
        return self._ledgers.next_position(after)

    def entries_between(self, after: Position, upto: Position) -> int:
        return self._ledgers.entries_between(after, upto)

    # called by the journal

    def take_pending(self) -> list[Run]:
        runs, self._runs = self._runs, []
        if not self._held:
            self._queued = False
            if self._pending:
                runs.append(self._pending_run())
                self._pending = []
        if runs:
            self._writing_since.append(self._pending_since)
        return runs

    def committed(self, runs: list[Run]) -> None:
        if self._failure is not None:
            return
        waited_s = time.monotonic() - self._writing_since.pop(0)
        meter = self._store.meter
        for run in runs:
            size = sum(map(len, run.entries))
            meter.wrote(self.name, run.entries, size, waited_s)
            self._ledgers.extend(run.ledger_id, run.first, len(run.entries), size)
            self._store.cache.add(self._tail, run, size)
        last = Position(runs[-1].ledger_id, runs[-1].first + len(runs[-1].entries) - 1)
        self._last_durable = last
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
        self._cause = error.cause if isinstance(error, LogFenced) else FenceCause.FAILED
        self._drop_pending(str(error))
        self._listener.on_log_failed(error)

    def fence(self, reason: str, cause: FenceCause) -> None:
        """Fence the log at its owner's request, without a report to the listener."""
        if self._failure is None:
            self._failure = LogFenced(self.name, reason, cause)
            self._cause = cause
            self._drop_pending(reason)

    # changes of the ledger list

    async def roll(self) -> None:
        if self._journal.counts_may_follow:
            await self._roll()
            return
        rolling = self._store.spawn(self._roll())  # goes on without its caller, who would leave entries held back
        rolling.add_done_callback(_look_at)
        await asyncio.shield(rolling)

    async def _roll(self) -> None:
        async with self._changing:
            self._check_usable()
            if self._entry < 0:
                return
            new = LedgerRecord(await self._journal.create(self.name, TOPIC_LEDGER), 0, 0, self._store.now_ms())
            ended = self._ledger_id
            try:
                if self._journal.counts_may_follow:
                    await self._begin_recorded(new)
                else:
                    await self._begin_held(new)
            except PulsarError as error:
                if self._ledger_id != ended:
                    self._journal.abandon(ended)  # no caller seals it now
                if isinstance(error, LogFenced | LogNotFound) and self._newest != new.ledger_id:
                    await self._journal.forget([new.ledger_id])
                raise
        self._store.spawn(self._seal(ended))

    async def _begin_recorded(self, new: LedgerRecord) -> None:
        """Go on in a ledger that is in the record. The next change writes the count of its predecessor."""
        await self._write_record([*self._final_records(), new])
        self._check_usable()
        last = self._go_on_in(new)
        await self._durable(last)  # the next change finds the old ledger complete

    async def _begin_held(self, new: LedgerRecord) -> None:
        """Go on in a ledger whose entries are held back until it is in the record and its predecessor is complete."""
        self._check_usable()
        self._held = self._queued = True
        last = self._go_on_in(new)
        self._pending_since = begun = time.monotonic()
        await self._durable(last)
        while True:
            self.check_open()  # a `terminate` waits for entries that are held back
            try:
                await self._write_record(self._final_records())
                break
            except (LogFenced, LogNotFound):
                raise
            except PulsarError as error:
                if not error.retriable or time.monotonic() - begun > _STALL_S:
                    self.failed(error)
                    raise
                _log.warning("ledger waits for its record log=%s ledger=%d error=%s", self.name, new.ledger_id, error)
                await asyncio.sleep(_AGAIN_S)
        self.check_open()
        self._held = False
        self._queued = bool(self._pending)
        if self._queued:
            self._journal.enqueue(self)

    def _go_on_in(self, new: LedgerRecord) -> Position:
        """Assign positions in a new ledger. Return the last position before it."""
        last = self._last_before_ledger = self.last_appended
        if self._pending:
            self._runs.append(self._pending_run())
            self._pending = []
        self._ledgers.begin(new.ledger_id, new.created_ms)
        self._ledger_id, self._entry = new.ledger_id, -1
        return last

    async def _seal(self, ledger_id: int) -> None:
        """End a ledger that accepts no more entries. Until that succeeds, other readers recover it."""
        while True:
            try:
                await self._journal.seal(ledger_id)
            except PulsarError as error:
                trimmed = all(row.ledger_id != ledger_id for row in self._ledgers.records)
                if trimmed or self._failure is not None or not error.retriable:
                    self._journal.abandon(ledger_id)
                    return
                _log.debug("ledger is not sealed yet log=%s ledger=%d error=%s", self.name, ledger_id, error)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def trim(self, before: Position) -> None:
        async with self._changing:
            self.check_open()
            current = self._ledger_id if self._end is None else None
            gone = [ledger for ledger in self._ledgers.before(before) if ledger != current]
            if not gone:
                return
            await self._write_record([row for row in self._final_records() if row.ledger_id not in gone])
            self._ledgers.drop(gone)
            await self._journal.forget(gone)

    async def settle(self) -> None:
        self.check_open()
        await self._durable(self.last_appended)

    async def terminate(self) -> Position:
        if self._end is not None:
            return self._end
        self._check_usable()
        self._refusal = partial(LogTerminated, self.name)
        await self._durable(self.last_appended)
        async with self._changing:
            self.check_open()
            self._end = self.last_position
            try:
                await self._write_record(self._final_records())
            except PulsarError as error:
                self._end = None  # not terminated, so it goes on, unless it failed meanwhile
                if not self._journal.counts_may_follow:
                    self.failed(error)  # the commit may have been applied: the next opener of the log reads the record
                self._refusal = None if self._failure is None else self._fenced(str(self._failure))
                raise
        self._store.spawn(self._seal(self._ledger_id))
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
            assert self._failure is not None, "the listener got the failure"
        finally:
            try:
                async with self._changing:
                    pass  # a change of the record in progress must not overwrite one of the next opener
                await self._seal_at_close()
            finally:
                self.fence("closed", FenceCause.CLOSED)
                self._journal.abandon(self._ledger_id)
                self._store.closed(self)

    def disown(self) -> None:
        self.fence("another broker may own the topic", FenceCause.OWNED_ELSEWHERE)

    async def abandon(self) -> None:
        self.disown()
        self._journal.abandon(self._ledger_id)
        await self.compacted.close()
        if self._rolling is not None:
            self._rolling.cancel()
            await asyncio.wait([self._rolling])
        async with self._changing:
            pass  # as in `close`
        self._store.closed(self)

    async def _seal_at_close(self) -> None:
        if self._failure is not None or self._end is not None:
            return
        try:
            async with asyncio.timeout(_SEAL_S):
                await self._journal.seal(self._ledger_id)
        except (PulsarError, TimeoutError) as error:
            _log.info("ledger left for recovery log=%s ledger=%d error=%s", self.name, self._ledger_id, error)

    def let_go(self) -> None:
        """Release the memory of cached entries and the listener of a log that is no longer in use."""
        self._store.cache.remove(self._tail)
        self._listener = _NO_LISTENER

    # parts

    def _pending_run(self) -> Run:
        return Run(self._ledger_id, self._entry + 1 - len(self._pending), self._pending)

    def check_open(self) -> None:
        """Raise unless the log is open. A terminated log passes: it accepts no entries, but is open."""
        if self._failure is not None:
            raise LogFenced(self.name, str(self._failure), self._cause)

    def _check_usable(self) -> None:
        if self._refusal is not None:
            raise self._refusal()

    def _fenced(self, reason: str) -> Callable[[], LogFenced]:
        return partial(LogFenced, self.name, reason, self._cause)

    def _drop_pending(self, reason: str) -> None:
        refusal = self._fenced(reason)
        if self._end is None:
            self._refusal = refusal
        self._pending = []
        self._runs = []
        self._last_before_ledger = self._ledgers.last_position()
        self._entry = -1
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(refusal())
        self._waiters.clear()

    def _release_waiters(self, last: Position) -> None:
        for position, waiter in self._waiters:
            if position <= last and not waiter.done():
                waiter.set_result(None)
        self._waiters = [(position, waiter) for position, waiter in self._waiters if not waiter.done()]

    async def _durable(self, position: Position) -> None:
        if position > self._last_durable:
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
        """Roll a full ledger, which grows on until it can end."""
        while True:
            try:
                await self.roll()
            except LogFenced:
                return  # nothing to roll any more
            except PulsarError as error:
                if not error.retriable or isinstance(error, LogNotFound):
                    self.failed(error)
                    return
                _log.warning("full ledger keeps growing log=%s ledger=%d error=%s", self.name, self._ledger_id, error)
                await asyncio.sleep(_AGAIN_S)
            except Exception as error:  # noqa: BLE001 - it ends the log, and the listener gets it
                self.failed(error)
                return
            else:
                return

    def _final_records(self) -> list[LedgerRecord]:
        """Return the ledgers for the record, with counts only of those that are final."""
        rows = self._ledgers.records
        if self._end is not None:
            return list(rows)
        return [row._replace(entries=0, size=0) if row.ledger_id == self._ledger_id else row for row in rows]

    async def _write_record(self, rows: Sequence[LedgerRecord]) -> None:
        newest = rows[-1].ledger_id if rows else None

        def step(record: TopicRecord | None) -> TopicRecord:
            if record is None:
                raise LogNotFound(self.name)
            check_newest(self.name, record, (self._newest, newest))
            return replace(with_ledgers(record, rows), terminated=self._end)

        try:
            await self._store.records.change(self.name, step)
        except LogFenced as error:
            self.failed(error)
            raise
        self._newest = newest


def _look_at(task: asyncio.Task[None]) -> None:
    """Retrieve the outcome of a task whose caller may be gone; the log knows of its failure."""
    if not task.cancelled():
        task.exception()

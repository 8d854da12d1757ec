"""Compaction of one persistent topic: the newest message of every key survives, in its order and with its id.

It runs in the background over everything durable at its start: the previous compacted ledger, and the log after it, up
to the *horizon*. First it finds the newest message of every key (`choice`), then it writes these into a new compacted
ledger. When that is durable, it moves the cursor ``__compaction``, which kept the log from being trimmed. If it ends
early, the old state remains.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.compaction.choice import Choice, Look, survivors, view_of
from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.log_search import bytes_after
from interpulse.broker.live.metrics import CompactionMeasure, TrafficMetrics
from interpulse.model.errors import Conflict, PersistenceError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogEntry
from interpulse.storage.cursors import COMPACTION_CURSOR
from interpulse.storage.meters import WAIT_MS, Histogram

log = logging.getLogger(__name__)

KEYS_MAX: Final = 250_000
"""Keys remembered at once, about 50 MB; more keys need more passes over the entries."""

_ENTRIES_MAX: Final = 500  # entries of one step: a few milliseconds of a thread
_BYTES_MAX: Final = 1024 * 1024
_WRITE_BYTES: Final = 512 * 1024  # each write costs a sync


_NO_WAITS: Final = Histogram(WAIT_MS)
_NO_TRAFFIC: Final = TrafficMetrics()


class CompactionStatus(StrEnum):
    """The status of a compaction, in Pulsar's words."""

    NOT_RUN = "NOT_RUN"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"


class CompactionOwner(Protocol):
    """The interface of the topic for its compaction."""

    log: Log
    name: TopicName
    now_ms: Callable[[], int]
    positions: LogPositions
    settings: TopicSettings

    async def keep_for_compaction(self) -> None: ...
    def compacted_upto(self, horizon: Position) -> None: ...


class Compaction:
    """The compaction of one topic. At most one run at a time."""

    def __init__(self, topic: CompactionOwner, permits: asyncio.Semaphore) -> None:
        """``permits`` limits the topics that are compacted at the same time."""
        self.status = CompactionStatus.NOT_RUN
        self.last_error = ""
        self.removed = self.succeeded_ms = self.failed_ms = self.duration_ms = 0
        self._succeeded_count = self._failed_count = 0
        self._read = self._written = _NO_TRAFFIC  # shared: most topics are never compacted
        self.waits_ms = _NO_WAITS
        """Write latencies of the last run's entries."""
        self._topic = topic
        self._permits = permits
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Compact in the background. Raises Conflict while a compaction runs."""
        if self.status is CompactionStatus.RUNNING:
            raise Conflict("Compaction already in progress")
        self.status = CompactionStatus.RUNNING
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._ended)

    def begin_if_due(self) -> None:
        """Compact if the policies start it automatically and their threshold is reached."""
        threshold = self._topic.settings.compaction_threshold_bytes
        if threshold <= 0 or self.status is CompactionStatus.RUNNING:
            return
        if bytes_after(self._topic.log.ledgers, self._compacted_upto) > threshold:
            self.begin()

    async def stop(self) -> None:
        """End the current run, if any, without a change."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def forget(self) -> None:
        await self.stop()
        await self._topic.log.compacted.drop()

    def shown(self) -> dict[str, str]:
        """Return ``LongRunningProcessStatus``."""
        return {"status": str(self.status), "lastError": self.last_error}

    def stats(self) -> dict[str, int]:
        """Return ``CompactionStats``."""
        return {
            "lastCompactionRemovedEventCount": self.removed,
            "lastCompactionSucceedTimestamp": self.succeeded_ms,
            "lastCompactionFailedTimestamp": self.failed_ms,
            "lastCompactionDurationTimeInMills": self.duration_ms,
        }

    def measure(self) -> CompactionMeasure | None:
        """Return the metrics; None while nothing was compacted since the topic was loaded."""
        if not self._succeeded_count + self._failed_count:
            return None
        current = self._topic.log.compacted.current
        return CompactionMeasure(
            self.removed,
            self._succeeded_count,
            self._failed_count,
            self.duration_ms,
            self._read.byte_rate,
            self._written.byte_rate,
            current.entries if current is not None else 0,
            current.size if current is not None else 0,
        )

    def tick(self, seconds: float) -> None:
        self._read.tick(seconds)
        self._written.tick(seconds)

    @property
    def _compacted_upto(self) -> Position:
        current = self._topic.log.compacted.current
        return EARLIEST if current is None else current.horizon

    # --- one run

    async def _run(self) -> None:
        async with self._permits:
            await self._topic.keep_for_compaction()
            horizon = self._topic.positions.durable
            if self._topic.log.next_position(self._compacted_upto) is not None:
                started = time.monotonic()
                self.waits_ms = Histogram(WAIT_MS)
                if self._read is _NO_TRAFFIC:
                    self._read, self._written = TrafficMetrics(), TrafficMetrics()
                self.removed = await self._compact(horizon)
                self.duration_ms = round((time.monotonic() - started) * 1000)
                self.succeeded_ms = self._topic.now_ms()
            self._topic.compacted_upto(horizon)

    async def _compact(self, horizon: Position) -> int:
        topic_log = self._topic.log
        choice = Choice(keys_max=KEYS_MAX, keyless_kept=self._topic.settings.compaction_keeps_keyless)
        look = await self._look(horizon, choice)
        while choice.looks_needed:
            _check_same(look.messages, (await self._look(horizon, choice)).messages)
        ledger = await topic_log.compacted.replace(horizon, self._survivors(horizon, choice, look.messages))
        self._written.bytes += ledger.size
        log.info(
            "topic compacted topic=%s horizon=%s messages=%d kept=%d entries=%d bytes=%d",
            *(self._topic.name, horizon, look.present, choice.count, ledger.entries, ledger.size),
        )
        return look.present - choice.count

    async def _look(self, horizon: Position, choice: Choice) -> Look:
        look = choice.next_look()
        async for part in entries_upto(self._topic.log, horizon):
            await asyncio.to_thread(look.see, map(view_of, [entry.entry for entry in part]))
            self._read.bytes += _size_of(part)
        look.end()
        return look

    async def _survivors(self, horizon: Position, choice: Choice, messages: int) -> AsyncIterator[list[LogEntry]]:
        number, size = 0, 0
        gathered: list[LogEntry] = []
        async for part in entries_upto(self._topic.log, horizon):
            entries, number = await asyncio.to_thread(survivors, part, choice, number)
            self._read.bytes += _size_of(part)
            gathered += entries
            size += _size_of(entries)
            if size >= _WRITE_BYTES:
                with self._waited_for(gathered):
                    yield gathered
                gathered, size = [], 0
        _check_same(messages, number)
        with self._waited_for(gathered):
            yield gathered

    @contextmanager
    def _waited_for(self, entries: Sequence[LogEntry]) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.waits_ms.add((time.monotonic() - began) * 1000, len(entries))

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if not task.cancelled() and error is None:
            self.status, self.last_error = CompactionStatus.SUCCESS, ""
            self._succeeded_count += 1
            return
        self.status, self.failed_ms = CompactionStatus.ERROR, self._topic.now_ms()
        self._failed_count += 1
        self.last_error = "The compaction was stopped before its end" if error is None else str(error) or repr(error)
        log.warning("compaction failed topic=%s error=%s", self._topic.name, self.last_error)


async def entries_upto(topic_log: Log, horizon: Position) -> AsyncIterator[Sequence[LogEntry]]:
    """Yield the compacted entries, then the log after them up to the horizon, a piece at a time."""
    compacted = topic_log.compacted
    start = EARLIEST
    current = compacted.current
    if current is not None:
        while part := await compacted.read(start, entries_max=_ENTRIES_MAX, bytes_max=_BYTES_MAX):
            yield part
            start = _behind(part[-1].position)
        start = _behind(current.horizon)
    while start <= horizon:
        part = await topic_log.read(start, entries_max=_ENTRIES_MAX, bytes_max=_BYTES_MAX)
        part = [entry for entry in part if entry.position <= horizon]
        if not part:
            return
        yield part
        start = _behind(part[-1].position)


def _check_same(before: int, now: int) -> None:
    """Verify that messages have the same numbers in every pass. Raises PersistenceError."""
    if before != now:
        raise PersistenceError(f"Entries were trimmed during compaction: was the cursor {COMPACTION_CURSOR} moved?")


def _size_of(entries: Sequence[LogEntry]) -> int:
    return sum(len(entry.entry) for entry in entries)


def _behind(position: Position) -> Position:
    return Position(position.ledger, position.entry + 1)

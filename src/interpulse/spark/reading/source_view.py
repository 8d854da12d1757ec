"""The source cluster over the binary protocol, for the driver's planner. It never creates a topic.

One consumer per topic-partition stays open (``source_cursor.py``). With few topics, all are asked at every poll. With
many, idle ones are asked less and less (``PollPace``), until the broker reports new messages by itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import OperationTimeout, PulsarError, TopicNotFound
from interpulse.model.ids import LATEST, Position
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX
from interpulse.spark.options.connection_options import admin_client
from interpulse.spark.processes.process_client import process_portal, session_for
from interpulse.spark.reading.broker_searches import ledger_is_there, ledger_tables, positions_before
from interpulse.spark.reading.planner import Beginning, Following, HeldBack, TopicEnd, WrittenBatch
from interpulse.spark.reading.read_options import SUBSCRIPTION, ReadOptions
from interpulse.spark.reading.source_cursor import PollPace, SourceCursor
from interpulse.spark.reading.splitting import Ledger
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.reading.topic_selection import CONCURRENT_MAX, selected_topics
from interpulse.spark.state_files import HELD_FILE, LAST_COMMIT_FILE, HeldRange, load_held, load_summaries

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 2.0
_MANY: Final = 200
"""Number of topic-partitions from which idle ones are not asked at every poll."""
_SETTLING_MAX: Final = 16
"""Topic-partitions that are put to rest at the same time, while growing ones are asked beside them."""
_TOLD_MAX: Final = 10


class BrokerSourceView:
    """Source cluster as brokers show it. See :class:`interpulse.spark.reading.planner.SourceView`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cursors: dict[str, SourceCursor] = {}
        self._held: frozenset[str] = frozenset()
        self._file_seen: tuple[int, int] | None = None
        self._file_topics: tuple[str, ...] = ()
        self._first_ends_asked = False
        self._asking: dict[str, asyncio.Task[TopicEnd]] = {}
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._paces: dict[str, PollPace] = {}
        self._slots = asyncio.Semaphore(CONCURRENT_MAX)
        self._settling_slots = asyncio.Semaphore(_SETTLING_MAX)
        self._known: dict[str, TopicEnd] = {}
        self._known_of: Sequence[str] = ()
        self._unanswered: dict[str, str] = {}
        self._held_seen: tuple[int, int] | None = None
        self._held_ranges: dict[str, HeldRange] = {}
        self._rates: dict[str, Rate] = {}
        self._written_seen: tuple[int, int] | None = None
        self._written: WrittenBatch | None = None
        self._awaited: Sequence[str] = []

    # ---- Which topics

    def discover(self) -> tuple[str, ...]:
        if self._options.topics_file is not None:
            return self._listed(Path(self._options.topics_file))
        return process_portal().call(self._discover)

    def _listed(self, path: Path) -> tuple[str, ...]:
        """Return the topics of the job's list. Held topics stay selected with their positions, but are not asked."""
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return ()
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._file_seen:
            body = json.loads(path.read_text(encoding="utf-8"))
            self._held = frozenset(body["held"])
            self._file_topics = (*body["topics"], *body["held"])
            self._rates = {topic: Rate(*rate) for topic, rate in body.get("rates", {}).items()}
            self._file_seen = seen
        return self._file_topics

    async def _discover(self) -> tuple[str, ...]:
        session = await self._session()
        bases = await selected_topics(session, self._options)
        slots = asyncio.Semaphore(CONCURRENT_MAX)

        async def names(topic: TopicName) -> list[str]:
            if topic.is_partition and not self._options.awaits_topics:
                return [str(topic)]
            try:
                async with slots:
                    count = await session.lookup.partitions(topic, create=False)
            except TopicNotFound:
                if not self._options.awaits_topics:
                    raise
                return []
            return [str(topic.partition(index)) for index in range(count)] if count else [str(topic)]

        answers = await asyncio.gather(*(names(topic) for topic in bases))
        self._tell_awaited([str(topic) for topic, group in zip(bases, answers, strict=True) if not group])
        return tuple(sorted({name for group in answers for name in group}))

    def _tell_awaited(self, awaited: Sequence[str]) -> None:
        """Log topics that do not exist yet once, not at every discovery."""
        if awaited != self._awaited:
            log.warning("topics do not exist yet topics=%s", ", ".join(awaited) or "none any more")
        self._awaited = awaited

    # ---- Where they end

    def ends(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        names = [name for name in topics if name not in self._held]
        return process_portal().call(lambda: self._ends(names))

    async def _ends(self, names: Sequence[str]) -> dict[str, TopicEnd]:
        session = await self._session()
        selected = set(names)
        for gone in [name for name in self._cursors if name not in selected]:
            await self._forget(gone)
        # A subscription made at the start begins where the stream does; one of a topic found later at its first entry.
        options = self._options
        starts_late = options.starting_offsets in (None, LATEST) and options.starting_time is None
        earliest = self._first_ends_asked or not starts_late
        for name in names:
            if name not in self._cursors:
                self._cursors[name] = SourceCursor(session, TopicName.parse(name), self._options, earliest=earliest)
                self._paces[name] = PollPace(options.offset_poll_interval_ms / 1000)
        now = time.monotonic()
        due = [name for name in names if self._paces[name].is_due(now)] if len(names) >= _MANY else names
        if due or names != self._known_of:
            ends, failures = await self._asked(due)
            # Where to begin must be known of every topic, unless its subscription will say so whenever it can be asked.
            needed = not self._first_ends_asked and self._options.starting_offsets != SUBSCRIPTION
            if failures and (needed or len(failures) == len(names)):
                raise next(iter(failures.values()))
            self._first_ends_asked = True
            asked = set(due)
            rested = {name: end for name, end in self._known.items() if name in selected and name not in asked}
            self._known, self._known_of = rested | ends, names
        return self._known

    async def _forget(self, name: str) -> None:
        await self._cursors.pop(name).close()
        del self._paces[name]
        for started in (self._asking, self._settling):
            task = started.pop(name, None)
            if task is not None:
                task.cancel()

    async def _asked(self, names: Sequence[str]) -> tuple[dict[str, TopicEnd], dict[str, PulsarError]]:
        """Return the ends of topics, and the errors of those without an answer, which keep their positions.

        A topic that does not answer for a moment is asked in the background, so that the others do not wait for it.
        """
        started = {name: asyncio.create_task(self._end_of(name)) for name in names if name not in self._asking}
        self._asking |= started
        if started:
            patience = _PATIENCE_S * (1 + len(started) / CONCURRENT_MAX)
            await asyncio.wait(started.values(), timeout=patience if self._first_ends_asked else None)
        ends: dict[str, TopicEnd] = {}
        failures: dict[str, PulsarError] = {}
        for name in names:
            try:
                ends[name] = self._answer(name)
            except TopicNotFound:
                log.info("topic no longer exists topic=%s", name)
            except PulsarError as error:
                failures[name] = error
        self._tell(failures)
        return ends, failures

    async def _end_of(self, name: str) -> TopicEnd:
        async with self._slots:
            return await self._cursors[name].end()

    def _answer(self, name: str) -> TopicEnd:
        if not self._asking[name].done():
            raise OperationTimeout("the source gives no answer")
        end = self._asking.pop(name).result()
        pace = self._paces[name]
        if pace.note(end, time.monotonic()) and len(self._cursors) >= _MANY:
            pace.settle()
            self._settling[name] = asyncio.create_task(self._settle(name, pace, end))
        return end

    async def _settle(self, name: str, pace: PollPace, end: TopicEnd) -> None:
        """Let the broker report new messages from now on. One more question catches what arrived until then."""
        try:
            async with self._settling_slots:
                cursor = self._cursors[name]
                rests = await cursor.rest(pace.ring) and await cursor.end() == end
        except PulsarError:
            rests = False
        finally:
            self._settling.pop(name, None)
        if rests:
            pace.rest(time.monotonic())
        else:
            pace.ring()

    def _tell(self, failures: Mapping[str, PulsarError]) -> None:
        """Log errors once, not at every poll; of many only their number."""
        reasons = {name: str(error) for name, error in failures.items()}
        news = {name: reason for name, reason in reasons.items() if self._unanswered.get(name) != reason}
        for name, reason in list(news.items())[:_TOLD_MAX]:
            log.warning("topic does not answer, its position stays topic=%s error=%s", name, reason)
        if len(news) > _TOLD_MAX:
            log.warning("more topics do not answer, their positions stay topics=%d", len(news) - _TOLD_MAX)
        self._unanswered = reasons

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        options = self._options
        if options.admin_url is None or options.planner == "binary":
            return {}
        try:
            return process_portal().call(lambda: self._ledgers(str(options.admin_url), topics))
        except PulsarError as error:
            if options.planner == "admin":
                raise
            log.warning("the admin API does not tell how large topics are, planner=binary error=%s", error)
            return {}

    async def _ledgers(self, url: str, topics: Sequence[str]) -> dict[str, list[Ledger]]:
        options = self._options
        async with admin_client(url, options.access, options.admin_access, options.operation_timeout_ms) as admin:
            return await ledger_tables(admin, topics)

    def before(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        return process_portal().call(lambda: self._before(times))

    async def _before(self, times: Mapping[str, int]) -> dict[str, Position]:
        options = self._options
        return await positions_before(
            await self._session(), times, prefix=options.subscription_prefix, read_compacted=options.read_compacted
        )

    def following(self, topic: str, after: Position, upto: Position) -> Following | None:
        return process_portal().call(lambda: self._following(topic, after, upto))

    def beginnings(self, pending: Mapping[str, tuple[Position, Position]]) -> Mapping[str, Beginning]:
        return process_portal().call(lambda: self._beginnings(pending))

    async def _beginnings(self, pending: Mapping[str, tuple[Position, Position]]) -> dict[str, Beginning]:
        async def ask(topic: str, after: Position, upto: Position) -> Beginning | None:
            async with self._slots:
                try:
                    following, intact = await self._entry_after(topic, after, upto)
                    first = None if following is None else following.position
                    if not intact and (first is None or first.ledger > after.ledger):
                        intact = await self._ledger_is_there(topic, after.ledger, first or upto)
                except TopicNotFound:
                    return None
            return Beginning(first, intact or (first is not None and first.ledger == after.ledger))

        answers = await asyncio.gather(*(ask(topic, after, upto) for topic, (after, upto) in pending.items()))
        return {topic: item for topic, item in zip(pending, answers, strict=True) if item is not None}

    async def _following(self, topic: str, after: Position, upto: Position) -> Following | None:
        return (await self._entry_after(topic, after, upto))[0]

    async def _entry_after(self, topic: str, after: Position, upto: Position) -> tuple[Following | None, bool]:
        """Return the entry after ``after``, and True if the entry at ``after`` exists."""
        session = await self._session()
        reader = EntryReader(
            session,
            TopicName.parse(topic),
            after=after,
            upto=upto,
            buffer_bytes=64 * 1024,
            subscription_prefix=self._options.subscription_prefix,
            poll_timeout_ms=self._options.operation_timeout_ms,
            read_compacted=self._options.read_compacted,
        )
        async with reader:
            await reader.open()
            batch = await reader.read_batch()
            if not batch:
                return None, reader.start_is_there
            return Following(batch[0].position, len(batch[0].raw), reader.start_is_there), reader.start_is_there

    async def _ledger_is_there(self, topic: str, ledger: int, upto: Position) -> bool:
        """Return True if the ledger exists.

        Positions of earlier releases may lie beyond its end, where no entry proves it.
        """
        return await ledger_is_there(
            await self._session(), TopicName.parse(topic), ledger, upto=upto, prefix=self._options.subscription_prefix
        )

    def ledgers_there(self, ledgers: Mapping[str, int]) -> Collection[str]:
        return process_portal().call(lambda: self._ledgers_there(ledgers))

    async def _ledgers_there(self, ledgers: Mapping[str, int]) -> set[str]:
        async def ask(topic: str, ledger: int) -> bool:
            async with self._slots:
                try:
                    return await self._ledger_is_there(topic, ledger, Position(ledger, LONG_MAX))
                except TopicNotFound:
                    return False

        answers = await asyncio.gather(*(ask(topic, ledger) for topic, ledger in ledgers.items()))
        return {topic for topic, is_there in zip(ledgers, answers, strict=True) if is_there}

    def held(self) -> Mapping[str, HeldBack]:
        """Return the topics that the job's sink holds, from the file beside the list of topics."""
        if self._options.topics_file is None:
            return {}
        path = Path(self._options.topics_file).with_name(HELD_FILE)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return {}
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._held_seen:
            self._held_ranges, self._held_seen = load_held(path), seen
        now = now_ms()
        return {
            topic: HeldBack(item.after, item.attempts, item.retry_at_ms <= now)
            for topic, item in self._held_ranges.items()
        }

    # ---- How fast they may be copied

    def rates(self) -> Mapping[str, Rate]:
        return self._rates

    def written(self) -> WrittenBatch | None:
        """Return what the job's sink wrote last, from the file beside the list of topics.

        It is read only if there are rates.
        """
        if not self._rates or self._options.topics_file is None:
            return None
        path = Path(self._options.topics_file).with_name(LAST_COMMIT_FILE)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return None
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._written_seen:
            newest = load_summaries(path)
            topics = {name: (entries, size) for name, (entries, _, size) in newest.get("topics", {}).items()}
            self._written = WrittenBatch(int(newest["batchId"]), topics) if newest else None
            self._written_seen = seen
        return self._written

    # ---- The durable subscription

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        process_portal().call(lambda: self._acknowledge(positions))

    async def _acknowledge(self, positions: Mapping[str, Position]) -> None:
        for name, position in positions.items():
            cursor = self._cursors.get(name)
            if cursor is not None:
                cursor.acknowledge(position)

    def close(self) -> None:
        process_portal().call(self._close)

    async def _close(self) -> None:
        cursors, self._cursors = self._cursors, {}
        for started in (self._asking, self._settling):
            for task in started.values():
                task.cancel()
        self._asking, self._settling, self._paces = {}, {}, {}
        await asyncio.gather(*(cursor.close() for cursor in cursors.values()))

    async def _session(self) -> Session:
        return await session_for(self._options.service_url, self._options.operation_timeout_ms, self._options.access)

"""The source cluster over the binary protocol, for the driver's planner. It never creates a topic.

The planner's questions block, while their coroutines (``.._in_loop``) run in the portal's event loop.

One consumer per topic-partition stays open (``source_cursor.py``). With few topics, streams of users ask all of them at
every poll. With many, and in the replication job, idle ones rest (``PollPace``), and the broker reports new messages.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import OperationTimeout, PulsarError, TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.model.numbers import LONG_MAX
from interpulse.spark.options.connection_options import admin_client
from interpulse.spark.processes.process_client import in_portal, session_for
from interpulse.spark.reading.planner import (
    MANY_TOPICS,
    Beginning,
    Following,
    HeldBack,
    Ledger,
    TopicEnd,
    WrittenBatch,
)
from interpulse.spark.reading.read_options import SUBSCRIPTION, ReadOptions
from interpulse.spark.reading.source_cursor import STRETCH_MAX, PollPace, SourceCursor
from interpulse.spark.reading.source_searches import (
    CONCURRENT_MAX,
    entry_after,
    ledger_is_there,
    ledger_tables,
    positions_before,
    selected_topics,
)
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import LOCAL_DISK, StateDisk
from interpulse.spark.state_files import HELD_FILE, LAST_COMMIT_FILE, NO_BATCH, LaneFiles, load_held, load_summaries

log = logging.getLogger(__name__)

Content = TypeVar("Content")

_PATIENCE_S: Final = 2.0
_SETTLING_MAX: Final = 16
"""Topic-partitions that are put to rest at the same time, while growing ones are asked beside them."""
_LOGGED_MAX: Final = 10
_ACKNOWLEDGE_SECONDS: Final = 1.0


class _Listed(NamedTuple):
    """The list of topics of the replication job."""

    topics: Sequence[str]
    held: frozenset[str]
    rates: Mapping[str, Rate]


_NOTHING_LISTED: Final = _Listed((), frozenset(), {})


def _listed(path: Path, disk: StateDisk) -> _Listed:
    text = disk.read(path)
    if text is None:
        return _NOTHING_LISTED
    body = json.loads(text)
    rates = {topic: Rate(*rate) for topic, rate in body.get("rates", {}).items()}
    return _Listed(body["topics"], frozenset(body["held"]), rates)


def _written(path: Path, disk: StateDisk) -> WrittenBatch | None:
    newest = load_summaries(path, disk)
    topics = {name: (entries, size) for name, (entries, _, size) in newest.get("topics", {}).items()}
    return WrittenBatch(int(newest["batchId"]), topics) if newest else None


class _WatchedFile(Generic[Content]):
    """A file that is read again when it changes."""

    def __init__(self, path: Path, load: Callable[[Path, StateDisk], Content], disk: StateDisk) -> None:
        """Watch a file. ``load`` returns its content, or what counts as that if there is no file."""
        self._path = path
        self._load = load
        self._disk = disk
        self._version = disk.version(path)  # before the content, so that a change in between shows
        self._value = load(path, disk)

    def value(self) -> Content:
        version = self._disk.version(self._path)
        if version != self._version:
            self._value, self._version = self._load(self._path, self._disk), version
        return self._value


class BrokerSourceView:
    """Source cluster as brokers show it. See :class:`interpulse.spark.reading.planner.SourceView`."""

    def __init__(self, options: ReadOptions, disk: StateDisk = LOCAL_DISK) -> None:
        """``disk`` holds the files of the replication job."""
        self._options = options
        self._cursors: dict[str, SourceCursor] = {}
        self._first_ends_asked = False
        self._asking: dict[str, asyncio.Task[TopicEnd]] = {}
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._paces: dict[str, PollPace] = {}
        self._news = asyncio.Event()
        self._slots = asyncio.Semaphore(CONCURRENT_MAX)
        self._settling_slots = asyncio.Semaphore(_SETTLING_MAX)
        self._known: dict[str, TopicEnd] = {}
        self._known_of: Sequence[str] = ()
        self._unanswered: dict[str, str] = {}
        self._awaited: Sequence[str] = []
        self._listed = _NOTHING_LISTED
        self._copied: Mapping[str, Position] = {}
        self._followed: Collection[str] | None = None
        """Topic-partitions that tasks go on copying, until news of another ends that."""
        self._acknowledging: asyncio.Task[None] | None = None
        if options.topics_file is not None:
            path = Path(options.topics_file)
            self._listed_file = _WatchedFile(path, _listed, disk)
            self._held_file = _WatchedFile(path.with_name(HELD_FILE), load_held, disk)
            self._written_file = _WatchedFile(path.with_name(LAST_COMMIT_FILE), _written, disk)
            self._lane_files = LaneFiles(str(path.parent), disk)
            self._newest_batch = NO_BATCH

    # ---- Which topics

    def discover(self) -> tuple[str, ...]:
        """Return the selected topics. Held topics stay selected with their positions, but are not asked."""
        if self._options.topics_file is None:
            return self._discovered()
        self._listed = self._listed_file.value()
        return (*self._listed.topics, *self._listed.held)

    async def discover_in_loop(self) -> tuple[str, ...]:
        """Return the topics that the options select, where no file lists them."""
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
        awaited = [str(topic) for topic, group in zip(bases, answers, strict=True) if not group]
        if awaited != self._awaited:  # logged once, not at every discovery
            log.warning("topics do not exist yet topics=%s", ", ".join(awaited) or "none any more")
        self._awaited = awaited
        return tuple(sorted({name for group in answers for name in group}))

    _discovered = in_portal(discover_in_loop)

    # ---- Where they end

    async def ends_in_loop(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        names = [name for name in topics if name not in self._listed.held]
        session = await self._session()
        if self._options.topics_file is not None and self._acknowledging is None:
            self._acknowledging = asyncio.create_task(self._acknowledge_copies())
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
        due = [name for name in names if self._is_due(name, now)] if self._may_rest(names) else names
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

    ends = in_portal(ends_in_loop)

    def _is_due(self, name: str, now: float) -> bool:
        """Return True if a topic-partition is to be asked, also because tasks have copied more than is known of it."""
        if self._paces[name].due_at <= now:
            return True
        return name in self._known and name in self._copied and self._known[name].newest < self._copied[name]

    def _may_rest(self, topics: Collection[str]) -> bool:
        """Return True if idle topics may rest, at the cost of a second consumer each."""
        return len(topics) >= MANY_TOPICS or self._options.topics_file is not None

    async def await_news_in_loop(self, shortest: float, longest: float) -> bool:
        now = time.monotonic()
        due_at = min((pace.due_at for pace in self._paces.values()), default=now)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(shortest, min(longest, due_at - now))):
                await self._news.wait()
        has_news = self._news.is_set()
        self._news.clear()
        return has_news

    await_news = in_portal(await_news_in_loop)

    def _ring(self, name: str, pace: PollPace) -> None:
        pace.ring()
        self._news.set()
        if self._followed is not None and name not in self._followed:
            self._followed = None
            self._lane_files.end_run_ahead(now_ms())

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

        async def end_of(name: str) -> TopicEnd:
            async with self._slots:
                return await self._cursors[name].end()

        started = {name: asyncio.create_task(end_of(name)) for name in names if name not in self._asking}
        self._asking |= started
        if started:
            patience = _PATIENCE_S * (1 + len(started) / CONCURRENT_MAX)
            await asyncio.wait(started.values(), timeout=patience if self._first_ends_asked else None)
        ends: dict[str, TopicEnd] = {}
        failures: dict[str, PulsarError] = {}
        for name in names:
            try:
                if name not in started:
                    self._drop_old_answer(name)
                ends[name] = self._answer(name)
            except TopicNotFound:
                log.info("topic no longer exists topic=%s", name)
            except PulsarError as error:
                failures[name] = error
        self._log_failures(failures)
        return ends, failures

    def _drop_old_answer(self, name: str) -> None:
        """Raise OperationTimeout for an answer to an earlier question if tasks have copied more since.

        The source has not gone backwards: the next question shows it.
        """
        asking = self._asking[name]
        if asking.done() and asking.exception() is None and asking.result().newest < self._copied.get(name, EARLIEST):
            del self._asking[name]
            raise OperationTimeout("its answer is older than what was copied since")

    def _answer(self, name: str) -> TopicEnd:
        if not self._asking[name].done():
            raise OperationTimeout("the source gives no answer")
        end = self._asking.pop(name).result()
        pace = self._paces[name]
        stretch_max = STRETCH_MAX if len(self._cursors) >= MANY_TOPICS else 1
        calm = pace.note(end, time.monotonic(), stretch_max=stretch_max)
        # The broker does not report that an operator moves the subscription past entries.
        if calm and not end.is_unread and self._may_rest(self._cursors):
            pace.settle()
            self._settling[name] = asyncio.create_task(self._settle(name, pace, end))
        return end

    async def _settle(self, name: str, pace: PollPace, end: TopicEnd) -> None:
        """Let the broker report new messages from now on. One more question catches what arrived until then."""
        try:
            async with self._settling_slots:
                cursor = self._cursors[name]
                rests = await cursor.rest(partial(self._ring, name, pace)) and await cursor.end() == end
        except PulsarError:
            rests = False
        finally:
            self._settling.pop(name, None)
        if rests:
            pace.rest(time.monotonic())
        else:
            self._ring(name, pace)

    def _log_failures(self, failures: Mapping[str, PulsarError]) -> None:
        """Log errors once, not at every poll; of many only their number."""
        reasons = {name: str(error) for name, error in failures.items()}
        news = {name: reason for name, reason in reasons.items() if self._unanswered.get(name) != reason}
        for name, reason in list(news.items())[:_LOGGED_MAX]:
            log.warning("topic does not answer, its position stays topic=%s error=%s", name, reason)
        if len(news) > _LOGGED_MAX:
            log.warning("more topics do not answer, their positions stay topics=%d", len(news) - _LOGGED_MAX)
        self._unanswered = reasons

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        options = self._options
        if options.admin_url is None or options.planner == "binary":
            return {}
        try:
            return self._ledgers(options.admin_url, topics)
        except PulsarError as error:
            if options.planner == "admin":
                raise
            log.warning("the admin API does not tell how large topics are, planner=binary error=%s", error)
            return {}

    @in_portal
    async def _ledgers(self, url: str, topics: Sequence[str]) -> dict[str, list[Ledger]]:
        options = self._options
        async with admin_client(url, options.access, options.admin_access, options.operation_timeout_ms) as admin:
            return await ledger_tables(admin, topics)

    async def before_in_loop(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        return await positions_before(await self._session(), self._options, times)

    before = in_portal(before_in_loop)

    async def following_in_loop(self, topic: str, after: Position, upto: Position) -> Following | None:
        return (await entry_after(await self._session(), self._options, topic, after, upto))[0]

    following = in_portal(following_in_loop)

    async def beginnings_in_loop(self, pending: Mapping[str, tuple[Position, Position]]) -> Mapping[str, Beginning]:
        session = await self._session()

        async def ask(topic: str, after: Position, upto: Position) -> Beginning | None:
            async with self._slots:
                try:
                    following, intact = await entry_after(session, self._options, topic, after, upto)
                    first = None if following is None else following.position
                    if not intact and (first is None or first.ledger > after.ledger):
                        intact = await ledger_is_there(session, self._options, topic, after.ledger, first or upto)
                except TopicNotFound:
                    return None
            return Beginning(first, intact or (first is not None and first.ledger == after.ledger))

        answers = await asyncio.gather(*(ask(topic, after, upto) for topic, (after, upto) in pending.items()))
        return {topic: item for topic, item in zip(pending, answers, strict=True) if item is not None}

    beginnings = in_portal(beginnings_in_loop)

    async def ledgers_there_in_loop(self, ledgers: Mapping[str, int]) -> Collection[str]:
        session = await self._session()

        async def ask(topic: str, ledger: int) -> bool:
            async with self._slots:
                try:
                    return await ledger_is_there(session, self._options, topic, ledger, Position(ledger, LONG_MAX))
                except TopicNotFound:
                    return False

        answers = await asyncio.gather(*(ask(topic, ledger) for topic, ledger in ledgers.items()))
        return {topic for topic, is_there in zip(ledgers, answers, strict=True) if is_there}

    ledgers_there = in_portal(ledgers_there_in_loop)

    # ---- Files of the job beside the list of topics

    def held(self) -> Mapping[str, HeldBack]:
        if self._options.topics_file is None:
            return {}
        now = now_ms()
        return {
            topic: HeldBack(item.after, item.attempts, item.retry_at_ms <= now)
            for topic, item in self._held_file.value().items()
        }

    def copied(self) -> Mapping[str, Position]:
        if self._options.topics_file is not None:
            newest = self._lane_files.newest_batch()
            if newest != self._newest_batch:
                self._newest_batch, self._copied = newest, self._lane_files.copied()
        return self._copied

    def activity(self) -> Mapping[str, bool]:
        listed = set(self._listed.topics)
        return {name: not pace.is_settled for name, pace in self._paces.items() if name in listed}

    def note_followed(self, topics: Collection[str]) -> None:
        self._followed = topics

    def rates(self) -> Mapping[str, Rate]:
        return self._listed.rates

    def written(self) -> WrittenBatch | None:
        return self._written_file.value() if self._listed.rates else None

    # ---- The durable subscription

    async def acknowledge_in_loop(self, positions: Mapping[str, Position]) -> None:
        for name, position in positions.items():
            cursor = self._cursors.get(name)
            if cursor is not None:
                cursor.acknowledge(position)

    acknowledge = in_portal(acknowledge_in_loop)

    async def _acknowledge_copies(self) -> None:
        """Let the subscription follow what the batch in progress has copied, since batches may be long."""
        while True:
            await asyncio.sleep(_ACKNOWLEDGE_SECONDS)
            try:
                positions = self._lane_files.live_positions()
            except OSError as error:
                log.warning("what is copied cannot be read, the subscription follows later error=%s", error)
                continue
            await self.acknowledge_in_loop(positions)

    async def close_in_loop(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.cancel()
        cursors, self._cursors = self._cursors, {}
        for started in (self._asking, self._settling):
            for task in started.values():
                task.cancel()
        self._asking, self._settling, self._paces = {}, {}, {}
        await asyncio.gather(*(cursor.close() for cursor in cursors.values()))

    close = in_portal(close_in_loop)

    async def _session(self) -> Session:
        return await session_for(self._options.service_url, self._options.operation_timeout_ms, self._options.access)

"""Plan of a stream, made on the driver: initial positions, the end of each batch, ranges, lag.

No sockets and no clock: the source cluster is asked through :class:`SourceView`, and times are arguments. Spark calls
``latestOffset`` about a hundred times a second while a stream is idle; brokers are asked once per poll interval.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from interpulse.client.outages import Outages, remedy_for
from interpulse.model.errors import DataLoss, PulsarError, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.spark.offsets import (
    StreamOffset,
    check_not_late,
    check_points_named,
    entries_between,
    last_in_ledger,
    plan_end,
    point_of,
    share_limit,
    times_of,
)
from interpulse.spark.reading.losses import EndsSeen, deleted_topic_loss, trimmed_ledger_loss
from interpulse.spark.reading.read_options import SUBSCRIPTION, ReadOptions
from interpulse.spark.reading.throttle import Rate, Throttle

log = logging.getLogger(__name__)

_REMEDY = "start the cluster, or see to its address and the network; the stream goes on by itself"
MANY_TOPICS: Final = 200
"""Number of topic-partitions from which idle ones are not asked at every poll."""
_NEWS_WAIT_S = 0.5
"""Longest wait of an idle replication job, which sees changes of its topics and holds then, and can be stopped."""


class TopicEnd(NamedTuple):
    """End of a topic-partition: the last entry for readers, and the position its durable subscription has acknowledged.

    ``log_end`` is the last position of the log, read, trimmed or compacted, if ``last`` is not it.
    """

    last: Position
    acknowledged: Position | None = None
    log_end: Position | None = None

    @property
    def newest(self) -> Position:
        """Highest position of the topic-partition that the broker reports."""
        return max(self.last, self.log_end or EARLIEST)

    @property
    def is_unread(self) -> bool:
        """True if the durable subscription has not acknowledged the last entry."""
        return self.acknowledged is not None and self.last.entry >= 0 and self.acknowledged < self.last


class Following(NamedTuple):
    """The entry after a position, and its size.

    ``adjacent`` is True if the entry at the position exists, so that none was trimmed between them.
    """

    position: Position
    size: int
    adjacent: bool = False


class Beginning(NamedTuple):
    """The first existing entry of a range, if any. ``intact`` is True if nothing before it was trimmed."""

    first: Position | None
    intact: bool


class Ledger(NamedTuple):
    """One ledger of a topic-partition, as the admin API describes it."""

    id: int
    entries: int
    bytes: int


class HeldBack(NamedTuple):
    """A held topic-partition: nothing behind ``after`` was written. ``is_due`` is True when it is time to try again."""

    after: Position
    attempts: int
    is_due: bool


class WrittenBatch(NamedTuple):
    """Entries and bytes of the batch that the sink wrote last, by topic-partition."""

    batch: int
    topics: Mapping[str, tuple[int, int]]


class SourceView(Protocol):
    """The source cluster as the driver sees it. Calls block, and raise classes of ``model.errors``."""

    def discover(self) -> Iterable[str]:
        """Return the complete names of the topic-partitions that are selected now."""

    def ends(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        """Return their last entries, without topics that are gone.

        The identical mapping means that there is no news.
        """

    def await_news(self, shortest: float, longest: float) -> bool:
        """Wait until a topic-partition that rests has news, or until another one is to be asked. Return True for news.

        Without news the wait takes between ``shortest`` and ``longest`` seconds.
        """

    def before(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        """Return the positions before the first messages published at or after a time, where there is one."""

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        """Return their ledgers, where the cluster reports them."""

    def following(self, topic: str, after: Position, upto: Position) -> Following | None:
        """Return the first entry of ``(after, upto]``, or None if there is none."""

    def beginnings(self, pending: Mapping[str, tuple[Position, Position]]) -> Mapping[str, Beginning]:
        """Return the beginnings of the ranges ``(after, upto]`` by topic-partition, without topics that are gone."""

    def ledgers_there(self, ledgers: Mapping[str, int]) -> Collection[str]:
        """Return the topic-partitions whose entries of this ledger can still be read."""

    def held(self) -> Mapping[str, HeldBack]:
        """Return the topic-partitions that the sink holds and wants to have again."""

    def copied(self) -> Mapping[str, Position]:
        """Return the positions that the sink has reached, where tasks may copy more than their ranges.

        The identical mapping means that no batch was committed since.
        """

    def activity(self) -> Mapping[str, bool]:
        """Return the topic-partitions that are read now: False for those that rest, whose news the source reports."""

    def note_followed(self, topics: Collection[str]) -> None:
        """Take the topic-partitions that the tasks of a batch go on copying. News of another ends that."""

    def rates(self) -> Mapping[str, Rate]:
        """Return the copy rates of topic-partitions that have a limit, as of the last discovery."""

    def written(self) -> WrittenBatch | None:
        """Return what the newest committed batch wrote, if the sink reports it."""

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Advance the durable subscription, if the options name one."""

    def close(self) -> None: ...


class StreamPlanner:
    """Driver side of one stream. One instance lives as long as the query."""

    def __init__(self, options: ReadOptions, view: SourceView) -> None:
        self._options = options
        self._view = view
        self._copied = view.copied()
        self._behind: set[str] = set()
        self._topics: tuple[str, ...] | None = None
        self._deleted: set[str] = set()  # of a pattern, until it is judged what was not read of them
        self._ends: Mapping[str, TopicEnd] = {}
        self._idle_ends: Mapping[str, TopicEnd] | None = None
        self._polled_at = self._discovered_at = self._acknowledged_at = float("-inf")
        self._target: dict[str, TopicEnd] | None = None
        self._done: Mapping[str, Position] = {}
        self._seen: dict[str, EndsSeen] = {}
        self._sizes: dict[str, int] = {}
        self._followings: dict[str, dict[Position, Following]] = {}
        self._left_out: dict[str, bool] = {}
        self._losses_reported: dict[str, Position] = {}
        self._judged_empty: dict[str, Position] = {}
        self._turn = 0
        self._outages = Outages(
            "source", timeout_ms=options.outage_timeout_ms, rereads_credentials=options.access.rereads_credentials
        )
        self._healed: dict[str, Any] = {"count": 0, "ms": 0}
        self._throttle = Throttle()
        self._throttled: frozenset[str] = frozenset()
        self._charged: int | None = None
        self._passed_upto: dict[str, Position] = {}
        self._passed: Counter[str] = Counter()
        """Entries by topic-partition that were not read because the subscription was moved past them."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Average bytes of an entry by topic, where known."""
        return self._sizes

    def initial_offset(self, now: float) -> StreamOffset:
        """Return concrete positions for every selected partition.

        Spark does not store them, so an anchor batch follows.
        """
        self._refresh(now, forced=True)
        start = self._options.starting_offsets
        positions = {topic: self._start_of(topic, end, start) for topic, end in self._ends.items()}
        if isinstance(start, dict):
            check_points_named(start, positions)
        times = times_of(self._options.starting_time, positions)
        if times:
            begins = self._view.before(times)
            check_not_late(times, begins, self._options.late_start or "latest")
            positions |= begins
        return StreamOffset(positions, self._options.max_partitions, initial=True)

    def _start_of(self, topic: str, end: TopicEnd, start: str | Position | dict[str, Position] | None) -> Position:
        point = point_of(start, topic) if isinstance(start, dict) else start
        if point == SUBSCRIPTION:
            return end.acknowledged if end.acknowledged is not None else EARLIEST
        if point is None or point == LATEST:
            return end.last
        assert isinstance(point, Position), point
        return point

    def fix_target(self, now: float) -> None:
        """Read nothing newer than the present ends from now on (Trigger.AvailableNow)."""
        self._refresh(now, forced=True)
        self._target = dict(self._ends)

    def latest_offset(
        self, start: StreamOffset, now: float, *, entries_max: int | None = None, bytes_max: int | None = None
    ) -> StreamOffset:
        """Return the end of the next batch. It equals ``start`` if there is nothing to do."""
        if start.initial:
            return start.anchored()
        self._idle_ends = None
        self._charge()
        held, copied = self._view.held(), self._view.copied()
        if copied is not self._copied:
            self._copied, self._polled_at = copied, float("-inf")  # the last ends may be older than what was copied
        done = _further(start.positions, copied)
        self._done = _written_up_to(done, held)
        self._refresh(now)
        self._check_deleted(done)
        ends = self._target if self._target is not None else self._ends
        self._throttle.set_rates(self._view.rates(), now)
        room = self._throttle.room(now)
        self._throttled = frozenset(topic for topic, count in room.items() if count == 0)
        ends = {
            topic: end
            for topic, end in ends.items()
            if (topic not in held or held[topic].is_due) and room.get(topic) != 0
        }
        outdated = self._outdated(ends, done, start.positions, now)
        for topic in outdated:
            del ends[topic]
        begins = {topic: self._begin_of(topic, end) for topic, end in ends.items() if topic not in start.positions}
        moved = self._moved_on(done, ends)
        ahead = {topic: done[topic] for topic in ends if done.get(topic) != start.positions.get(topic)}
        begins |= ahead | moved
        again = {topic: item for topic, item in held.items() if topic in ends}
        # We never acknowledge behind the position of a hold: a cursor that stands there was moved by an operator.
        marks = {topic: max(item.after, ends[topic].acknowledged or EARLIEST) for topic, item in again.items()}
        self._note_passed({topic: item.after for topic, item in again.items()}, marks)
        begins |= marks
        after = {topic: begins.get(topic, start.positions.get(topic, EARLIEST)) for topic in ends}
        read = {topic: after[topic] for topic in ends if topic in done and topic not in moved and topic not in again}
        self._check_backwards(read, ends)
        self._advance_cursor({topic: position for topic, position in done.items() if topic not in outdated}, now)
        last = {topic: max(after[topic], end.last) for topic, end in ends.items()}  # a cut stays where nothing came
        try:
            self._check_emptied(read, ends)
            if self._waits_for_more(after, last, now):
                return start
            positions = self._limited(after, last, room, entries_max, bytes_max)
            firsts = self._firsts(read, positions)
        except PulsarError as error:
            if self._target is not None:
                raise  # with Trigger.AvailableNow, nothing to do is the end
            self._wait_out(error, now)
            return start
        is_news = positions != {topic: done[topic] for topic in start.positions if topic in ends}
        positions |= self._kept(start, ends)
        begins = {topic: position for topic, position in begins.items() if position != EARLIEST or topic in again}
        if not (is_news or again) and positions.keys() == start.positions.keys():
            self._idle_ends = self._ends
            return start
        attempt = sum(item.attempts for item in again.values())
        return StreamOffset(positions, self._options.max_partitions, begins=begins, attempt=attempt, firsts=firsts)

    @property
    def is_bounded(self) -> bool:
        """True if nothing newer than fixed ends is read (Trigger.AvailableNow)."""
        return self._target is not None

    def only_batch(self, start: StreamOffset, now: float) -> StreamOffset:
        """Return the end of the only batch (Trigger.Once), which covers everything unread.

        Spark does not store the initial offset, so this offset states where topics begin, and a replay repeats it.
        """
        assert start.initial
        self._refresh(now)
        begins = {topic: position for topic, position in start.positions.items() if topic in self._ends}
        upto = {topic: max(position, self._ends[topic].last) for topic, position in begins.items()}
        firsts = self._firsts(begins, upto)
        return StreamOffset(upto, self._options.max_partitions, begins=begins, firsts=firsts)

    def is_idle(self, now: float) -> bool:
        """Return True if nothing arrived since :meth:`latest_offset` found nothing to do.

        Return False if something did, or if that is unknown.
        """
        if self._idle_ends is None or self._view.held() or self._view.rates():
            return False
        self._refresh(now)
        self._advance_cursor(self._done, now)
        return self._ends is self._idle_ends

    def await_news(self, now: float) -> None:
        """Block while there can be no news, after :meth:`latest_offset` found nothing to do.

        Asking few topics costs nothing, so streams of users do not wait for them: other sources of their query would.
        """
        if self._idle_ends is None:
            return
        is_job = self._options.topics_file is not None
        if not is_job and len(self._ends) < MANY_TOPICS:
            return
        next_poll = max(0.0, self._polled_at + self._options.offset_poll_interval_ms / 1000 - now)
        longest = _NEWS_WAIT_S if is_job and not self._view.rates() else next_poll
        if self._view.await_news(next_poll, longest):
            self._polled_at = float("-inf")

    def _waits_for_more(self, after: Mapping[str, Position], last: Mapping[str, Position], now: float) -> bool:
        """Return True if a minimum is not reached, and the oldest unread entry is younger than ``maxTriggerDelay``."""
        options = self._options
        if self._target is not None or (options.min_entries_per_trigger, options.min_bytes_per_trigger) == (None, None):
            return False
        unread = {topic: entries_between(after[topic], upto) for topic, upto in last.items() if after[topic] < upto}
        if options.min_bytes_per_trigger is not None:
            for topic in unread:
                self._next_of(topic, after[topic], last[topic], sized=True)
        ages = (self._seen[topic].age_of_first_after(after[topic], now) for topic in unread if topic in self._seen)
        if max(ages, default=0.0) * 1000 >= options.max_trigger_delay_ms:
            return False
        entries, size = sum(unread.values()), sum(count * self._sizes.get(topic, 0) for topic, count in unread.items())
        return entries < (options.min_entries_per_trigger or 0) or size < (options.min_bytes_per_trigger or 0)

    def _charge(self) -> None:
        """Count what the last batch wrote against the rates of its topics."""
        written = self._view.written()
        if written is not None and self._charged not in (None, written.batch):
            for topic, (entries, size) in written.topics.items():
                self._throttle.charge(topic, entries, size)
        self._charged = -1 if written is None else written.batch  # what an earlier run wrote is not charged to this one

    def _begin_of(self, topic: str, end: TopicEnd) -> Position:
        """Return where a topic found later begins: at the subscription if there is one, else at its earliest entry."""
        if self._options.starting_offsets == SUBSCRIPTION and end.acknowledged is not None:
            return end.acknowledged
        return EARLIEST

    def passed(self, begins: Mapping[str, Position], now: float) -> dict[str, Position]:
        """Return the positions of the subscription that lie ahead of the beginnings of ranges about to be read."""
        if not self._ends:  # a batch is planned again after a restart
            self._refresh(now)
        marks = {topic: self._ends[topic].acknowledged or EARLIEST for topic in begins if topic in self._ends}
        ahead = {topic: mark for topic, mark in marks.items() if mark > begins[topic]}
        self._note_passed(begins, ahead)
        return ahead

    def _note_passed(self, begins: Mapping[str, Position], marks: Mapping[str, Position]) -> None:
        """Log and count the entries that are left out, each once."""
        for topic, mark in marks.items():
            begin = max(begins[topic], self._passed_upto.get(topic, EARLIEST))
            count = entries_between(begin, mark)
            if count:
                log.warning("subscription was moved past entries topic=%s entries=%d upto=%s", topic, count, mark)
                self._passed[topic] += count
                self._passed_upto[topic] = mark

    def _moved_on(self, positions: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> dict[str, Position]:
        """Return the positions where the subscription is ahead of the stream, which follows it.

        An operator moved it, or the broker did: expired messages, or a cursor that policies closed and reopened.
        """
        if self._options.starting_offsets != SUBSCRIPTION:
            return {}
        acknowledged = {topic: ends[topic].acknowledged or EARLIEST for topic in ends if topic in positions}
        ahead = {topic: position for topic, position in acknowledged.items() if position > positions[topic]}
        self._note_passed(positions, ahead)
        return ahead

    def _kept(self, start: StreamOffset, ends: Mapping[str, TopicEnd]) -> dict[str, Position]:
        """Return the positions of topics without a known end, without deleted topics.

        Topics whose end is unknown at the moment keep their positions. So do topics that the options no longer name: if
        they are named again, the stream resumes there.
        """
        selected = set(self._topics or ()) | (set(self._target) if self._target else set())
        return {
            topic: position
            for topic, position in start.positions.items()
            if topic not in ends and (topic in selected or self._is_left_out(topic, position))
        }

    def _is_left_out(self, topic: str, position: Position) -> bool:
        if topic not in self._left_out:
            self._left_out[topic] = self._options.topics_file is None and not self._options.names(topic)
            if self._left_out[topic]:
                log.info("topic is not read any more, its position stays topic=%s position=%s", topic, position)
        return self._left_out[topic]

    def _check_deleted(self, positions: Mapping[str, Position]) -> None:
        """Report the loss of a topic that no pattern matches any more, since it was deleted.

        Source: docs/reference/spark-pipeline.md#deleted-topics.
        """
        for topic in sorted(self._deleted):
            loss = deleted_topic_loss(topic, self._seen.pop(topic, EndsSeen()), positions.get(topic, EARLIEST))
            if loss is None:
                log.info("topic was deleted, all of it was read topic=%s", topic)
            else:
                self._lose(loss)
        self._deleted.clear()

    def _outdated(
        self, ends: Mapping[str, TopicEnd], done: Mapping[str, Position], positions: Mapping[str, Position], now: float
    ) -> set[str]:
        """Return the topics whose known end is older than what tasks have copied since, and ask for their ends again.

        An end that stays behind after another answer of the source is no old one: the source went backwards.
        """
        behind = {
            topic
            for topic in self._copied.keys() & ends.keys() & done.keys()
            if positions[topic] <= ends[topic].newest < done[topic]
        }
        before, self._behind = self._behind, behind
        if behind:
            self._polled_at = float("-inf")
        return behind if self._outages.waiting(now) is not None else behind - before

    def _check_backwards(self, after: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> None:
        """Refuse positions that move backwards, except to a cursor behind the last message (a marker)."""
        backwards = [
            f"{topic} (read up to {after[topic]}, ends at {end.last})"
            for topic, end in ends.items()
            if topic in after and end.last.entry >= 0 and self._newest(topic, end) < after[topic]
        ]
        if backwards and self._options.fail_on_data_loss:
            raise ValueError(
                f"the source went backwards: {'; '.join(backwards)}. Was it rebuilt, or the topic recreated? "
                f"Start with a new checkpoint, or set failOnDataLoss=false"
            )

    def _newest(self, topic: str, end: TopicEnd) -> Position:
        """Return the highest position that the topic-partition has had; compaction removes entries that were read."""
        seen = self._seen[topic].newest if self._options.read_compacted else EARLIEST
        return max(end.newest, end.acknowledged or EARLIEST, seen)

    def _check_emptied(self, after: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> None:
        """Report what an emptied topic has lost immediately, instead of with its next message."""
        if self._keeps_unread:
            return
        suspected = {
            topic: read
            for topic, read in after.items()
            if ends[topic].last.entry < 0 <= read.entry
            and self._judged_empty.get(topic) != read
            and self._trimmed_loss(topic, read, None) is not None
        }
        # Older brokers call a topic empty whose newest ledger is.
        unsure = {topic: read.ledger for topic, read in suspected.items() if ends[topic].newest.entry < 0}
        there = self._view.ledgers_there(unsure) if unsure else ()
        self._judged_empty |= suspected
        for topic, read in suspected.items():
            if topic not in there:
                self._lose_trimmed(topic, read, None)

    @property
    def _keeps_unread(self) -> bool:
        """Return True if nothing unread can be lost.

        A durable subscription keeps what it has not acknowledged, and compaction keeps the newest message of every key.
        """
        return self._options.predefined_subscription is not None or self._options.read_compacted

    def _limited(
        self,
        after: Mapping[str, Position],
        last: Mapping[str, Position],
        room: Mapping[str, int],
        entries_max: int | None,
        bytes_max: int | None,
    ) -> dict[str, Position]:
        """Return the ends of the ranges. Rates (``room``) apply to streams that have limits, such as the job's."""
        if entries_max is None and bytes_max is None:
            return dict(last)
        sized = bytes_max is not None
        nexts = {
            topic: self._next_of(topic, after[topic], upto, sized=sized)
            for topic, upto in last.items()
            if after[topic] < upto and upto.entry >= 0
        }
        limit = self._entry_limit(nexts, entries_max, bytes_max)
        available = {
            topic: last[topic].entry - item.position.entry + 1 if item.position.ledger == last[topic].ledger else limit
            for topic, item in nexts.items()
            if item is not None
        }
        self._throttled |= {topic for topic, count in available.items() if room.get(topic, count) < count}
        available = {topic: min(count, room.get(topic, count)) for topic, count in available.items()}
        shares = share_limit(available, limit, self._turn)
        self._turn += 1
        ended = dict(after)
        for topic, count in shares.items():
            item = nexts[topic]
            assert item is not None, topic
            ended[topic] = self._end_of_range(topic, after[topic], item.position, last[topic], count)
        nothing_left = {topic: last[topic] for topic, item in nexts.items() if item is None}
        return ended | nothing_left

    def _end_of_range(self, topic: str, after: Position, first: Position, last: Position, count: int) -> Position:
        """Return the end of a range, an existing entry: a ledger before the last may be shorter than the limit."""
        end = plan_end(after, last, following=first, count=count)
        if end.ledger == last.ledger:
            return end

        def entry_after(position: Position) -> Position | None:
            following = self._view.following(topic, position, last)
            return None if following is None else following.position

        behind = self._view.following(topic, end, last)
        if behind is None or behind.position.ledger != end.ledger:
            end = last_in_ledger(first, end, entry_after)
            behind = self._view.following(topic, end, last)
        if behind is not None:
            self._note_following(topic, end, behind)
        return end

    def _firsts(self, after: Mapping[str, Position], upto: Mapping[str, Position]) -> dict[str, Position]:
        """Return the first entries of ranges that continue in a later ledger: inside one, entries are counted.

        A start at the earliest entry accepts any.
        """
        if self._keeps_unread:
            return {}
        crossing = {
            topic: (begin, upto[topic])
            for topic, begin in after.items()
            if begin != EARLIEST and begin.ledger < upto[topic].ledger and upto[topic].entry >= 0
        }
        beginnings = self._view.beginnings(crossing) if crossing else {}
        for topic, beginning in beginnings.items():
            if not beginning.intact:
                self._lose_trimmed(topic, after[topic], beginning.first)
        return {topic: beginning.first for topic, beginning in beginnings.items() if beginning.first is not None}

    def _trimmed_loss(self, topic: str, read: Position, first: Position | None) -> str | None:
        following = self._followings.get(topic, {}).get(read)
        behind = following.position if following is not None and following.adjacent else None
        return trimmed_ledger_loss(topic, self._seen[topic], read, first, behind=behind)

    def _lose_trimmed(self, topic: str, read: Position, first: Position | None) -> None:
        loss = self._trimmed_loss(topic, read, first)
        if loss is not None and self._losses_reported.get(topic) != read:
            self._losses_reported[topic] = read
            self._lose(loss)

    def _lose(self, loss: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{loss}. Start with a new checkpoint, or set failOnDataLoss=false to go on without them")
        log.warning("data loss reason=%s", loss)

    def _next_of(self, topic: str, after: Position, last: Position, *, sized: bool) -> Following | None:
        """Return the entry after ``after``: computed inside a ledger, asked for across ledgers or for its size."""
        size = self._sizes.get(topic)
        if after.ledger == last.ledger and (size is not None or not sized):
            return Following(Position(after.ledger, after.entry + 1), size or 0)
        following = self._followings.get(topic, {}).get(after)
        if following is None:
            following = self._view.following(topic, after, last)
            if following is None:
                return None
            self._note_following(topic, after, following)
        return following if following.position <= last else None

    def _note_following(self, topic: str, position: Position, following: Following) -> None:
        """Remember what follows the begin and the end of the range that was planned last."""
        followings = self._followings.get(topic, {})
        size = self._sizes.get(topic)
        self._followings[topic] = {**dict([*followings.items()][-1:]), position: following}
        self._sizes[topic] = following.size if size is None else (3 * size + following.size) // 4

    def _entry_limit(
        self, nexts: Mapping[str, Following | None], entries_max: int | None, bytes_max: int | None
    ) -> int:
        limits = [] if entries_max is None else [entries_max]
        sizes = [item.size for item in nexts.values() if item is not None]
        if bytes_max is not None and sizes:
            limits.append(max(1, bytes_max * len(sizes) // max(1, sum(sizes))))
        return min(limits, default=1)

    def _refresh(self, now: float, *, forced: bool = False) -> None:
        if not forced and now - self._polled_at < self._options.offset_poll_interval_ms / 1000:
            return
        try:
            self._discover(now)
            ends = self._view.ends(self._topics or ())
        except PulsarError as error:
            if forced:
                raise
            self._wait_out(error, now)
            return
        self._outages.over(now)
        self._polled_at = now
        if ends is self._ends:
            return
        before, self._ends = self._ends, ends
        for topic, end in ends.items():
            self._seen.setdefault(topic, EndsSeen()).record(end.last, now, newest=end.newest)
            if topic in before:
                self._throttle.note_published(topic, entries_between(before[topic].last, end.last))

    def _wait_out(self, error: PulsarError, now: float) -> None:
        """Keep the last known state during an outage. Raise errors that do not heal, and those that last too long."""
        if not (self._outages.may_resolve(error) or isinstance(error, SubscriptionNotFound)):
            raise error
        waiting = self._outages.waiting(now)
        if waiting is None or waiting[0] != str(error):
            log.warning("source does not answer, its last known state stays error=%s", error)
        self._outages.note(error, now)
        if self._outages.is_too_long(now):
            raise error
        self._polled_at = now

    def _discover(self, now: float) -> None:
        interval = self._options.discovery_interval_ms / 1000
        due = interval > 0 and now - self._discovered_at >= interval
        if self._topics is None or due or self._options.topics_file is not None:
            before, self._topics = self._topics, tuple(self._view.discover())
            self._discovered_at = now
            if self._options.topics_file is None:  # the job takes topics off its list by itself
                self._deleted |= set(before or ()) - set(self._topics)

    def _advance_cursor(self, positions: Mapping[str, Position], now: float) -> None:
        if now - self._acknowledged_at >= 1.0:
            self.acknowledge(positions, now)

    def acknowledge(self, positions: Mapping[str, Position], now: float) -> None:
        """Advance the durable subscription to positions that are done. A failure is no error of the stream."""
        if self._options.predefined_subscription is None:
            return
        self._acknowledged_at = now
        try:
            self._view.acknowledge(_written_up_to(positions, self._view.held()))
        except PulsarError as error:
            log.warning("subscription could not be advanced error=%s", error)

    def report(self, now: float) -> dict[str, Any]:
        """Return the newest positions and the lag behind them: the ``latestOffset`` of progress events."""
        topics: dict[str, dict[str, Any]] = {}
        ahead = self._view.copied()
        for topic, end in self._ends.items():
            copied = ahead.get(topic, EARLIEST)
            done, last = max(self._done.get(topic, EARLIEST), copied), max(end.last, copied)
            entries = entries_between(done, last)
            age = self._seen[topic].age_of_first_after(done, now) if entries else 0.0
            topics[topic] = {"last": str(last), "done": str(done), "entries": entries, "ms": int(age * 1000)}
            if entries and topic in self._throttled:
                topics[topic]["throttled"] = True
            if topic in self._passed:
                topics[topic]["passed"] = self._passed[topic]
        lagging = {topic: item for topic, item in topics.items() if item["entries"]}
        lag = {
            "entries": sum(item["entries"] for item in lagging.values()),
            "partitions": len(lagging),
            "oldestMs": max((item["ms"] for item in lagging.values()), default=0),
        }
        shown = topics if len(topics) <= 2000 else lagging
        report = {"v": 1, "lag": lag, "topics": shown}
        for outage in self._outages.take_resolved():
            self._healed["count"] += outage.times
            self._healed["ms"] += int(outage.seconds * 1000)
            self._healed |= {"reason": outage.reason, "remedy": remedy_for(outage.reason) or _REMEDY}
        if self._healed["count"]:
            report["healed"] = dict(self._healed)
        waiting = self._outages.waiting(now)
        if waiting is not None:
            reason, seconds = waiting
            report["waiting"] = {"reason": reason, "ms": int(seconds * 1000), "remedy": remedy_for(reason) or _REMEDY}
        return report


def _further(positions: Mapping[str, Position], copied: Mapping[str, Position]) -> Mapping[str, Position]:
    """Return the positions of a stream, further where tasks have copied more than their ranges."""
    if not copied:
        return positions
    return {topic: max(position, copied.get(topic, EARLIEST)) for topic, position in positions.items()}


def _written_up_to(positions: Mapping[str, Position], held: Mapping[str, HeldBack]) -> Mapping[str, Position]:
    """Return the positions up to which the sink has written. Offsets are ahead of them where topics are held."""
    return {
        topic: min(position, held[topic].after) if topic in held else position for topic, position in positions.items()
    }

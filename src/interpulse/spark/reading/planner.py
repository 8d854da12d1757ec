"""What a stream plans on the driver: initial positions, the end of each batch, ranges, lag.

No sockets and no clock: the source cluster is asked through :class:`SourceView`, time is an argument. Spark calls
``latestOffset`` about a hundred times a second while a stream is idle; brokers are asked once per poll interval.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.client.outages import Outages, remedy_for
from interpulse.model.errors import DataLoss, PulsarError, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.spark.offsets import (
    StreamOffset,
    check_points_named,
    entries_between,
    last_in_ledger,
    plan_end,
    point_of,
    share_limit,
)
from interpulse.spark.reading.backlog.losses import EndsSeen, deleted_topic_loss, trimmed_ledger_loss
from interpulse.spark.reading.backlog.trigger_minimum import waits_for_more
from interpulse.spark.reading.ranges.splitting import Ledger
from interpulse.spark.reading.ranges.times import check_not_late, times_of
from interpulse.spark.reading.read_options import SUBSCRIPTION, ReadOptions
from interpulse.spark.reading.selected_names import is_named
from interpulse.spark.throttle import Rate, Throttle

__all__ = [
    "Beginning",
    "Following",
    "HeldBack",
    "SourceView",
    "StreamPlanner",
    "TopicEnd",
    "WrittenBatch",
    "check_not_late",
    "times_of",
]

log = logging.getLogger(__name__)

_REMEDY = "start the cluster, or see to its address and the network; the stream goes on by itself"
_MANY_TOPICS = 200


class TopicEnd(NamedTuple):
    """The last entry of a topic-partition that readers get, and what its durable subscription has acknowledged (if
    there is one).

    ``log_end``, where ``last`` does not tell: the last position that the log has had, read or trimmed or compacted.
    """

    last: Position
    acknowledged: Position | None = None
    log_end: Position | None = None

    @property
    def newest(self) -> Position:
        """The last position that the topic-partition has had, as far as the broker says."""
        return max(self.last, self.log_end or EARLIEST)


class Following(NamedTuple):
    """The entry after a position, and its size. ``adjacent``: the entry at the position is there itself, so that none
    was trimmed between them."""

    position: Position
    size: int
    adjacent: bool = False


class Beginning(NamedTuple):
    """The first entry of a range that is there, if any. ``intact``: nothing in front of it was trimmed."""

    first: Position | None
    intact: bool


class HeldBack(NamedTuple):
    """Nothing of a topic-partition behind ``after`` was written; ``is_due``: it is time for another attempt."""

    after: Position
    attempts: int
    is_due: bool


class WrittenBatch(NamedTuple):
    """What the sink wrote last: entries and bytes by topic-partition."""

    batch: int
    topics: Mapping[str, tuple[int, int]]


class SourceView(Protocol):
    """The source cluster as the driver sees it. Calls block; they raise classes of ``model.errors``."""

    def discover(self) -> Iterable[str]:
        """The topic-partitions selected now, complete names."""

    def ends(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        """Their last entries; topics that are gone are left out. The same mapping again: nothing was found out."""

    def before(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        """The positions before their first messages published at or after a time; those without one are left out."""

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        """Their ledgers, as far as the cluster tells."""

    def following(self, topic: str, after: Position, upto: Position) -> Following | None:
        """The first entry of ``(after, upto]``, None if there is none."""

    def beginnings(self, pending: Mapping[str, tuple[Position, Position]]) -> Mapping[str, Beginning]:
        """How ranges ``(after, upto]`` begin, by topic-partition; topics that are gone are left out."""

    def ledgers_there(self, ledgers: Mapping[str, int]) -> Collection[str]:
        """The topic-partitions of which entries of this ledger can be read."""

    def held(self) -> Mapping[str, HeldBack]:
        """What the sink was refused and wants to have again."""

    def rates(self) -> Mapping[str, Rate]:
        """How fast topic-partitions may be copied; those that have no limit are left out. As of the last discovery."""

    def written(self) -> WrittenBatch | None:
        """What the newest committed batch wrote, as far as the sink reports it."""

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        """Advance the durable subscription, if the options name one."""

    def close(self) -> None: ...


class StreamPlanner:
    """The driver side of one stream. One instance lives as long as the query."""

    def __init__(self, options: ReadOptions, view: SourceView) -> None:
        self._options = options
        self._view = view
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
            "source",
            timeout_ms=options.outage_timeout_ms,
            rereads_credentials=options.access.rereads_credentials,
        )
        self._healed: dict[str, Any] = {"count": 0, "ms": 0}
        self._throttle = Throttle()
        self._throttled: frozenset[str] = frozenset()
        self._charged: int | None = None
        self._passed_upto: dict[str, Position] = {}
        self._passed: Counter[str] = Counter()
        """Entries that were not read because the subscription was moved past them, by topic-partition."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Average bytes of an entry by topic, as far as known."""
        return self._sizes

    def initial_offset(self, now: float) -> StreamOffset:
        """Concrete positions for every selected partition. Not stored by Spark, hence the anchor batch after it."""
        self._refresh(now, forced=True)
        start = self._options.starting_offsets
        positions = {topic: self._start_of(topic, end, start) for topic, end in self._ends.items()}
        if isinstance(start, dict):
            check_points_named(start, positions)
        times = times_of(self._options.starting_time, positions)
        if times:
            found = self._view.before(times)
            check_not_late(times, found, self._options.late_start or "latest")
            positions |= found
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
        """From now on nothing newer than the present ends is read (Trigger.AvailableNow)."""
        self._refresh(now, forced=True)
        self._target = dict(self._ends)

    def latest_offset(
        self, start: StreamOffset, now: float, *, entries_max: int | None = None, bytes_max: int | None = None
    ) -> StreamOffset:
        """The end of the next batch; equal to ``start`` when there is nothing to do."""
        if start.initial:
            return start.anchored()
        self._idle_ends = None
        self._charge()
        held = self._view.held()
        self._done = _written_up_to(start.positions, held)
        self._refresh(now)
        self._check_deleted(start.positions)
        self._advance_cursor(start.positions, now)
        ends = self._target if self._target is not None else self._ends
        self._throttle.set_rates(self._view.rates(), now)
        room = self._throttle.room(now)
        self._throttled = frozenset(topic for topic, count in room.items() if count == 0)
        ends = {
            topic: end
            for topic, end in ends.items()
            if (topic not in held or held[topic].is_due) and room.get(topic) != 0
        }
        begins = {topic: self._begin_of(topic, end) for topic, end in ends.items() if topic not in start.positions}
        begins |= self._moved_on(start.positions, ends)
        again = {topic: item for topic, item in held.items() if topic in ends}
        # We never acknowledge behind the position of a hold: a cursor that stands there was moved by an operator.
        marks = {topic: max(item.after, ends[topic].acknowledged or EARLIEST) for topic, item in again.items()}
        self._note_passed({topic: item.after for topic, item in again.items()}, marks)
        begins |= marks
        after = {topic: begins.get(topic, start.positions.get(topic, EARLIEST)) for topic in ends}
        self._check_backwards({topic: position for topic, position in after.items() if topic not in begins}, ends)
        last = {topic: max(after[topic], end.last) for topic, end in ends.items()}  # a cut stays where nothing came
        try:
            self._check_emptied({topic: after[topic] for topic in ends if topic not in begins}, ends)
            if self._waits_for_more(after, last, now):
                return start
            positions = self._limited(after, last, room, entries_max, bytes_max)
            firsts = self._firsts({topic: after[topic] for topic in positions if topic not in begins}, positions)
        except PulsarError as error:
            if self._target is not None:
                raise  # with Trigger.AvailableNow, nothing to do is the end
            self._wait_out(error, now)
            return start
        positions |= self._kept(start, ends)
        begins = {topic: position for topic, position in begins.items() if position != EARLIEST or topic in again}
        if positions == start.positions and not again:
            self._idle_ends = self._ends
            return start
        attempt = sum(item.attempts for item in again.values())
        return StreamOffset(positions, self._options.max_partitions, begins=begins, attempt=attempt, firsts=firsts)

    def only_batch(self, start: StreamOffset, now: float) -> StreamOffset:
        """The end of the first batch where there is no other one (Trigger.Once): all that is there.

        Spark does not store the initial offset, so this one says itself where topics begin, and a replay repeats it.
        """
        assert start.initial
        self._refresh(now)
        begins = {topic: position for topic, position in start.positions.items() if topic in self._ends}
        upto = {topic: max(position, self._ends[topic].last) for topic, position in begins.items()}
        firsts = self._firsts(begins, upto)
        return StreamOffset(upto, self._options.max_partitions, begins=begins, firsts=firsts)

    def is_idle(self, now: float) -> bool:
        """Whether nothing came since :meth:`latest_offset` had nothing to do; False also where that is not known."""
        if self._idle_ends is None or self._view.held() or self._view.rates():
            return False
        self._refresh(now)
        self._advance_cursor(self._done, now)
        return self._ends is self._idle_ends

    def idle_pause(self, now: float) -> float:
        """How long nothing new can be found out, in seconds. With few topics an answer costs nothing: 0."""
        if self._idle_ends is None or len(self._ends) < _MANY_TOPICS:
            return 0.0
        return max(0.0, self._polled_at + self._options.offset_poll_interval_ms / 1000 - now)

    def _waits_for_more(self, after: Mapping[str, Position], last: Mapping[str, Position], now: float) -> bool:
        """There is less than the minimum, and the oldest of it can wait."""
        options = self._options
        if self._target is not None or (options.min_entries_per_trigger, options.min_bytes_per_trigger) == (None, None):
            return False
        unread = {topic: entries_between(after[topic], upto) for topic, upto in last.items() if after[topic] < upto}
        if options.min_bytes_per_trigger is not None:
            for topic in unread:
                self._next_of(topic, after[topic], last[topic], sized=True)
        ages = (self._seen[topic].age_of_first_after(after[topic], now) for topic in unread if topic in self._seen)
        return waits_for_more(options, unread, self._sizes, max(ages, default=0.0) * 1000)

    def _charge(self) -> None:
        """What the last batch wrote counts against the rates of its topics."""
        written = self._view.written()
        if written is not None and self._charged not in (None, written.batch):
            for topic, (entries, size) in written.topics.items():
                self._throttle.charge(topic, entries, size)
        self._charged = -1 if written is None else written.batch  # what an earlier run wrote is not charged to this one

    def _begin_of(self, topic: str, end: TopicEnd) -> Position:
        """Topics found later begin at the subscription if there is one, else at their earliest entry."""
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
        """Log and count what is left out, each entry once."""
        for topic, mark in marks.items():
            begin = max(begins[topic], self._passed_upto.get(topic, EARLIEST))
            count = entries_between(begin, mark)
            if count:
                log.warning("subscription was moved past entries topic=%s entries=%d upto=%s", topic, count, mark)
                self._passed[topic] += count
                self._passed_upto[topic] = mark

    def _moved_on(self, positions: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> dict[str, Position]:
        """Where the subscription stands ahead of the stream, which follows it.

        An operator moved it, or the broker did: expired messages, a cursor that policies closed and opened anew.
        """
        if self._options.starting_offsets != SUBSCRIPTION:
            return {}
        acknowledged = {topic: ends[topic].acknowledged or EARLIEST for topic in ends if topic in positions}
        ahead = {topic: position for topic, position in acknowledged.items() if position > positions[topic]}
        self._note_passed(positions, ahead)
        return ahead

    def _kept(self, start: StreamOffset, ends: Mapping[str, TopicEnd]) -> dict[str, Position]:
        """Topics whose end is not known just now keep their positions, and so do those that the options do not name any
        more: should they do so again, the stream goes on there. Those that were deleted are dropped."""
        selected = set(self._topics or ()) | (set(self._target) if self._target else set())
        return {
            topic: position
            for topic, position in start.positions.items()
            if topic not in ends and (topic in selected or self._is_left_out(topic, position))
        }

    def _is_left_out(self, topic: str, position: Position) -> bool:
        if topic not in self._left_out:
            self._left_out[topic] = self._options.topics_file is None and not is_named(self._options, topic)
            if self._left_out[topic]:
                log.info("topic is not read any more, its position stays topic=%s position=%s", topic, position)
        return self._left_out[topic]

    def _check_deleted(self, positions: Mapping[str, Position]) -> None:
        """A topic that no pattern finds any more was deleted; spec spark-pipeline 5.4."""
        for topic in sorted(self._deleted):
            loss = deleted_topic_loss(topic, self._seen.pop(topic, EndsSeen()), positions.get(topic, EARLIEST))
            if loss is None:
                log.info("topic was deleted, all of it was read topic=%s", topic)
            else:
                self._lose(loss)
        self._deleted.clear()

    def _check_backwards(self, after: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> None:
        """A cursor may stand behind the last message (a marker, an empty ledger), and with it the stream."""
        backwards = [
            f"{topic} (read up to {after[topic]}, ends at {end.last})"
            for topic, end in ends.items()
            if topic in after and end.last.entry >= 0 and self._newest(topic, end) < after[topic]
        ]
        if backwards and self._options.fail_on_data_loss:
            raise ValueError(
                f"the source went backwards: {'; '.join(backwards)}. Was it rebuilt, or the topic created anew? "
                f"Start with a new checkpoint, or set failOnDataLoss=false"
            )

    def _newest(self, topic: str, end: TopicEnd) -> Position:
        """The last position that the topic-partition has had; compaction takes away entries that were read."""
        seen = self._seen[topic].newest if self._options.read_compacted else EARLIEST
        return max(end.newest, end.acknowledged or EARLIEST, seen)

    def _check_emptied(self, after: Mapping[str, Position], ends: Mapping[str, TopicEnd]) -> None:
        """Report what a topic has lost that holds nothing any more, at once and not with its next message."""
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
        """True where nothing unread is lost: a durable subscription keeps what it has not acknowledged, compaction the
        newest message of every key."""
        return self._options.predefined_subscription is not None or self._options.read_compacted

    def _limited(
        self,
        after: Mapping[str, Position],
        last: Mapping[str, Position],
        room: Mapping[str, int],
        entries_max: int | None,
        bytes_max: int | None,
    ) -> dict[str, Position]:
        """The ends of the ranges; rates (``room``) are for streams that have limits, as those of the job."""
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
        """The end of a range, an entry that is there: a ledger in front of the last one may be shorter than that."""
        end = plan_end(after, last, following=first, count=count)
        if end.ledger == last.ledger:
            return end
        behind = self._view.following(topic, end, last)
        if behind is None or behind.position.ledger != end.ledger:
            end = last_in_ledger(first, end, lambda at: _position_of(self._view.following(topic, at, last)))
            behind = self._view.following(topic, end, last)
        if behind is not None:
            self._note_following(topic, end, behind)
        return end

    def _firsts(self, after: Mapping[str, Position], upto: Mapping[str, Position]) -> dict[str, Position]:
        """The first entries of ranges that go on in a later ledger. Inside of one ledger entries are counted.

        A start at the earliest entry takes any.
        """
        if self._keeps_unread:
            return {}
        crossing = {
            topic: (begin, upto[topic])
            for topic, begin in after.items()
            if begin != EARLIEST and begin.ledger < upto[topic].ledger and upto[topic].entry >= 0
        }
        found = self._view.beginnings(crossing) if crossing else {}
        for topic, beginning in found.items():
            if not beginning.intact:
                self._lose_trimmed(topic, after[topic], beginning.first)
        return {topic: beginning.first for topic, beginning in found.items() if beginning.first is not None}

    def _trimmed_loss(self, topic: str, read: Position, first: Position | None) -> str | None:
        known = self._followings.get(topic, {}).get(read)
        behind = known.position if known is not None and known.adjacent else None
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
        """The entry after ``after``: known inside one ledger, asked for across ledgers or to learn its size."""
        size = self._sizes.get(topic)
        if after.ledger == last.ledger and (size is not None or not sized):
            return Following(Position(after.ledger, after.entry + 1), size or 0)
        found = self._followings.get(topic, {}).get(after)
        if found is None:
            found = self._view.following(topic, after, last)
            if found is None:
                return None
            self._note_following(topic, after, found)
        return found if found.position <= last else None

    def _note_following(self, topic: str, position: Position, following: Following) -> None:
        """Remember what follows the begin and the end of the range that was planned last."""
        known = self._followings.get(topic, {})
        size = self._sizes.get(topic)
        self._followings[topic] = {**dict([*known.items()][-1:]), position: following}
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
        """The last known state stays. Raises what does not heal, and what lasts too long."""
        if not (self._outages.heals(error) or isinstance(error, SubscriptionNotFound)):
            raise error
        told = self._outages.waiting(now)
        if told is None or told[0] != str(error):
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
        """Advance the durable subscription to positions that are done; failing is not an error of the stream."""
        if self._options.predefined_subscription is None:
            return
        self._acknowledged_at = now
        try:
            self._view.acknowledge(_written_up_to(positions, self._view.held()))
        except PulsarError as error:
            log.warning("subscription could not be advanced error=%s", error)

    def report(self, now: float) -> dict[str, Any]:
        """The newest positions, and the lag of what was last read: the ``latestOffset`` of progress events."""
        topics: dict[str, dict[str, Any]] = {}
        for topic, end in self._ends.items():
            done = self._done.get(topic, EARLIEST)
            entries = entries_between(done, end.last)
            age = self._seen[topic].age_of_first_after(done, now) if entries else 0.0
            topics[topic] = {"last": str(end.last), "done": str(done), "entries": entries, "ms": int(age * 1000)}
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
        for each in self._outages.take_healed():
            self._healed["count"] += each.times
            self._healed["ms"] += int(each.seconds * 1000)
            self._healed |= {"reason": each.reason, "remedy": remedy_for(each.reason) or _REMEDY}
        if self._healed["count"]:
            report["healed"] = dict(self._healed)
        waiting = self._outages.waiting(now)
        if waiting is not None:
            reason, seconds = waiting
            report["waiting"] = {"reason": reason, "ms": int(seconds * 1000), "remedy": remedy_for(reason) or _REMEDY}
        return report


def _position_of(following: Following | None) -> Position | None:
    return None if following is None else following.position


def _written_up_to(positions: Mapping[str, Position], held: Mapping[str, HeldBack]) -> Mapping[str, Position]:
    """Offsets run ahead of what is written where topics are held."""
    return {
        topic: min(position, held[topic].after) if topic in held else position for topic, position in positions.items()
    }

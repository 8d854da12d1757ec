"""Offsets of a stream, and the admission and packing of ranges: the driver's planning without IO.

A position in an offset means "everything up to and including this entry is done"; a range is ``(after, upto]``. Offsets
are plain dictionaries because Spark stores and compares them as text: the same positions always give the same value.
"""

from __future__ import annotations

import base64
import heapq
import json
import math
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError

from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.spark.options.option import OptionError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import message_id_from_wire

OFFSET_VERSION = 1

_POINTS_TEXT: Final = (
    'give earliest, latest, "ledger:entry", or JSON such as {"topic": "earliest"} or {"topic": {"0": "7:12"}}'
)

_TIMES_TEXT: Final = (
    'give milliseconds since the epoch, 2026-01-31T12:00:00Z, or JSON such as {"topic": 1769860800000} or '
    '{"topic": {"0": 1769860800000}}'
)

_IN_BATCH: Final = re.compile(r"(-?[0-9]+:-?[0-9]+):([0-9]+)")


class CutPosition(Position):
    """A position with a batch index: only some messages of its entry are read.

    As the start of a range it is the position before that entry, of which messages from the index on are read. As the
    end it is that entry, of which messages up to the index are read. It equals, and is ordered like, the plain
    position.
    """

    batch_index: int

    def __new__(cls, ledger: int, entry: int, batch_index: int) -> CutPosition:
        made = super().__new__(cls, ledger, entry)
        made.batch_index = batch_index
        return made

    def __getnewargs__(self) -> tuple[int, int, int]:
        return (self.ledger, self.entry, self.batch_index)


class TopicRange(NamedTuple):
    """The entries ``(after, upto]`` of one topic-partition, with an estimate of their size in bytes.

    With ``sparse`` it is no loss if none of them exists. ``first`` is the first of them when the range was planned, if
    its absence is a loss.
    """

    topic: str
    after: Position
    upto: Position
    bytes_estimate: int = 0
    sparse: bool = False
    first: Position | None = None


@dataclass(frozen=True)
class StreamOffset:
    """The progress of a stream: one position per topic-partition.

    ``tasks`` is the number of tasks that the batch was planned with. ``begins`` has the start of topics that appear for
    the first time, if that is not their earliest entry, or that are read again because the target refused them. It is
    read from the end offset of a batch, so a replay repeats it. ``attempt`` distinguishes another attempt at the same
    ranges. ``firsts`` are the first entries of ranges that continue in a later ledger, as of the planning of the batch.
    ``initial`` marks the value of ``initialOffset``, which Spark does not store. Positions may be :class:`CutPosition`
    if the query was started inside a batch.
    """

    positions: Mapping[str, Position] = field(default_factory=dict)
    tasks: int = 1
    initial: bool = False
    begins: Mapping[str, Position] = field(default_factory=dict)
    attempt: int = 0
    firsts: Mapping[str, Position] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the value that Spark stores.

        Version 1: positions by namespace and topic, ``ledger:entry``, with keys sorted. ``v`` version, ``n`` tasks,
        ``o`` positions; optional: ``b`` begins, ``a`` attempt, ``f`` firsts, ``c`` cuts, ``ledger:entry:batch index``,
        whose position is one of ``o`` or ``b``. A release ignores keys that it does not define.
        """
        body: dict[str, Any] = {"n": self.tasks, "o": _grouped(self.positions), "v": OFFSET_VERSION}
        if self.begins:
            body = {"b": _grouped(self.begins), **body}
        if self.attempt:
            body["a"] = self.attempt
        if self.firsts:
            body["f"] = _grouped(self.firsts)
        if cuts := _cuts(self.positions) | _cuts(self.begins):
            body["c"] = _grouped(cuts, lambda cut: f"{cut}:{cut.batch_index}")
        return {"init": True, **body} if self.initial else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StreamOffset:
        """Read a stored offset. Raises ValueError for another version, which is never reinterpreted."""
        version = body.get("v")
        if version != OFFSET_VERSION:
            raise ValueError(
                f"the checkpoint holds offsets of version {version!r}, this interpulse reads version {OFFSET_VERSION}; "
                f"continue with the interpulse release that wrote it"
            )
        cuts = _flat(body.get("c", {}), _parse_cut)
        return cls(
            _with_cuts(_flat(body["o"], Position.parse), cuts),
            int(body.get("n", 1)),
            initial=bool(body.get("init", False)),
            begins=_with_cuts(_flat(body.get("b", {}), Position.parse), cuts),
            attempt=int(body.get("a", 0)),
            firsts=_flat(body.get("f", {}), Position.parse),
        )

    def anchored(self) -> StreamOffset:
        """Return these positions as a value that Spark stores."""
        return StreamOffset(self.positions, self.tasks)


_P = TypeVar("_P", bound=Position)


def _grouped(positions: Mapping[str, _P], text_of: Callable[[_P], str] = str) -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = {}
    for topic in sorted(positions):
        namespace, _, local = topic.rpartition("/")
        groups.setdefault(namespace, {})[local] = text_of(positions[topic])
    return groups


def _flat(groups: Mapping[str, Mapping[str, str]], parse: Callable[[str], _P]) -> dict[str, _P]:
    return {f"{namespace}/{local}": parse(text) for namespace, group in groups.items() for local, text in group.items()}


def _cuts(positions: Mapping[str, Position]) -> dict[str, CutPosition]:
    return {topic: position for topic, position in positions.items() if isinstance(position, CutPosition)}


def _parse_cut(text: str) -> CutPosition:
    position, _, batch_index = text.rpartition(":")
    return CutPosition(*Position.parse(position), int(batch_index))


def _with_cuts(positions: dict[str, Position], cuts: Mapping[str, CutPosition]) -> dict[str, Position]:
    return positions | {topic: cut for topic, cut in cuts.items() if positions.get(topic) == cut} if cuts else positions


def entries_between(after: Position, upto: Position) -> int:
    """Return the number of entries in ``(after, upto]`` that two positions determine.

    The number is exact inside one ledger, because entry ids are dense. Across ledgers only the entries of the last one
    count.
    """
    if upto <= after:
        return 0
    return upto.entry - after.entry if upto.ledger == after.ledger else upto.entry + 1


def share_limit(available: Mapping[str, int], limit: int, turn: int) -> dict[str, int]:
    """Share an entry limit among partitions in proportion to their available entries. The sum never exceeds the limit.

    Every participating partition gets at least one entry. If there are more partitions than ``limit``, only ``limit``
    of them participate, chosen by ``turn`` so that none starves over several batches.
    """
    waiting = sorted(topic for topic, count in available.items() if count > 0)
    total = sum(available[topic] for topic in waiting)
    if total <= limit:
        return {topic: available[topic] for topic in waiting}
    if len(waiting) >= limit:
        first = turn * limit % len(waiting)
        return {waiting[(first + step) % len(waiting)]: 1 for step in range(limit)}
    shares = {topic: max(1, available[topic] * limit // total) for topic in waiting}
    excess = sum(shares.values()) - limit
    for topic in sorted(waiting, key=lambda name: -shares[name]):
        cut = min(max(excess, 0), shares[topic] - 1)
        shares[topic] -= cut
        excess -= cut
    return shares


def plan_end(after: Position, last: Position, *, following: Position, count: int) -> Position:
    """Return the end of a range of at most ``count`` entries after ``after``; ``following`` is the next entry.

    The end is never beyond ``last`` and never before ``following``. In a ledger before that of ``last`` it may be
    beyond the ledger's end: see :func:`last_in_ledger`.
    """
    assert after < following <= last, (after, following, last)
    assert count >= 1, count
    return min(Position(following.ledger, following.entry + count - 1), last)


def last_in_ledger(first: Position, end: Position, following: Callable[[Position], Position | None]) -> Position:
    """Return the last existing entry of ``[first, end]``, in the ledger of both, which may end before ``end``.

    ``following`` returns the entry after a position, or None. It is called about log2 of the distance.
    """

    def is_beyond(entry: int) -> bool:
        follower = following(Position(first.ledger, entry - 1))
        return follower is None or follower.ledger != first.ledger

    return Position(first.ledger, first.entry + bisect_left(range(first.entry + 1, end.entry + 1), True, key=is_beyond))


def ranges_between(
    start: StreamOffset, end: StreamOffset, bytes_per_entry: Mapping[str, int] | None = None
) -> list[TopicRange]:
    """Return the ranges of a batch. Raises ValueError that names every topic that went backwards.

    A begin in ``end`` decides where its topic starts. Without one, a topic that only ``end`` has starts at its earliest
    entry. A topic that only ``start`` has no longer exists. After an initial offset only the topics and begins of
    ``end`` count, because Spark stores that one.
    """
    sizes = bytes_per_entry or {}
    ranges: list[TopicRange] = []
    backwards: list[str] = []
    for topic, upto in sorted(end.positions.items()):
        after = end.begins.get(topic, upto if start.initial else start.positions.get(topic, EARLIEST))
        if upto < after:
            backwards.append(f"{topic} ({after} -> {upto})")
        elif upto > after:
            estimate = entries_between(after, upto) * sizes.get(topic, 1024)
            ranges.append(TopicRange(topic, after, upto, estimate, first=end.firsts.get(topic)))
    if backwards:
        raise ValueError(f"positions went backwards: {', '.join(backwards)}; was the source cluster rebuilt?")
    return ranges


def pack_ranges(ranges: Sequence[TopicRange], tasks: int, mode: str = "balanced") -> list[list[TopicRange]]:
    """Distribute ranges among at most ``tasks`` lists. A topic-partition never spans two.

    ``balanced`` puts the largest first into the least loaded. ``stable`` uses a hash of the name, so that the same
    ranges give the same lists in every run.
    """
    assert tasks >= 1, tasks
    packed: list[list[TopicRange]] = [[] for _ in range(tasks)]
    if mode == "stable":
        for item in sorted(ranges):
            packed[zlib.crc32(item.topic.encode()) % tasks].append(item)
        return [task for task in packed if task]
    loads = [(0, index) for index in range(tasks)]
    for item in sorted(ranges, key=lambda item: (-item.bytes_estimate, item.topic)):
        load, index = heapq.heappop(loads)
        packed[index].append(item)
        heapq.heappush(loads, (load + max(1, item.bytes_estimate), index))
    return [sorted(task) for task in packed if task]


def parse_offsets(text: str, *, inclusive_start: bool) -> Position | dict[str, Position]:
    """Parse ``startingOffsets`` or ``endingOffsets``: one word for all topics, or JSON per topic or partition.

    Values are ``earliest``, ``latest``, -2, -1, ``ledger:entry``, ``ledger:entry:batch index``, or a serialized message
    id as base64 or as a list of its bytes. A start names the first entry to read, so the result is the entry before it;
    an end names the last one. Raises ValueError that describes the problem.
    """
    return _by_topic(text, lambda value: _parse_point(value, inclusive_start=inclusive_start), _POINTS_TEXT)


def parse_times(text: str) -> int | dict[str, int]:
    """Parse ``startingTime`` or ``endingTime``: ms since the epoch, ISO 8601 with a zone, or JSON of these.

    JSON has times by topic or partition. Raises ValueError that describes the problem.
    """
    return _by_topic(text, _parse_time, _TIMES_TEXT)


def _by_topic(text: str, parse: Callable[[object], _Point], hint: str) -> _Point | dict[str, _Point]:
    """Parse one value for all topics, or JSON of values per topic or partition. ``hint`` lists the forms of a value."""
    if not text.lstrip().startswith("{"):
        return parse(text.strip())
    try:
        body = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not JSON ({problem}); {hint}") from None
    points: dict[str, _Point] = {}
    for name, value in body.items():
        topic = TopicName.parse(name)
        if isinstance(value, Mapping):
            points |= {str(topic.partition(int(index))): parse(point) for index, point in value.items()}
        else:
            points[str(topic)] = parse(value)
    return points


def _parse_time(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.isdigit():
        return int(value)
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a time; {_TIMES_TEXT}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} has no zone: add Z for UTC, or an offset such as +02:00")
    return math.ceil(moment.timestamp() * 1000)


_Point = TypeVar("_Point")


def point_of(points: Mapping[str, _Point], topic: str) -> _Point | None:
    """Return the point of a topic-partition or of its partitioned topic, or None."""
    own = points.get(topic)
    return points.get(str(TopicName.parse(topic).base)) if own is None else own


def check_points_named(points: Mapping[str, object], topics: Collection[str]) -> None:
    """Refuse positions of topics that are not read. Raises OptionError."""
    selected = {*topics, *(str(TopicName.parse(topic).base) for topic in topics)}
    unmatched = sorted(set(points) - selected)
    if unmatched:
        raise OptionError(
            f"offsets or times are given for topics that are not read: {', '.join(unmatched)}; read are "
            f"{', '.join(sorted(topics)[:5])}"
        )


def _parse_point(value: object, *, inclusive_start: bool) -> Position:
    named = {"earliest": EARLIEST, "latest": LATEST, -2: EARLIEST, -1: LATEST}
    if isinstance(value, str | int) and value in named:
        return named[value]
    place = _message_id(value)
    entry = place.entry - 1 if inclusive_start else place.entry
    if place.batch_index >= 0:
        return CutPosition(place.ledger, entry, place.batch_index)
    return Position(place.ledger, entry)


def _message_id(value: object) -> MessageId:
    """Parse ``ledger:entry``, ``ledger:entry:batch index``, or a serialized id as base64 or as a list of its bytes."""
    try:
        if isinstance(value, list):
            return message_id_from_wire(pb.MessageIdData.FromString(bytes(byte % 256 for byte in value)))
        text = str(value)
        if ":" not in text:
            return message_id_from_wire(pb.MessageIdData.FromString(base64.b64decode(text, validate=True)))
        position, batch_index = _IN_BATCH.fullmatch(text), -1
        if position is not None:
            text, batch_index = position[1], int(position[2])
        return MessageId(*Position.parse(text), batch_index=batch_index)
    except (ValueError, TypeError, DecodeError):
        raise ValueError(f"{value!r} is not a position; {_POINTS_TEXT}") from None


def times_of(times: int | Mapping[str, int] | None, topics: Collection[str]) -> dict[str, int]:
    """Return the times of topic-partitions. Raise OptionError for topics that are not read."""
    if times is None:
        return {}
    if isinstance(times, int):
        return dict.fromkeys(topics, times)
    check_points_named(times, topics)
    return {topic: time_ms for topic in topics if (time_ms := point_of(times, topic)) is not None}


def check_not_late(times: Mapping[str, int], positions: Collection[str], strategy: str) -> None:
    """Raise OptionError for topic-partitions without a message that late, unless ``strategy`` allows them."""
    late = [f"{topic} at {times[topic]}" for topic in sorted(set(times) - set(positions))]
    if late and strategy == "error":
        raise OptionError(
            f"startingTime: no message was published at or after it in {', '.join(late[:5])}"
            f"{f' and {len(late) - 5} others' if len(late) > 5 else ''}; startingOffsetsByTimestampStrategy=latest "
            f"starts at their ends"
        )

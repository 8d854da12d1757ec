"""The format of a stream's offsets, and the admission and packing of ranges: what the driver plans, without IO.

A position in an offset means "everything up to and including this entry is done"; a range is ``(after, upto]``.
Offsets are plain dictionaries because Spark stores them as text and compares them as text: the same positions always
give the same value.
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

__all__ = [
    "OFFSET_VERSION",
    "CutPosition",
    "StartPoint",
    "StreamOffset",
    "TopicRange",
    "check_points_named",
    "entries_between",
    "last_in_ledger",
    "pack_ranges",
    "parse_offsets",
    "parse_times",
    "plan_end",
    "point_of",
    "ranges_between",
    "share_limit",
]

OFFSET_VERSION = 1

_POINTS_TEXT: Final = (
    'give earliest, latest, "ledger:entry", or JSON such as {"topic": "earliest"} or {"topic": {"0": "7:12"}}'
)

_TIMES_TEXT: Final = (
    'give milliseconds since the epoch, 2026-01-31T12:00:00Z, or JSON such as {"topic": 1769860800000} or '
    '{"topic": {"0": 1769860800000}}'
)

_IN_BATCH: Final = re.compile(r"(-?[0-9]+:-?[0-9]+):([0-9]+)")

StartPoint = Position
"""The position to start after: EARLIEST, LATEST or the position of the last entry that is *not* read."""


class CutPosition(Position):
    """A position given with a batch index: of the entry it was given for, some messages are not read.

    As the start of a range it is the position in front of that entry, of which messages from the index on are read; as
    its end that entry, of which messages up to the index are read. It equals, and is ordered like, the plain position.
    """

    batch_index: int

    def __new__(cls, ledger: int, entry: int, batch_index: int) -> CutPosition:
        made = super().__new__(cls, ledger, entry)
        made.batch_index = batch_index
        return made

    def __getnewargs__(self) -> tuple[int, int, int]:
        return (self.ledger, self.entry, self.batch_index)


class TopicRange(NamedTuple):
    """The entries ``(after, upto]`` of one topic-partition, with a guess of their size in bytes.

    ``sparse``: it is no loss if none of them is there. ``first``: the first of them when the range was planned, where
    it is a loss if that one is no longer there.
    """

    topic: str
    after: Position
    upto: Position
    bytes_estimate: int = 0
    sparse: bool = False
    first: Position | None = None


@dataclass(frozen=True)
class StreamOffset:
    """Where a stream stands: one position per topic-partition.

    ``tasks`` is the number of tasks the batch was planned with. ``begins`` says after which position a topic is read
    that appears for the first time, where that is not its earliest entry, or that comes again because the target
    refused it; it is read from the end offset of a batch, so a replay repeats it. ``attempt`` makes the offset of
    another attempt at the same ranges a different one. ``firsts`` are the first entries of ranges that go on in a later
    ledger, as they were when the batch was planned. ``initial`` marks the value of ``initialOffset``, which Spark
    does not store. Positions may be :class:`CutPosition` where the query was started inside a batch.
    """

    positions: Mapping[str, Position] = field(default_factory=dict)
    tasks: int = 1
    initial: bool = False
    begins: Mapping[str, Position] = field(default_factory=dict)
    attempt: int = 0
    firsts: Mapping[str, Position] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what Spark stores. Version 1: positions by namespace and topic, ``ledger:entry``, with keys sorted.

        ``v`` version, ``n`` tasks, ``o`` positions; where there are any: ``b`` begins, ``a`` attempt, ``f`` firsts,
        ``c`` cuts, ``ledger:entry:batch index``, of which the position is one of ``o`` or ``b``. Keys that a release
        does not know it leaves out.
        """
        body: dict[str, Any] = {"n": self.tasks, "o": _grouped(self.positions), "v": OFFSET_VERSION}
        if self.begins:
            body = {"b": _grouped(self.begins), **body}
        if self.attempt:
            body["a"] = self.attempt
        if self.firsts:
            body["f"] = _grouped(self.firsts)
        if cuts := _cuts(self.positions) | _cuts(self.begins):
            body["c"] = _grouped(cuts, _cut_text)
        return {"init": True, **body} if self.initial else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StreamOffset:
        """Read a stored offset; raises ValueError for another version, which is never reinterpreted."""
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
        """The same positions as a value that Spark stores."""
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


def _cut_text(cut: CutPosition) -> str:
    return f"{cut}:{cut.batch_index}"


def _parse_cut(text: str) -> CutPosition:
    position, _, batch_index = text.rpartition(":")
    return CutPosition(*Position.parse(position), int(batch_index))


def _with_cuts(positions: dict[str, Position], cuts: Mapping[str, CutPosition]) -> dict[str, Position]:
    return positions | {topic: cut for topic, cut in cuts.items() if positions.get(topic) == cut} if cuts else positions


def entries_between(after: Position, upto: Position) -> int:
    """How many entries ``(after, upto]`` holds as far as two positions tell.

    Exact inside one ledger, because entry ids are dense; across ledgers the known part, the entries of the last one.
    """
    if upto <= after:
        return 0
    return upto.entry - after.entry if upto.ledger == after.ledger else upto.entry + 1


def share_limit(available: Mapping[str, int], limit: int, turn: int) -> dict[str, int]:
    """Share an entry limit over partitions in proportion to what each has to offer.

    Every partition that takes part gets at least one; with more partitions than the limit has entries only ``limit``
    of them take part, chosen by ``turn`` so that over several batches none starves. The sum never exceeds the limit.
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
    """Return the end of a range of at most ``count`` entries after ``after``, where ``following`` is the next entry.

    Never beyond ``last``, never before ``following``. In a ledger in front of that of ``last`` it may lie beyond the
    ledger's end: see :func:`last_in_ledger`.
    """
    assert after < following <= last, (after, following, last)
    assert count >= 1, count
    return min(Position(following.ledger, following.entry + count - 1), last)


def last_in_ledger(first: Position, end: Position, following: Callable[[Position], Position | None]) -> Position:
    """Return the last entry of ``[first, end]`` that is there, in the ledger of both, which may end before ``end``.

    ``following`` gives the entry after a position, None if there is none. It is called about log2 of the distance.
    """

    def is_beyond(entry: int) -> bool:
        found = following(Position(first.ledger, entry - 1))
        return found is None or found.ledger != first.ledger

    return Position(first.ledger, first.entry + bisect_left(range(first.entry + 1, end.entry + 1), True, key=is_beyond))


def ranges_between(
    start: StreamOffset, end: StreamOffset, bytes_per_entry: Mapping[str, int] | None = None
) -> list[TopicRange]:
    """Return the ranges of a batch. Raises ValueError naming every topic that went backwards.

    Where ``end`` says where a topic begins, that counts. Another one that only ``end`` knows begins at its earliest
    entry; one that only ``start`` knows no longer exists. Behind an initial offset only what ``end`` says is read: it
    is the one that Spark stores.
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
    """Put ranges into at most ``tasks`` lists; a topic-partition never spans two.

    ``balanced``: the largest first into the least loaded. ``stable``: by hash of the name, so that the same ranges
    give the same lists in every run.
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
    """Read ``startingOffsets`` or ``endingOffsets``: one word for all topics, or JSON per topic or partition.

    Values are ``earliest``, ``latest``, -2, -1, ``ledger:entry``, ``ledger:entry:batch index``, or a serialized message
    id as base64 or as a list of its bytes. A start names the first entry that is read, so the result is the entry
    before it; an end names the last one. Raises ValueError that says what is wrong.
    """
    if not text.lstrip().startswith("{"):
        return _parse_point(text.strip(), inclusive_start=inclusive_start)
    try:
        body = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not JSON ({problem}); {_POINTS_TEXT}") from None
    points: dict[str, Position] = {}
    for name, value in body.items():
        topic = TopicName.parse(name)
        if isinstance(value, Mapping):
            for index, point in value.items():
                points[str(topic.partition(int(index)))] = _parse_point(point, inclusive_start=inclusive_start)
        else:
            points[str(topic)] = _parse_point(value, inclusive_start=inclusive_start)
    return points


def parse_times(text: str) -> int | dict[str, int]:
    """Read ``startingTime`` or ``endingTime``: ms since the epoch, ISO 8601 with a zone, or JSON of these per topic or
    partition. Raises ValueError that says what is wrong."""
    if not text.lstrip().startswith("{"):
        return _parse_time(text.strip())
    try:
        body = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not JSON ({problem}); {_TIMES_TEXT}") from None
    times: dict[str, int] = {}
    for name, value in body.items():
        topic = TopicName.parse(name)
        if isinstance(value, Mapping):
            times |= {str(topic.partition(int(index))): _parse_time(time) for index, time in value.items()}
        else:
            times[str(topic)] = _parse_time(value)
    return times


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
    """What is given for a topic-partition, or for the partitioned topic it belongs to; None if nothing is."""
    own = points.get(topic)
    return points.get(str(TopicName.parse(topic).base)) if own is None else own


def check_points_named(points: Mapping[str, object], topics: Collection[str]) -> None:
    """Raises OptionError for positions of topics that are not read."""
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
    """``ledger:entry``, ``ledger:entry:batch index``, or a serialized id as base64 or as a list of its bytes."""
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

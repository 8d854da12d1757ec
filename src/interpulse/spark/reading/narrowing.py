"""Topics, partitions, positions and times that the filters of a query rule out before anything is read.

Filters only shorten ranges. Each of them goes back to Spark, which decides about rows.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import java_string_hash, murmur3_hash
from interpulse.wire.ids import message_id_from_wire

CLOCK_SLACK_MS: Final = 300_000
"""Tolerance of publish times, which come from producers' clocks: a message may follow one with a later time."""


class Interval(NamedTuple):
    """A closed interval. None means unbounded."""

    low: Any = None
    high: Any = None

    def holds(self, value: Any) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


_EVERYTHING: Final = Interval()


@dataclass(frozen=True)
class Narrowing:
    """The part of a read that filters leave. ``topics`` and ``keys`` are None if they are not restricted."""

    topics: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()
    partitions: Interval = _EVERYTHING
    ledgers: Interval = _EVERYTHING
    entries: Interval = _EVERYTHING
    positions: Interval = _EVERYTHING
    times_ms: Interval = _EVERYTHING
    keys: frozenset[bytes] | None = None
    style: str = "pulsar"

    def topics_of(self, topics: Sequence[str], *, routed_by_key: Iterable[str] = ()) -> list[str]:
        """Return the topics that may have rows.

        ``routed_by_key`` are the partitioned topics, listed with all their partitions, whose producers route by key.
        """
        counts = dict.fromkeys(routed_by_key, 0)
        for topic in topics:
            base = str(TopicName.parse(topic).base)
            if base in counts:
                counts[base] += 1
        return [topic for topic in topics if self._may_have_rows(TopicName.parse(topic), counts)]

    def _may_have_rows(self, topic: TopicName, counts: dict[str, int]) -> bool:
        shown = str(topic.base if self.style == "kafka" else topic)
        if self.topics is not None and shown not in self.topics:
            return False
        if not all(shown.startswith(prefix) for prefix in self.prefixes):
            return False
        if not topic.is_partition:
            return self.style == "kafka" or self.partitions == _EVERYTHING or self.partitions.holds(-1)
        count = counts.get(str(topic.base), 0)
        if count and self.keys is not None and topic.partition_index not in _partitions_of(self.keys, count):
            return False
        return self.partitions.holds(topic.partition_index)

    @property
    def after(self) -> Position | None:
        """Return the position up to which nothing is wanted, or None if positions are not filtered."""
        bounds = [] if self.positions.low is None else [_before(self.positions.low)]
        if self.ledgers.low is not None:
            is_exact = self.ledgers.low == self.ledgers.high and self.entries.low is not None
            bounds.append(_before(Position(self.ledgers.low, self.entries.low if is_exact else 0)))
        return max(bounds, default=None)

    @property
    def upto(self) -> Position | None:
        """Return the position behind which nothing is wanted, or None if positions are not filtered."""
        bounds = [] if self.positions.high is None else [self.positions.high]
        if self.ledgers.high is not None:
            is_exact = self.ledgers.low == self.ledgers.high and self.entries.high is not None
            end = Position(self.ledgers.high, self.entries.high) if is_exact else Position(self.ledgers.high + 1, -1)
            bounds.append(end)
        return min(bounds, default=None)


def _before(position: Position) -> Position:
    return Position(position.ledger, position.entry - 1)


def narrowed_by(filters: Iterable[Filter], style: str = "pulsar") -> Narrowing:
    """Return what is left when all filters hold. Filters of other columns or kinds leave everything."""
    by_column: dict[str, list[Filter]] = defaultdict(list)
    for item in filters:
        path: tuple[str, ...] = getattr(item, "attribute", ())
        if len(path) == 1:
            by_column[path[0]].append(item)
    names = {"topic": "topic", "key": "key", "partition": "partition", "time": "timestamp"}
    if style != "kafka":
        names = {"topic": "__topic", "key": "__key", "partition": "__partition", "time": "__publishTime"}
    times = _interval(by_column[names["time"]])
    return Narrowing(
        topics=_values(by_column[names["topic"]]),
        prefixes=tuple(item.value for item in by_column[names["topic"]] if isinstance(item, StringStartsWith)),
        partitions=_interval(by_column[names["partition"]]),
        ledgers=_interval(by_column["__ledgerId"]),
        entries=_interval(by_column["__entryId"]),
        positions=_positions(_values(by_column["__messageId"])),
        times_ms=Interval(*(None if time is None else _milliseconds(time) for time in times)),
        keys=_values(by_column[names["key"]]),
        style=style,
    )


def _interval(filters: Iterable[Filter]) -> Interval:
    """Return the interval of a column's values. An excluded end is included here; Spark excludes it."""
    lows, highs = [], []
    for item in filters:
        if isinstance(item, GreaterThan | GreaterThanOrEqual | EqualTo):
            lows.append(item.value)
        if isinstance(item, LessThan | LessThanOrEqual | EqualTo):
            highs.append(item.value)
        if isinstance(item, In) and (values := [value for value in item.value if value is not None]):
            lows.append(min(values))
            highs.append(max(values))
    return Interval(max(lows, default=None), min(highs, default=None))


def _values(filters: Iterable[Filter]) -> frozenset[Any] | None:
    """Return the values that a column may have, or None for any."""
    allowed = [
        frozenset([item.value] if isinstance(item, EqualTo) else item.value)
        for item in filters
        if isinstance(item, EqualTo | In)
    ]
    return frozenset.intersection(*allowed) if allowed else None


def _positions(message_ids: frozenset[Any] | None) -> Interval:
    if not message_ids:
        return _EVERYTHING
    try:
        positions = [message_id_from_wire(pb.MessageIdData.FromString(bytes(id_))).position for id_ in message_ids]
    except (DecodeError, TypeError):
        return _EVERYTHING  # no row has such an id, as Spark finds out
    return Interval(min(positions), max(positions))


def _milliseconds(time: datetime) -> int:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def _partitions_of(keys: Iterable[bytes], count: int) -> set[int]:
    """Return the partitions to which producers may route these keys: text or bytes (in base64), with either hash."""
    partitions = set()
    for key in keys:
        for text in (key, base64.b64encode(key)):
            partitions |= {murmur3_hash(text) % count, java_string_hash(text.decode("utf-8", "replace")) % count}
    return partitions

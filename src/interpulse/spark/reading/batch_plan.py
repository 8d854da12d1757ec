"""Plan of a batch read, made once on the driver: ranges, and their split among tasks. Pure but for its view."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.offsets import (
    TopicRange,
    check_not_late,
    check_points_named,
    entries_between,
    pack_ranges,
    point_of,
    times_of,
)
from interpulse.spark.reading.narrowing import CLOCK_SLACK_MS, Narrowing
from interpulse.spark.reading.planner import Ledger, SourceView, TopicEnd
from interpulse.spark.reading.read_options import ReadOptions

log = logging.getLogger(__name__)


def plan_batch(options: ReadOptions, view: SourceView, narrowing: Narrowing) -> list[list[TopicRange]]:
    """Return the ranges of each task. Raise OptionError for positions that do not fit, and TopicNotFound."""
    discovered = list(view.discover())
    for points in (options.starting_offsets, options.ending_offsets):
        if isinstance(points, Mapping):
            check_points_named(points, discovered)
    topics = narrowing.topics_of(discovered, routed_by_key=_routed_by_key(options, discovered))
    ends = view.ends(topics)
    gone = [topic for topic in topics if topic not in ends]
    if gone:
        raise TopicNotFound(
            f"{', '.join(gone)}: no longer there, though listed a moment ago or in the metadata of their topic; "
            f"deleted, perhaps by the broker as inactive (brokerDeleteInactiveTopicsEnabled)"
        )
    ranges = _narrowed(_asked(options, view, ends), view, narrowing)
    return _tasks(options, view, ranges)


def _routed_by_key(options: ReadOptions, topics: Sequence[str]) -> set[str]:
    """Return the topics whose producers route by key, and whose partitions are all read."""
    if options.key_routing != "hash":
        return set()
    alone = {str(TopicName.parse(name).base) for name in (*options.topics, *options.assigned) if "-partition-" in name}
    return {str(TopicName.parse(name).base) for name in topics} - alone


def _asked(options: ReadOptions, view: SourceView, ends: Mapping[str, TopicEnd]) -> list[TopicRange]:
    """Return the ranges that the options ask for."""
    times = times_of(options.starting_time, ends)
    positions = view.before(times) if times else {}
    check_not_late(times, positions, options.late_start or "error")
    starts = {topic: positions.get(topic, ends[topic].last) for topic in times}
    until = times_of(options.ending_time, ends)
    stops = view.before(until) if until else {}
    return [
        # A start at the earliest entry accepts any first entry.
        TopicRange(topic, after, upto, first=None if after == EARLIEST else Position(after.ledger, after.entry + 1))
        for topic, end in ends.items()
        if (after := starts.get(topic, _point(options.starting_offsets, topic, EARLIEST)))
        < (upto := min(stops.get(topic, _point(options.ending_offsets, topic, LATEST)), end.last))
    ]


def _point(points: object, topic: str, default: Position) -> Position:
    point = point_of(points, topic) if isinstance(points, Mapping) else points
    return point if isinstance(point, Position) else default


def _narrowed(ranges: Sequence[TopicRange], view: SourceView, narrowing: Narrowing) -> list[TopicRange]:
    """Return the parts of the ranges that the filters leave. Producers' clocks are not trusted to the second."""
    low, high = narrowing.times_ms
    names = [item.topic for item in ranges]
    starts = view.before(dict.fromkeys(names, low - CLOCK_SLACK_MS)) if low is not None else None
    stops = view.before(dict.fromkeys(names, high + CLOCK_SLACK_MS)) if high is not None else {}
    parts = []
    for item in ranges:
        after = max(item.after, narrowing.after or EARLIEST)
        if starts is not None:
            after = max(after, starts.get(item.topic, item.upto))
        upto = min(item.upto, narrowing.upto or LATEST, stops.get(item.topic, LATEST))
        if after < upto:
            sparse = (after, upto) != (item.after, item.upto)
            parts.append(item._replace(after=after, upto=upto, sparse=sparse))
    return parts


def _tasks(options: ReadOptions, view: SourceView, ranges: Sequence[TopicRange]) -> list[list[TopicRange]]:
    ledgers = view.ledgers([item.topic for item in ranges]) if ranges else {}
    pieces = split_ranges(ranges, options, ledgers)
    count = max(options.max_partitions, options.min_partitions or 0)
    size_max = options.max_bytes_per_partition or options.max_entries_per_partition
    if options.tasks_max is None and size_max:
        count = max(count, len(pieces))
    elif len(pieces) > count and (options.min_partitions or size_max):
        log.warning("pieces share tasks, maxPartitions bounds them pieces=%d tasks=%d", len(pieces), count)
    return pack_ranges(pieces, count, options.plan_mode)


_USUAL_BYTES: Final = 1024


class _Run(NamedTuple):
    """Consecutive entries of one ledger."""

    ledger: int
    first: int
    entries: int
    bytes: int


def split_ranges(
    ranges: Sequence[TopicRange], options: ReadOptions, ledgers: Mapping[str, Sequence[Ledger]]
) -> list[TopicRange]:
    """Return the ranges with their sizes, split where the options ask for more or smaller ones.

    ``ledgers`` are by topic-partition, in order. If a topic-partition's are unknown, only the entries in the ledger of
    the range's end are split, and those before it stay in one piece.
    """
    runs = {item: _runs(item, ledgers.get(item.topic, ())) for item in ranges}
    whole = sum(run.bytes for parts in runs.values() for run in parts)
    return [piece for item, parts in runs.items() for piece in _cut(item, parts, _pieces(parts, whole, options))]


def _pieces(runs: Sequence[_Run], whole: int, options: ReadOptions) -> int:
    """Return the number of pieces of a range, from its share of all bytes and the maximum size."""
    count, size = sum(run.entries for run in runs), sum(run.bytes for run in runs)
    wanted = [1]
    if options.min_partitions is not None:
        wanted.append(math.ceil(options.min_partitions * size / max(whole, 1)))
    if options.max_bytes_per_partition is not None:
        wanted.append(math.ceil(size / options.max_bytes_per_partition))
    if options.max_entries_per_partition is not None:
        wanted.append(math.ceil(count / options.max_entries_per_partition))
    return min(max(wanted), max(count, 1))


def _runs(item: TopicRange, ledgers: Sequence[Ledger]) -> list[_Run]:
    """Return the entries of a range by ledger."""
    if not ledgers:
        first = item.after.entry + 1 if item.after.ledger == item.upto.ledger else 0
        count = entries_between(item.after, item.upto)
        return [_Run(item.upto.ledger, first, count, item.bytes_estimate or count * _USUAL_BYTES)]
    runs = []
    for ledger in ledgers:
        first = item.after.entry + 1 if ledger.id == item.after.ledger else 0
        last = min(item.upto.entry, ledger.entries - 1) if ledger.id == item.upto.ledger else ledger.entries - 1
        if item.after.ledger <= ledger.id <= item.upto.ledger and last >= first:
            count = last - first + 1
            runs.append(_Run(ledger.id, first, count, count * ledger.bytes // max(ledger.entries, 1)))
    return runs


def _cut(item: TopicRange, runs: Sequence[_Run], pieces: int) -> list[TopicRange]:
    """Return pieces with equally many entries each, which together are the range."""
    count, size = sum(run.entries for run in runs), sum(run.bytes for run in runs)
    if pieces <= 1:
        return [item._replace(bytes_estimate=size)]
    cuts = [count * number // pieces for number in range(1, pieces)]
    ends = [*(_nth(runs, cut) for cut in cuts), item.upto]
    starts = [item.after, *ends]
    firsts = [item.first, *(_nth(runs, cut + 1) for cut in cuts)]
    return [
        item._replace(after=after, upto=upto, bytes_estimate=size // pieces, first=first)
        for after, upto, first in zip(starts, ends, firsts, strict=False)
        if after < upto
    ]


def _nth(runs: Sequence[_Run], number: int) -> Position:
    """Return the position of the entry with this number, counted from 1."""
    for run in runs:
        if number <= run.entries:
            return Position(run.ledger, run.first + number - 1)
        number -= run.entries
    raise AssertionError(number)

"""Plan of a batch read, made once on the driver: ranges, and the tasks that read them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.offsets import TopicRange, check_not_late, check_points_named, pack_ranges, point_of, times_of
from interpulse.spark.reading.narrowing import CLOCK_SLACK_MS, Narrowing
from interpulse.spark.reading.planner import SourceView, TopicEnd
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.reading.splitting import SplitHints, split_ranges

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
    found = view.before(times) if times else {}
    check_not_late(times, found, options.late_start or "error")
    starts = {topic: found.get(topic, ends[topic].last) for topic in times}
    until = times_of(options.ending_time, ends)
    stops = view.before(until) if until else {}
    return [
        TopicRange(topic, after, upto, first=_first_behind(after))
        for topic, end in ends.items()
        if (after := starts.get(topic, _point(options.starting_offsets, topic, EARLIEST)))
        < (upto := min(stops.get(topic, _point(options.ending_offsets, topic, LATEST)), end.last))
    ]


def _first_behind(after: Position) -> Position | None:
    """Return the first entry that must exist. A start at the earliest entry accepts any."""
    return None if after == EARLIEST else Position(after.ledger, after.entry + 1)


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
    hints = SplitHints(options.min_partitions, options.max_bytes_per_partition, options.max_entries_per_partition)
    ledgers = view.ledgers([item.topic for item in ranges]) if ranges else {}
    pieces = split_ranges(ranges, hints, ledgers)
    count = max(options.max_partitions, options.min_partitions or 0)
    if options.tasks_max is None and (hints.bytes_max or hints.entries_max):
        count = max(count, len(pieces))
    elif len(pieces) > count and hints.any:
        log.warning("pieces share tasks, maxPartitions bounds them pieces=%d tasks=%d", len(pieces), count)
    return pack_ranges(pieces, count, options.plan_mode)

"""Starts and ends by publish time, and the strategy for topic-partitions without a message that late."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from interpulse.spark.offsets import check_points_named, point_of
from interpulse.spark.options.option import OptionError


def times_of(times: int | Mapping[str, int] | None, topics: Collection[str]) -> dict[str, int]:
    """Return the times of topic-partitions. Raise OptionError for topics that are not read."""
    if times is None:
        return {}
    if isinstance(times, int):
        return dict.fromkeys(topics, times)
    check_points_named(times, topics)
    return {topic: time_ms for topic in topics if (time_ms := point_of(times, topic)) is not None}


def check_not_late(times: Mapping[str, int], found: Collection[str], strategy: str) -> None:
    """Raise OptionError for topic-partitions without a message that late, unless ``strategy`` allows them."""
    late = [f"{topic} at {times[topic]}" for topic in sorted(set(times) - set(found))]
    if late and strategy == "error":
        raise OptionError(
            f"startingTime: no message was published at or after it in {', '.join(late[:5])}"
            f"{f' and {len(late) - 5} others' if len(late) > 5 else ''}; startingOffsetsByTimestampStrategy=latest "
            f"starts at their ends"
        )

"""Minimum amount of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.spark.reading.read_options import ReadOptions


def waits_for_more(
    options: ReadOptions, unread: Mapping[str, int], bytes_per_entry: Mapping[str, int], oldest_ms: float
) -> bool:
    """Return True if a minimum is not reached and the oldest unread entry has not waited for ``maxTriggerDelay``.

    ``unread`` counts entries by topic-partition.
    """
    if oldest_ms >= options.max_trigger_delay_ms:
        return False
    size = sum(count * bytes_per_entry.get(topic, 0) for topic, count in unread.items())
    return sum(unread.values()) < (options.min_entries_per_trigger or 0) or size < (options.min_bytes_per_trigger or 0)

"""Whether a micro-batch waits until there is enough to read."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.spark.reading.read_options import ReadOptions

__all__ = ["waits_for_more"]


def waits_for_more(
    options: ReadOptions, unread: Mapping[str, int], bytes_per_entry: Mapping[str, int], oldest_ms: float
) -> bool:
    """Each minimum that is set has to be there, unless the oldest unread entry has waited for ``maxTriggerDelay``.

    ``unread`` counts entries by topic-partition.
    """
    if oldest_ms >= options.max_trigger_delay_ms:
        return False
    size = sum(count * bytes_per_entry.get(topic, 0) for topic, count in unread.items())
    return sum(unread.values()) < (options.min_entries_per_trigger or 0) or size < (options.min_bytes_per_trigger or 0)

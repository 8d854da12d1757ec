"""Options about tasks, filters and planning that exclude or need each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from interpulse.spark.options.option import Purpose

_SPLITTING: Final = {
    "min_partitions": "minPartitions",
    "max_bytes_per_partition": "maxBytesPerPartition",
    "max_entries_per_partition": "maxEntriesPerPartition",
}


def tasks_problems(values: Mapping[str, Any], purpose: Purpose) -> Iterator[str]:
    """Return the problems of the options, by the names of their fields."""
    splitting = [name for key, name in _SPLITTING.items() if key in values]
    least, most = values.get("min_partitions"), values.get("tasks_max")
    if least is not None and most is not None and least > most:
        yield f"minPartitions={least} is above maxPartitions={most}"
    if splitting and values.get("preserve_order") is True:
        yield f"{splitting[0]} splits topic-partitions: it excludes preserveOrder=true"
    if purpose == Purpose.STREAM_READ:
        if splitting and values.get("preserve_order") is None:
            yield f"{splitting[0]} splits topic-partitions: in a stream it needs preserveOrder=false"
        if not splitting and values.get("preserve_order") is False:
            yield "preserveOrder=false only counts with minPartitions"
    if values.get("plan_mode") == "stable" and splitting:
        yield f"{splitting[0]} only counts with planMode=balanced"
    if values.get("planner") == "admin" and not values.get("admin_url"):
        yield "planner=admin needs admin.url, where it asks"
    if "key_routing" in values and not values.get("filter_pushdown"):
        yield "keyRouting only counts with filterPushdown=true"

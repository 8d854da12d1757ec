"""Statistics of a partitioned topic, summed over its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Values without a meaningful sum: other times take the latest, averages and limits the largest.
_LARGEST = frozenset(
    {
        "averageMsgSize",
        "backlogQuotaLimitSize",
        "backlogQuotaLimitTime",
        "lastAckedTimestamp",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastExpireTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
        "lastPublishTimeStamp",
        "oldestBacklogMessageAgeSeconds",
        "topicCreationTimeStamp",
    }
)

_EARLIEST = frozenset({"earliestMsgPublishTimeInBacklog", "earliestMsgPublishTimeInBacklogs"})
"""Times whose earliest value counts. 0 and -1 mean none."""

_OF_ALL = frozenset({"connected"})
"""Flags that are true only if they are true for every partition."""


def summed(partitions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add numbers, join lists and merge objects by key. The first of several strings counts."""
    total: dict[str, Any] = {}
    for stats in partitions:
        for key, value in stats.items():
            if key in total:
                total[key] = _joined(key, total[key], value)
            elif isinstance(value, dict):
                total[key] = summed([value])
            else:
                total[key] = list(value) if isinstance(value, list) else value
    return total


def _joined(key: str, left: Any, right: Any) -> Any:
    if isinstance(left, bool) or isinstance(right, bool):
        return bool(left and right) if key in _OF_ALL else bool(left or right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        if key in _EARLIEST:
            return min((value for value in (left, right) if value > 0), default=left)
        return max(left, right) if key in _LARGEST else left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return summed([left, right])
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return left

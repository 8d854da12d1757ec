"""Statistics of a partitioned topic: the sum of its partitions'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["summed"]

# Where a sum would mean nothing: times take the latest, averages and limits the largest.
_LARGEST = frozenset(
    {
        "averageMsgSize",
        "backlogQuotaLimitSize",
        "backlogQuotaLimitTime",
        "earliestMsgPublishTimeInBacklog",
        "earliestMsgPublishTimeInBacklogs",
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


def summed(partitions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers are added, lists joined, objects merged key by key; of texts the first one counts."""
    total: dict[str, Any] = {}
    for stats in partitions:
        for key, value in stats.items():
            total[key] = _joined(key, total[key], value) if key in total else _copied(value)
    return total


def _joined(key: str, left: Any, right: Any) -> Any:
    if isinstance(left, bool) or isinstance(right, bool):
        return bool(left or right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return max(left, right) if key in _LARGEST else left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return summed([left, right])
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return left


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return summed([value])
    return list(value) if isinstance(value, list) else value

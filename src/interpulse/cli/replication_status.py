"""Why does this topic not replicate? The status records of replication as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interpulse.cli.output import print_value

__all__ = ["print_status", "status_as_text"]


def print_status(records: Sequence[Mapping[str, Any]]) -> None:
    """For people, unless another form was chosen."""
    print_value(list(records), status_as_text(records))


def status_as_text(records: Sequence[Mapping[str, Any]]) -> str:
    """A paragraph for each topic and cluster: where it stands, why, what would help, when it is tried again."""
    return "\n".join(line for record in records for line in _lines(record)) or "Nothing is replicated from here."


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    since = f" since {_time(record['since'])}" if record.get("since") else ""
    yield f"{record['topic']} -> {record['cluster']}: {record['state']}{since}{_lag(record)}"
    for title, key in (("reason", "reason"), ("remedy", "remedy"), ("provisioned", "provisioned")):
        if record.get(key):
            yield f"  {title}: {record[key]}"
    if record.get("nextRetryAt"):
        yield f"  next retry: {_time(record['nextRetryAt'])}"


def _lag(record: Mapping[str, Any]) -> str:
    if record.get("lagEntries") is None:
        return ""
    seconds = record.get("lagSeconds")
    behind = f"{record['lagEntries']} entries" if seconds is None else f"{record['lagEntries']} entries, {seconds} s"
    return f", {behind} behind"


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

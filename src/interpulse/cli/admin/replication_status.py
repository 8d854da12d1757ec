"""Status records of replication as sentences: progress, obstacles and remedies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from interpulse.cli.support.watched import show_watched
from interpulse.terminal.output import print_value

Records = Sequence[Mapping[str, Any]]

_TIMES: Final = ("since", "nextRetryAt")


async def show_status(ask: Callable[[], Awaitable[Records]], *, watched: bool, pause_s: float = 2.0) -> None:
    """Print the records for people, unless another format was chosen; for ``watched`` see `show_watched`."""
    await show_watched(ask, _print_status, watched=watched, pause_s=pause_s)


def _print_status(records: Records) -> None:
    dated = [{**record, **{field: _date(record.get(field)) for field in _TIMES}} for record in records]
    print_value(list(records), status_as_text(records), in_table=dated)


def status_as_text(records: Records) -> str:
    """Format a paragraph for each topic and cluster: its state, the reason, the remedy, and the next retry."""
    return "\n".join(line for record in records for line in _lines(record)) or "Nothing is replicated from here."


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    since = f" since {_date(record['since'])}" if record.get("since") else ""
    yield f"{record['topic']} -> {record['cluster']}: {record['state']}{since}{_lag(record)}"
    for title, key in (("reason", "reason"), ("remedy", "remedy"), ("provisioned", "provisioned")):
        if record.get(key):
            yield f"  {title}: {record[key]}"
    if record.get("skippedEntries"):
        count = record["skippedEntries"]
        yield f"  skipped: {count:,} entries, as time to live or an operator moved the cursor past them"
    if record.get("nextRetryAt"):
        yield f"  next retry: {_date(record['nextRetryAt'])}"


def _lag(record: Mapping[str, Any]) -> str:
    """Format the waiting messages, if known, and the entries that hold them."""
    entries, messages, seconds = (record.get(key) for key in ("lagEntries", "lagMessages", "lagSeconds"))
    if entries is None:
        return ""
    counted = f"{entries:,} {'entry' if entries == 1 else 'entries'}"
    if entries == 0:
        counted = "0 messages"
    elif messages is not None:
        counted = f"about {messages:,} {'message' if messages == 1 else 'messages'} ({counted})"
    return f", {counted} behind" if seconds is None else f", {counted}, {seconds} s behind"


def _date(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

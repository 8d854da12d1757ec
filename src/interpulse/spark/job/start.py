"""Start of a new pipeline: at its cursors, at a time, or at positions, as ``start`` of its file says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.spark.offsets import CutPosition, parse_offsets, parse_times, point_of
from interpulse.spark.reading.read_options import SUBSCRIPTION

_WORDS: Final[Mapping[str, Position | None]] = {SUBSCRIPTION: None, "earliest": EARLIEST, "latest": LATEST}
Begin = Position | int | None
"""Start behind a position, at the first message published at or after a time (ms since 1970), or at the cursor."""
_NAMES: Final[Mapping[Begin, str]] = {begin: word for word, begin in _WORDS.items()}


@dataclass(frozen=True)
class Start:
    """Starts of a pipeline. ``topics`` have starts of their own, by topic or partition name."""

    others: Begin = None
    topics: Mapping[str, Begin] = field(default_factory=dict)

    def of(self, name: str) -> Begin:
        """Return the start of a topic-partition."""
        begin = point_of(self.topics, name)
        return self.others if begin is None else begin

    def needs_cursor(self, name: str) -> bool:
        """Return True if the cursor on the source must be set to the start. The stream itself handles the words."""
        return bool(self.topics) or self.of(name) not in _NAMES

    @property
    def offsets(self) -> str:
        """Return ``startingOffsets`` of the stream."""
        return SUBSCRIPTION if self.topics else _NAMES.get(self.others, SUBSCRIPTION)

    def unknown(self, names: set[str]) -> list[str]:
        """Return the names that are neither among these topic-partitions nor their topics."""
        return sorted(self.topics.keys() - names - {str(TopicName.parse(name).base) for name in names})

    def __str__(self) -> str:
        if self.topics:
            return f"as given for {', '.join(self.topics)}"
        if isinstance(self.others, int):
            return datetime.fromtimestamp(self.others / 1000, UTC).isoformat(timespec="milliseconds")
        return self.offsets


def parse_start(value: Any) -> Start:
    """Read ``start``: a word, a time, or a table of positions and times by topic. Raise ValueError with the problem."""
    if isinstance(value, Mapping):
        topics: dict[str, Begin] = {}
        for name, begin in value.items():
            topics |= _of_topic(name, begin)
        if not topics:
            raise ValueError("the table names no topic")
        return Start(topics=topics)
    if value in _WORDS:
        return Start(_WORDS[value])
    time_ms = _time(value)
    if time_ms is None:
        raise ValueError(
            f"{value!r} is not one of {', '.join(_WORDS)}, nor a time with its zone such as 2026-01-31T08:00:00Z, nor "
            f'a table of positions: "tenant/namespace/topic" = "ledger:entry"'
        )
    return Start(time_ms)


def _time(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | datetime):
        return None
    with suppress(ValueError):
        parsed = parse_times(value.isoformat() if isinstance(value, datetime) else str(value))
        return parsed if isinstance(parsed, int) else None
    return None


def _of_topic(name: str, value: Any) -> Mapping[str, Begin]:
    if isinstance(value, Mapping):
        partitions: dict[str, Begin] = {}
        for index, begin in value.items():
            partitions |= _of_topic(str(TopicName.parse(name).partition(int(index))), begin)
        return partitions
    topic, time_ms = str(TopicName.parse(name)), _time(value)
    if time_ms is not None:
        return {topic: time_ms}
    try:
        parsed = parse_offsets(json.dumps({topic: value}, default=str), inclusive_start=True)
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}; nor is it a time with its zone such as 2026-01-31T08:00:00Z") from None
    assert isinstance(parsed, dict)
    position = parsed[topic]
    if isinstance(position, CutPosition):
        raise ValueError(f"{name}: {value!r} is inside an entry, which is copied whole: leave the batch index away")
    return {topic: position}


async def first_message(source: AdminClient, name: str, begin: Begin) -> MessageId | None:
    """Return the first message of a topic-partition, or None to start behind its last one.

    Raise refusals of the source.
    """
    if begin is None or begin == EARLIEST:
        return MessageId(*EARLIEST)
    if begin == LATEST:
        return None
    if isinstance(begin, Position):
        return MessageId(begin.ledger, begin.entry + 1)
    entry = await source.topics.message_id_at(name, begin)
    return MessageId(int(entry["ledgerId"]), max(0, int(entry["entryId"])))

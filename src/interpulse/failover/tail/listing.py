"""List of a tail: ``tail.jsonl`` and ``conflicts.jsonl`` of an incident, with their sums in ``tail-summary.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interpulse.clock import iso_time, now_ms
from interpulse.failover.journal import replace_file, sync_directory
from interpulse.failover.site import SiteAccess
from interpulse.failover.tail.incident import Incident, LastCopy
from interpulse.failover.tail.reading import copied_since, cursors_of, local_keys, tail_of, topic_state
from interpulse.failover.tail.rows import KeyedMessage, conflicts, keyed
from interpulse.failover.tail.sameness import Lost
from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements

TAIL: Final = "tail.jsonl"
CONFLICTS: Final = "conflicts.jsonl"
MERGED: Final = "reconcile.json"
"""File of an incident whose list `reconcile` merges, or has merged."""
_SUMMARY: Final = "tail-summary.json"

Write = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class TopicTail:
    """Sums of one topic-partition."""

    topic: str
    state: str
    messages: int
    bytes: int
    conflicts: int
    oldest_ms: int | None
    """Publish time of the first message of the tail."""
    lost: Lost | None
    after: Position
    """Position at the lost site behind which the tail begins."""
    copies_after: Position
    """Position at the site that serves behind which copies of the tail and messages since the promotion are."""

    def to_json(self) -> dict[str, Any]:
        """Return the members that ``-o json`` prints."""
        return {
            "topic": self.topic,
            "state": self.state,
            "messages": self.messages,
            "bytes": self.bytes,
            "conflicts": self.conflicts,
            "oldest": self.oldest_ms,
            "lost": self.lost and self.lost.to_json(),
            "after": str(self.after),
            "copiesAfter": str(self.copies_after),
        }


async def list_tail(lost: SiteAccess, serving: SiteAccess, incident: Incident, directory: Path) -> dict[str, Any]:
    """Write the list of an incident, and return its sums. The lost site answers again, and nothing is changed on it.

    Memory holds the distinct keys of one topic-partition's tail, and a batch of entries. Files of before are replaced
    when the list is complete. Raise the failures of the clusters, and OSError.
    """
    cursors = await cursors_of(lost, {last.topic: last for last in incident.topics})
    with ExitStack() as files:
        tail, conflicting = (files.enter_context(json_lines(directory / name)) for name in (TAIL, CONFLICTS))
        topics = [
            await _list_topic(lost, serving, last, cursors.get(str(last.topic), {}), tail, conflicting)
            for last in incident.topics
        ]
    summary = _summary(incident, topics)
    replace_file(directory / _SUMMARY, json.dumps(summary, ensure_ascii=False) + "\n")
    return summary


def listed_before(directory: Path) -> dict[str, Any] | None:
    """Return the sums of a list that is complete; None without one."""
    path = directory / _SUMMARY
    summary: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return summary


async def _list_topic(
    lost: SiteAccess,
    serving: SiteAccess,
    last: LastCopy,
    cursors: Mapping[str, Acknowledgements],
    tail: Write,
    conflicting: Write,
) -> TopicTail:
    state = await topic_state(lost, serving, last)
    copied = await copied_since(serving, state)
    messages = size = 0
    oldest = None
    keys: dict[str, KeyedMessage] = {}
    async for message in tail_of(lost, state, copied, cursors):
        tail(message.to_json())
        messages += message.messages
        size += message.bytes
        oldest = message.publish_time if oldest is None else oldest
        if message.key is not None:
            keys[message.key] = keyed(message)
    found = list(conflicts(str(last.topic), keys, await local_keys(serving, state, keys))) if keys else []
    for conflict in found:
        conflicting(conflict.to_json())
    copies_after = state.copy if last.promoted is None else last.promoted
    sums = messages, size, len(found), oldest, state.lost
    return TopicTail(str(last.topic), str(state.state), *sums, state.start, copies_after)


def _summary(incident: Incident, topics: list[TopicTail]) -> dict[str, Any]:
    return {
        "epoch": incident.epoch,
        "lost": incident.lost,
        "to": incident.to,
        "listed": iso_time(now_ms()),
        "messages": sum(each.messages for each in topics),
        "bytes": sum(each.bytes for each in topics),
        "conflicts": sum(each.conflicts for each in topics),
        "lostPositions": [each.lost.to_json() for each in topics if each.lost],
        "topics": [each.to_json() for each in topics],
    }


@contextmanager
def json_lines(path: Path) -> Iterator[Write]:
    """Write a file of JSON lines, which appears complete and durable at the end of the block. Raise OSError."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

        def write(row: Mapping[str, Any]) -> None:
            file.write(encode(row) + "\n")

        yield write
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)

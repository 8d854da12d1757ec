"""Backlog of the source behind a position: entries, their messages, and the age of the oldest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress

_READ_S: Final = 5.0
_READ_BYTES: Final = 64 * 1024


class Backlog(NamedTuple):
    """Backlog of a topic-partition.

    ``messages`` is counted if all entries were read, else estimated from the first ones, and None if none were read.
    ``oldest_ms`` is the publish time of the first message.
    """

    entries: int
    messages: int | None = None
    oldest_ms: int | None = None

    @property
    def seconds(self) -> float | None:
        """Return the age of the oldest message, by the clock of its producer."""
        if not self.entries:
            return 0.0
        return None if self.oldest_ms is None else round(max(0, now_ms() - self.oldest_ms) / 1000, 3)


class _First(NamedTuple):
    after: Position
    entries: int
    messages: int
    published_ms: int


class SourceBacklog:
    """Reader of backlogs. A sample stays valid while the position of its topic-partition does not change."""

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._session: Session | None = None
        self._first: dict[str, _First] = {}

    async def behind(self, name: str, after: Position, stats: Mapping[str, Any]) -> Backlog:
        """Return the backlog behind ``after``, from these ``stats``."""
        entries = entries_after(stats, after)
        if not entries:
            return Backlog(0, 0)
        first = self._first.get(name)
        if first is None or first.after != after:
            first = await self._read(name, after, last_entry(stats))
            if first is None:
                return Backlog(entries)
            self._first[name] = first
        messages = max(entries, round(first.messages * entries / first.entries))
        return Backlog(entries, messages, first.published_ms)

    async def _read(self, name: str, after: Position, upto: Position) -> _First | None:
        """Read a sample. Return None if nothing arrives in time."""
        if self._session is None:
            self._session = self._address.session()
        reader = EntryReader(
            self._session,
            TopicName.parse(name),
            after=after,
            upto=upto,
            buffer_bytes=_READ_BYTES,
            subscription_prefix="interpulse-lag",
        )
        metadata = []
        with suppress(PulsarError, TimeoutError):
            async with asyncio.timeout(_READ_S), reader:
                await reader.open()
                metadata = [entry.parsed.metadata for entry in await reader.read_batch()]
        if not metadata:
            return None
        messages = sum(max(1, entry.num_messages_in_batch) for entry in metadata)
        return _First(after, len(metadata), messages, metadata[0].publish_time)

    def forget(self, names: set[str]) -> None:
        """Forget topic-partitions that are no longer asked for."""
        self._first = {name: first for name, first in self._first.items() if name not in names}

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def entries_after(stats: Mapping[str, Any], after: Position) -> int:
    """Return how many entries the ledgers of internal stats hold behind a position."""
    counts = ledger_counts(stats)
    newer = sum(count for ledger, count in counts if ledger > after.ledger)
    return newer + sum(max(0, count - after.entry - 1) for ledger, count in counts if ledger == after.ledger)


def ledger_counts(stats: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the ledgers of internal stats with their entry counts.

    The open ledger's count is stored beside the list.
    """
    last = last_entry(stats)
    listed = ((int(ledger["ledgerId"]), int(ledger["entries"])) for ledger in stats.get("ledgers", ()))
    return [(number, last.entry + 1 if number == last.ledger else count) for number, count in listed]


def last_entry(stats: Mapping[str, Any]) -> Position:
    """Return the last entry of internal stats."""
    text = stats.get("lastConfirmedEntry")
    return Position.parse(str(text)) if text else EARLIEST


def cursor_position(stats: Mapping[str, Any], cursor: str) -> Position | None:
    """Return the acknowledged position of a cursor of internal stats, or None if it does not exist."""
    position = stats.get("cursors", {}).get(cursor)
    return None if position is None else Position.parse(str(position["markDeletePosition"]))

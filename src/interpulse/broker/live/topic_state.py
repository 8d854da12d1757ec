"""The stored cursors and counters of one topic.

Cursors are stored below the record of the topic, its counters in it. Writes and deletions of one topic are serial.
After `close` nothing is written, so that no cursor of a deleted topic reappears.

The subscriptions of a first partition belong to its record: their set, and their properties, change together with the
record's version. So a caller that copies them to new partitions notices a change. Where brokers share the metadata,
only the owner writes the record, so no copy misses one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Layout
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import Change, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict
from interpulse.storage.cursors import CursorRecord, CursorStore, RecordedCursors
from interpulse.storage.logs.topic_records import decode_record

_ChangeCursors = Callable[[Sequence[Change], Mapping[str, int | None]], Awaitable[None]]


class TopicCounters(NamedTuple):
    """Counters that never decrease. None = not used yet."""

    epoch: int | None = None
    """The epoch of exclusive producers."""

    last_index: int | None = None
    """The index of the newest message when it was last stored."""


class TopicStateStore:
    """The store of one topic's state. All methods raise MetadataError if the store fails."""

    __slots__ = ("_closed", "_codec", "_cursors", "_metadata", "_shared", "_topic", "_writing")

    def __init__(
        self, metadata: MetadataStore, topic: TopicName, cursors: CursorStore | None = None, layout: Layout = ALONE
    ) -> None:
        self._metadata = metadata
        self._topic = topic
        self._cursors = (cursors or RecordedCursors(metadata, layout.cursors)).of(topic.log_name)
        self._codec = layout.topic_records
        self._shared = layout.shared
        self._writing = asyncio.Lock()
        self._closed = False

    @property
    def _record_key(self) -> str:
        return keys.topic_record(self._topic)

    async def read_cursors(self) -> dict[str, CursorRecord]:
        """Return every stored cursor by name."""
        return await self._cursors.load()

    async def write_cursor(self, name: str, cursor: CursorRecord) -> None:
        """Store a new cursor, or one with changes besides acknowledgements; durable on return."""
        await self._change_subscriptions(lambda also, expect: self._cursors.put(name, cursor, also=also, expect=expect))

    async def write_pointer(self, name: str, cursor: CursorRecord) -> None:
        """Store a cursor where brokers share topics; raise ServiceNotReady where that would have no effect."""
        async with self._writing:
            if self._closed:
                raise self._closing()
            await self._cursors.put(name, cursor)

    async def write_cursors(self, cursors: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store acknowledgements of these subscriptions, together; durable on return."""
        async with self._writing:
            if not self._closed:
                await self._cursors.flush(cursors, last=last)

    async def delete_cursor(self, name: str) -> None:
        """Delete one cursor."""
        await self._change_subscriptions(lambda also, expect: self._cursors.delete(name, also=also, expect=expect))

    async def read_counters(self) -> TopicCounters:
        stored = await self._metadata.get(self._record_key)
        other = decode_record(self._codec, self._topic.log_name, stored.value).other if stored else {}
        return TopicCounters(other.get("topicEpoch"), other.get("lastIndex"))

    async def write_epoch(self, epoch: int) -> None:
        """Store the epoch; durable on return. Raises ServiceNotReady if the topic was deleted."""
        await self._write("topicEpoch", epoch)

    async def write_index(self, index: int) -> None:
        """Store the last index of a message; durable on return. Raises ServiceNotReady if the topic was deleted."""
        await self._write("lastIndex", index)

    def stop(self) -> None:
        """Ignore later writes; a running one may still be applied."""
        self._closed = True

    async def close(self) -> None:
        """Wait for the running write; later ones are ignored."""
        async with self._writing:
            self._closed = True

    def _closing(self) -> ServiceNotReady:
        return ServiceNotReady(f"Topic {self._topic} is being closed")

    async def _change_subscriptions(self, change: _ChangeCursors) -> None:
        async with self._writing:
            if self._closed:
                return
            if self._topic.partition_index == 0 and not self._shared:
                await self._with_record(lambda record: record, change)
            else:
                await change((), {})

    async def _write(self, counter: str, value: int) -> None:
        await self._with_record(lambda record: self._codec.amended(record, **{counter: value}), self._metadata.commit)

    async def _with_record(self, changed: Callable[[bytes], bytes], commit: _ChangeCursors) -> None:
        async def attempt() -> None:
            stored = await self._metadata.get(self._record_key)
            if stored is None or self._closed:
                raise self._closing()
            await commit([Put(self._record_key, changed(stored.value))], {self._record_key: stored.version})

        await retry_on_conflict(attempt)  # a new ledger may change the record at the same time

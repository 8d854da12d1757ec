"""The stored cursors and counters of one topic, in the metadata store.

Cursors lie below the record of the topic, its counters in it. Writes and deletions of one topic follow each other.
After `close` nothing is written any more, so that no cursor of a deleted topic comes back.

The subscriptions of a first partition go with its record: which there are, and what clients set of them, changes
together with the record's version. So a caller that takes them over for new partitions sees that they have changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from interpulse.broker import metadata_paths as keys
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName, decode_local_name, encode_local_name
from interpulse.storage.api import Change, Delete, MetadataStore, Put, scan_pages
from interpulse.storage.cas import retry_on_conflict

__all__ = ["TopicCounters", "TopicStateStore"]

_CURSORS_PER_PAGE = 100


class TopicCounters(NamedTuple):
    """Counters that only grow. None = not used yet."""

    epoch: int | None = None
    """Of exclusive producers."""

    last_index: int | None = None
    """The index that was given to a message when this was last stored."""


class TopicStateStore:
    """See the module. All methods raise MetadataError if the store fails."""

    __slots__ = ("_closed", "_metadata", "_topic", "_writing")

    def __init__(self, metadata: MetadataStore, topic: TopicName) -> None:
        self._metadata = metadata
        self._topic = topic
        self._writing = asyncio.Lock()
        self._closed = False

    @property
    def _record_key(self) -> str:
        return keys.topic_record(self._topic)

    async def read_cursors(self) -> dict[str, bytes]:
        """Every stored cursor by name."""
        prefix = f"{self._record_key}/"
        found: dict[str, bytes] = {}
        async for page in scan_pages(self._metadata, prefix, limit=_CURSORS_PER_PAGE):
            found |= {decode_local_name(key.removeprefix(prefix)): stored.value for key, stored in page}
        return found

    async def write_cursor(self, name: str, cursor: bytes) -> None:
        """Store a cursor that is new, or of which more changed than what was acknowledged; durable on return."""
        await self._change_subscriptions(Put(self._cursor_key(name), cursor))

    async def write_cursors(self, cursors: Mapping[str, bytes]) -> None:
        """Store what was acknowledged on these subscriptions, together; durable on return."""
        async with self._writing:
            if cursors and not self._closed:
                await self._metadata.commit([Put(self._cursor_key(name), each) for name, each in cursors.items()])

    async def delete_cursor(self, name: str) -> None:
        """Forget one cursor."""
        await self._change_subscriptions(Delete(self._cursor_key(name)))

    async def read_counters(self) -> TopicCounters:
        stored = await self._metadata.get(self._record_key)
        record = json.loads(stored.value) if stored else {}
        return TopicCounters(record.get("topicEpoch"), record.get("lastIndex"))

    async def write_epoch(self, epoch: int) -> None:
        """Store the epoch; durable on return. Raises ServiceNotReady if the topic is gone."""
        await self._write("topicEpoch", epoch)

    async def write_index(self, index: int) -> None:
        """Store the last index of a message; durable on return. Raises ServiceNotReady if the topic is gone."""
        await self._write("lastIndex", index)

    def stop(self) -> None:
        """Later writes do nothing; one under way may still be applied."""
        self._closed = True

    async def close(self) -> None:
        """Wait for the write under way; later ones do nothing."""
        async with self._writing:
            self._closed = True

    async def _change_subscriptions(self, change: Change) -> None:
        async with self._writing:
            if self._closed:
                return
            if self._topic.partition_index == 0:
                await self._change_record(lambda record: record, change)
            else:
                await self._metadata.commit([change])

    async def _write(self, counter: str, value: int) -> None:
        await self._change_record(lambda record: json.dumps(json.loads(record) | {counter: value}).encode())

    async def _change_record(self, change: Callable[[bytes], bytes], *also: Change) -> None:
        async def attempt() -> None:
            stored = await self._metadata.get(self._record_key)
            if stored is None or self._closed:
                raise ServiceNotReady(f"Topic {self._topic} is being closed")
            put = Put(self._record_key, change(stored.value))
            await self._metadata.commit([put, *also], {self._record_key: stored.version})

        await retry_on_conflict(attempt)  # a ledger may begin at the same time

    def _cursor_key(self, name: str) -> str:
        return f"{self._record_key}/{encode_local_name(name)}"

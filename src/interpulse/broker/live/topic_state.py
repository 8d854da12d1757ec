"""The stored state of one topic: its cursors, its counters, and the index of its broker entry metadata.

Cursors are stored below the record of the topic, its counters in it. Writes and deletions of one topic are serial.
After `close` nothing is written, so that no cursor of a deleted topic reappears.

The subscriptions of a first partition belong to its record: their set, and their properties, change together with the
record's version. So a caller that copies them to new partitions notices a change. Where brokers share the metadata,
only the owner writes the record, so no copy misses one.

Broker entry metadata is the time and the index that the broker puts in front of the entries of a persistent topic. The
index counts the messages of a topic from 0; an entry carries that of its last message. It never decreases: a loaded
topic continues after its newest entry. If that entry was trimmed or has no index, the topic's record has it. So the
record is updated before entries are trimmed, and when a broker that does not count loads a topic that was counted
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Layout
from interpulse.broker.live.entry_metadata import EntryMetadata, broker_entry_metadata_of
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import Change, Log, MetadataStore, Put
from interpulse.storage.cas import retry_on_conflict
from interpulse.storage.cursors import CursorRecord, CursorStore, RecordedCursors
from interpulse.storage.logs.topic_records import decode_record
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import with_broker_metadata

_ChangeCursors = Callable[[Sequence[Change], Mapping[str, int | None]], Awaitable[None]]


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
        await self._change_subscriptions(lambda also, expect: self._cursors.delete(name, also=also, expect=expect))

    async def read_counters(self) -> tuple[int | None, int | None]:
        """Return the epoch of exclusive producers, and the newest stored index of a message; None = not used yet."""
        stored = await self._metadata.get(self._record_key)
        other = decode_record(self._codec, self._topic.log_name, stored.value).other if stored else {}
        return other.get("topicEpoch"), other.get("lastIndex")

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


class BrokerEntryInterceptor:
    """The source of broker entry metadata for one topic. Entries get it in the order in which they are appended."""

    def __init__(self, fields: BrokerEntryFields, now_ms: Callable[[], int], last_index: int) -> None:
        """``last_index`` is the index of the newest message; -1 = none has one."""
        self._fields = fields
        self._now_ms = now_ms
        self._last_index = last_index

    def intercept(self, entry: bytes, metadata: EntryMetadata | None) -> bytes:
        """Return the entry to store. Append it immediately; if that is refused, its indexes are skipped."""
        added = pb.BrokerEntryMetadata()
        if self._fields.timed:
            added.broker_timestamp = self._now_ms()
        if self._fields.indexed:
            self._last_index += 1 if metadata is None else max(metadata.message_count, 1)
            added.index = self._last_index
        return with_broker_metadata(added, entry)


class TopicBrokerEntryMetadata:
    """The broker entry metadata of one topic, created when it is loaded."""

    __slots__ = ("_log", "_remembered", "_state", "interceptor")

    def __init__(self, log: Log, state: TopicStateStore, remembered: int | None) -> None:
        """``remembered`` is the index in the topic's record; None = entries of this topic never had any."""
        self.interceptor: BrokerEntryInterceptor | None = None
        """The interceptor; None while entries are stored unchanged."""
        self._log = log
        self._state = state
        self._remembered = remembered

    @property
    def possible(self) -> bool:
        """True if some entries of the topic may have broker entry metadata."""
        return self._remembered is not None

    async def begin(self, fields: BrokerEntryFields | None, now_ms: Callable[[], int]) -> None:
        """Add these fields to every entry from now on; None = add nothing. Call it once, before the first append."""
        if fields is None and self._remembered is None:
            return
        last = await self._last_index()
        if self._remembered is None or fields is None or not fields.indexed:
            await self._remember(last)
        if fields is not None:
            self.interceptor = BrokerEntryInterceptor(fields, now_ms, last)

    async def before_trim(self) -> None:
        """Store the index before durable entries, perhaps also the newest, are removed."""
        if self.interceptor is not None:
            await self._remember(await self._last_index())

    async def _last_index(self) -> int:
        remembered = -1 if self._remembered is None else self._remembered
        newest = await self._log.read(self._log.last_position, entries_max=1, bytes_max=1)
        newest_metadata = broker_entry_metadata_of(newest[0].entry) if newest else pb.BrokerEntryMetadata()
        return max(newest_metadata.index, remembered) if newest_metadata.HasField("index") else remembered

    async def _remember(self, index: int) -> None:
        if index != self._remembered:
            await self._state.write_index(index)
            self._remembered = index

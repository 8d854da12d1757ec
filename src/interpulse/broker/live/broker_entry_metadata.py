"""Broker entry metadata: the time and the index that the broker puts in front of the entries of a persistent topic.

The index counts the messages of a topic from 0; an entry carries that of its last message. It never decreases: a loaded
topic continues after its newest entry. If that entry was trimmed or has no index, the topic's record has it. So the
record is updated before entries are trimmed, and when a broker that does not count loads a topic that was counted
before.
"""

from __future__ import annotations

from collections.abc import Callable

from interpulse.broker.live.entry_metadata import EntryMetadata, broker_entry_metadata_of
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.storage.api import Log
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import with_broker_metadata


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

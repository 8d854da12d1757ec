"""The target cluster of lanes: named senders, and reading back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from interpulse.client.consuming.entry_reader import EntryReader, ask_last_position
from interpulse.client.lookup.lookup import store_schema
from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.producing.unconfirmed import Receipt
from interpulse.client.session import Session
from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.spark.lanes import NO_SEQUENCE, LaneState, starting_lane
from interpulse.spark.processes.process_client import patiently
from interpulse.spark.topic_map import TopicMap
from interpulse.spark.writing.collected_runs import CollectedRuns
from interpulse.spark.writing.target_topics import TargetTopics, check_takes_entries, is_deduplicating
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire.entries import ParsedEntry
from interpulse.wire.ids import signed

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_TAIL: Final = 100
"""The entries to look back for the first one of an earlier attempt, if the topic does not de-duplicate."""


class StoredEntry(NamedTuple):
    """An entry of a lane that is stored on the target."""

    sequence_id: int
    position: Position
    highest_id: int = NO_SEQUENCE
    """The id of the last message of an entry that holds several with ids of their own."""
    parsed: ParsedEntry | None = None


class LaneSender:
    """The named producer of a lane. It sends whole entries and records their outcome."""

    def __init__(
        self, sender: EntrySender, reopen: Callable[[], Awaitable[EntrySender]], unproven_after: Position | None
    ):
        """Take a sender. ``reopen`` opens another one of the same name."""
        self._sender = sender
        self._reopen = reopen
        self._receipts: deque[asyncio.Future[Receipt]] = deque()
        self._markers: set[asyncio.Future[Receipt]] = set()
        """Receipts to come that are for markers."""
        self.runs: CollectedRuns | None = None
        """Collects the positions of copies, if it is set before the first entry."""
        self.unproven_after = unproven_after
        """Start of a search for entries of an earlier attempt, until an entry has proven that the topic de-duplicates.

        The broker may not have recorded such entries. None if the topic is known to de-duplicate.
        """
        self.last_position: Position | None = None
        """The position of the last entry with a receipt."""
        self.refused: list[int] = []
        """Sequence ids that the broker answered with the position of a repeat."""
        self.sent_count = 0
        """Number of receipts to come for everything that was sent."""
        self.received_count = 0
        """Number of receipts that were taken, in the order of sending."""

    @property
    def name(self) -> str:
        return self._sender.name

    @property
    def last_sequence_id(self) -> int:
        """Highest sequence id of the name at the broker when the producer was opened; -1 if none."""
        return self._sender.last_sequence_id

    @property
    def schema(self) -> SchemaInfo | None:
        """Schema of the producer: that of the topic, unless another was requested."""
        return self._sender.schema

    @property
    def schema_version(self) -> bytes:
        """The version of the schema at the broker, empty without one."""
        return self._sender.schema_version

    async def send(
        self,
        sequence_ids: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[bytes],
        *,
        is_chunk: bool = False,
        highest_id: int | None = None,
    ) -> None:
        """Send entries with the message count of each, waiting only for room. Raises what stopped the sender.

        Several entries are no chunks. While :attr:`unproven_after` says that one has still to show that the topic
        de-duplicates, entries come one by one. ``highest_id`` is that of the last message of a single entry that holds
        several with ids of their own.
        """
        assert self.unproven_after is None or len(entries) == 1, "entries of an unproven lane are sent one by one"
        highest = sequence_ids[-1] if highest_id is None else highest_id
        says_all = not is_chunk and highest == sequence_ids[-1]  # brokers take such in runs
        receipts = await self._sender.send_run(
            sequence_ids, counts, entries, highest_sequence_id=None if says_all else highest, is_chunk=is_chunk
        )
        self._receipts += receipts
        self.sent_count += len(receipts)
        if self.unproven_after is not None and not is_chunk:
            await self._prove(highest)

    async def send_marker(self, sequence_id: int, entry: bytes) -> None:
        """Send a marker, which is no entry of the lane. Raises what stopped the sender."""
        receipt = await self._sender.send_marker(sequence_id, entry)
        self._markers.add(receipt)
        self._receipts.append(receipt)
        self.sent_count += 1

    async def _prove(self, sent: int) -> None:
        """Open the producer again: a broker that de-duplicates has the sequence id. Raises NotAllowed."""
        await self.drain()
        await self._sender.close()
        self._sender = await self._reopen()
        if self._sender.last_sequence_id < sent:
            raise _not_deduplicating(self._sender.topic)
        self.unproven_after = None

    async def drain(self) -> None:
        """Wait for all receipts; raises what stopped the sender."""
        await self._sender.drain()
        while self._receipts:
            self._take()

    def take_receipts(self) -> None:
        """Take the receipts that are there, without waiting. :meth:`drain` raises what stopped the sender."""
        while self._receipts and self._receipts[0].done() and self._receipts[0].exception() is None:
            self._take()

    def _take(self) -> None:
        receipt = self._receipts[0].result()
        future = self._receipts.popleft()
        refused = receipt.duplicates
        self.received_count += 1
        self.refused += refused
        self.last_position = receipt.last_position or self.last_position
        if future in self._markers:
            self._markers.remove(future)
        elif self.runs is not None:
            self.runs.add_receipt(receipt, refused)

    async def close(self) -> None:
        for future in self._receipts:
            future.cancel()
        await self._sender.close()


def _not_deduplicating(topic: TopicName) -> NotAllowed:
    return NotAllowed(
        f"{topic} does not de-duplicate, so nothing can be written there exactly once; switch it on: "
        f"namespaces set-deduplication {topic.namespace_name} --enable"
    )


async def open_sender(session: Session, make: Callable[[], EntrySender]) -> EntrySender:
    """Return an open sender, or wait while the cluster is away. ``make`` is called for every attempt."""

    async def opened() -> EntrySender:
        async with AsyncExitStack() as refused:
            sender = await refused.enter_async_context(make())
            await sender.open()
            refused.pop_all()
        return sender

    return await patiently(session, opened)


class BrokerTarget:
    """The target cluster of one task."""

    def __init__(
        self,
        session: Session,
        options: WriteOptions,
        *,
        source: Session | None = None,
        admin: AdminClient | None = None,
        permit: Callable[[str, int], Awaitable[None]] | None = None,
    ) -> None:
        """Set up the target. ``source`` is the cluster whose schemas the entries use.

        ``admin`` shows if topics de-duplicate, unless ``assumeDeduplication`` decides it; without it the first entry
        proves it. ``permit`` is called with the topic-partition and the sequence id of an entry before it is sent, and
        raises if it must not be sent.
        """
        self._session = session
        self._options = options
        self._admin = admin
        self._permit = permit
        self._schemas = TargetSchemas(session, source, options.topic_map)
        self._producer_names: dict[str, str] = {}
        """The producer names of lanes, by their topic-partition."""

    async def open_lane(
        self, topic: str, producer_name: str, *, is_new: bool, schema: SchemaInfo | None = None
    ) -> LaneSender:
        """Open a lane, waiting a while for another holder of the name to end. Raises ProducerBusy after that.

        ``is_new`` means that the lane has no known state. Raises reasons against writing there exactly once.
        """
        self._producer_names[topic] = producer_name
        name = self._target_of(topic)
        if is_new:
            await check_takes_entries(TargetTopics(self._session), str(name))
        make = partial(
            EntrySender,
            self._session,
            name,
            producer_name,
            schema=schema,
            schema_of_topic=schema is None,
            window_entries=1000,
            window_bytes=self._options.max_pending_bytes,
            takeover_timeout_ms=self._options.takeover_timeout_ms,
            encrypted=self._options.mode == "entry",  # entries are written as they were published
            permit=None if self._permit is None else partial(self._permit, topic),
        )
        reopen = partial(open_sender, self._session, make)
        async with AsyncExitStack() as refused:  # an open sender holds the producer's name
            sender = await refused.enter_async_context(await reopen())
            unproven_after = None
            if is_new and not self._options.assume_deduplication:
                if self._admin is None:
                    end = await last_position(self._session, name)
                    unproven_after = Position(end.ledger, max(-1, end.entry - _TAIL))
                elif not await is_deduplicating(self._admin, str(name)):
                    raise _not_deduplicating(sender.topic)
            refused.pop_all()
        return LaneSender(sender, reopen, unproven_after)

    def _target_of(self, topic: str) -> TopicName:
        return self._options.topic_map.target(TopicName.parse(topic))

    async def read_back(self, topic: str, after: Position, producer_name: str) -> AsyncIterator[StoredEntry]:
        """Yield the entries stored under a name behind a position."""
        name = self._target_of(topic)
        end = await last_position(self._session, name)
        if end.entry < 0 or end == after:
            return
        if end < after:
            after = EARLIEST  # the target was rebuilt, and its positions are different now
        outages = self._session.outages
        async with EntryReader(
            self._session,
            name,
            after=after,
            upto=end,
            subscription_prefix="interpulse-check",
            reconnect_timeout_ms=0 if outages is None else outages.timeout_ms,
        ) as reader:
            await patiently(self._session, reader.open)
            while entries := await reader.read_batch():
                for entry in entries:
                    metadata = entry.parsed.metadata
                    if metadata.producer_name == producer_name:
                        first, highest = signed(metadata.sequence_id), signed(metadata.highest_sequence_id)
                        yield StoredEntry(first, entry.position, max(first, highest), entry.parsed)

    async def schema_version(self, topic: str, version: bytes) -> bytes | None:
        """Return the version on the target for one of the source; None: the entry is written without one."""
        name = self._producer_names.get(topic)
        return await patiently(self._session, lambda: self._schemas.version(topic, version, producer_name=name))


async def last_position(session: Session, topic: TopicName) -> Position:
    """Return the position of the last entry of a topic-partition, waiting while the cluster is away."""
    return await patiently(session, lambda: ask_last_position(session, topic))


async def lane_start(session: Session, topic: str, producer_name: str, *, takeover_timeout_ms: int) -> LaneState:
    """Return the state of a lane before its first range: its last sequence id, and the end of its topic."""
    name = TopicName.parse(topic)
    async with EntrySender(
        session, name, producer_name, schema_of_topic=True, takeover_timeout_ms=takeover_timeout_ms, encrypted=True
    ) as sender:
        await sender.open()
        last_id = sender.last_sequence_id
    return starting_lane(last_id, await last_position(session, name))


class TargetSchemas:
    """Registers each schema on the target for its first entry, and caches the target's version."""

    def __init__(self, target: Session, source: Session | None, topic_map: TopicMap) -> None:
        """Set the clusters. Without a source, versions have no meaning here, so entries are written without one.

        ``topic_map`` maps names of source topics to names on the target.
        """
        self._target = target
        self._map = topic_map
        self._source = source
        self._versions: dict[tuple[TopicName, bytes], bytes] = {}

    async def version(self, topic: str, version: bytes, *, producer_name: str | None) -> bytes | None:
        """Return the target's version for one of the source. Raises IncompatibleSchema."""
        if self._source is None:
            return None
        name = TopicName.parse(topic)
        key = (name.base, version)
        if key not in self._versions:
            self._versions[key] = await self._translated(self._source, name, version, producer_name)
        return self._versions[key]

    async def _translated(self, source: Session, name: TopicName, version: bytes, producer_name: str | None) -> bytes:
        """Register the schema under the name of the entry's own partition.

        Pulsar finds no topic under the name of a partitioned topic here.
        """
        stored = await source.lookup.schema(name.base, version)
        if stored is None:
            raise MetadataError(
                f"{name.base}: the source does not know schema version {version.hex()} of its own entries"
            )
        there = self._map.target(name)
        connection = await self._target.connect(there)
        return await store_schema(connection, there, stored.schema, producer_name=producer_name)

"""Executors: write the Arrow batches of one task and wait for every receipt."""

from __future__ import annotations

import asyncio
import base64
import itertools
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from interpulse.client.entry_sender import EntrySender
from interpulse.client.sending import Receipt
from interpulse.client.session import Session
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.replication.copy import renumber
from interpulse.spark.lane_writer import EntryRows, LaneReport, LaneWriter
from interpulse.spark.lanes import LaneState
from interpulse.spark.portal import portal, relaxed_collector, session_for
from interpulse.spark.sink_rows import OutgoingMessage, build_messages, entry_rows, outgoing_messages
from interpulse.spark.target_view import BrokerTarget
from interpulse.spark.write_options import WriteOptions
from interpulse.spark.writer import TopicWritten
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import build_entry
from interpulse.wire.hashing import murmur3_hash

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_rows"]


class _Writer(Protocol):
    async def write(self, batch: pa.RecordBatch) -> None: ...

    async def finish(self) -> list[TopicWritten]: ...

    async def close(self) -> None: ...


def write_rows(
    options: WriteOptions, batches: Iterator[pa.RecordBatch], states: Mapping[str, LaneState]
) -> list[TopicWritten]:
    """Send all rows; what was written per topic-partition. Raises the first failure."""
    run = portal().run
    with relaxed_collector():
        writer = run(_open_writer(options, states))
        try:
            for batch in batches:
                run(writer.write(batch))
            return run(writer.finish())
        finally:
            run(writer.close())


async def _open_writer(options: WriteOptions, states: Mapping[str, LaneState]) -> _Writer:
    session = await session_for(options.service_url, options.operation_timeout_ms, options.access)
    if not options.exactly_once:
        return _PublishingWriter(options, session)
    source = None
    if options.schema_source_url is not None:
        source = await session_for(
            options.schema_source_url, options.operation_timeout_ms, options.schema_source_access
        )
    target = BrokerTarget(
        session,
        window_bytes=options.max_pending_bytes,
        takeover_timeout_ms=options.takeover_timeout_ms,
        source=source,
    )
    assert options.producer_name
    assert options.source_cluster
    assert options.target_cluster
    lanes = LaneWriter(
        target,
        producer_name=options.producer_name,
        source_cluster=options.source_cluster,
        target_cluster=options.target_cluster,
        states=states,
        isolate=options.isolate,
    )
    return _LaneRows(lanes, options.topic)


class _LaneRows:
    """Exactly once: rows of entry mode through lanes."""

    def __init__(self, lanes: LaneWriter, topic: str | None) -> None:
        self._lanes = lanes
        self._topic = topic

    async def write(self, batch: pa.RecordBatch) -> None:
        await self._lanes.write(entry_rows(batch, self._topic))

    async def finish(self) -> list[TopicWritten]:
        return [_lane_written(report) for report in await self._lanes.finish()]

    async def close(self) -> None:
        await self._lanes.close()


def _lane_written(report: LaneReport) -> TopicWritten:
    return TopicWritten(
        report.topic,
        report.state.sequence_id,
        report.state.target,
        report.state.claimed,
        report.entries,
        report.messages,
        report.bytes,
        report.replays,
        tuple(report.skipped.items()),
        report.after,
        report.held,
    )


@dataclass
class _Publisher:
    """One producer, and what it has sent."""

    sender: EntrySender
    next_sequence_id: int
    receipts: list[asyncio.Future[Receipt]] = field(default_factory=list)
    messages: int = 0
    sent_bytes: int = 0

    async def send(self, entry: bytes, messages: int) -> None:
        sequence_id, self.next_sequence_id = self.next_sequence_id, self.next_sequence_id + messages
        highest = sequence_id + messages - 1
        sending = self.sender.send_entry(
            entry, sequence_id=sequence_id, highest_sequence_id=highest if messages > 1 else 0, num_messages=messages
        )
        self.receipts.append(await sending)
        self.messages += messages
        self.sent_bytes += len(entry)


class _PublishingWriter:
    """At least once: messages packed into batches, or entries published anew as they are."""

    def __init__(self, options: WriteOptions, session: Session) -> None:
        self._options = options
        self._session = session
        self._codec = pb.CompressionType.Value(options.compression_type.upper())
        self._prefix = f"{options.producer_name or 'spark-interpulse'}-{secrets.token_hex(5)}"
        self._publishers: dict[str, _Publisher] = {}
        self._partitions: dict[str, int] = {}
        self._turn = itertools.count(secrets.randbelow(1 << 16))

    async def write(self, batch: pa.RecordBatch) -> None:
        if self._options.mode == "entry":
            await self._write_entries(entry_rows(batch, self._options.topic))
        else:
            await self._write_messages(outgoing_messages(batch, self._options.topic))

    async def _write_entries(self, rows: EntryRows) -> None:
        for topic, raw, payload in zip(rows.topics, rows.metadata, rows.payloads, strict=True):
            publisher = await self._publisher(topic)
            count = pb.MessageMetadata.FromString(raw).num_messages_in_batch
            metadata = renumber(raw, publisher.sender.name, publisher.next_sequence_id)
            await publisher.send(build_entry(metadata, payload), count)

    async def _write_messages(self, messages: Sequence[OutgoingMessage]) -> None:
        """Rows of one partition become Pulsar batches; a batch ends with the Arrow batch at the latest."""
        turn = next(self._turn)
        grouped: dict[str, list[OutgoingMessage]] = {}
        for message in messages:
            grouped.setdefault(await self._partition_of(message, turn), []).append(message)
        for topic, group in grouped.items():
            publisher = await self._publisher(topic)
            for packed in self._packed(group):
                await self._send(publisher, packed)

    async def _send(self, publisher: _Publisher, packed: Sequence[OutgoingMessage]) -> None:
        entry = build_messages(
            packed,
            producer_name=publisher.sender.name,
            sequence_id=publisher.next_sequence_id,
            publish_time_ms=time.time_ns() // 1_000_000,
            batched=self._options.batching_max_messages > 1 and not packed[0].deliver_at_ms,
            codec=self._codec,
        )
        await publisher.send(entry, len(packed))

    def _packed(self, messages: Sequence[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
        """Cut into batches; delayed messages travel alone."""
        packed: list[OutgoingMessage] = []
        size = 0
        for message in messages:
            length = len(message.value or b"")
            full = (
                len(packed) >= self._options.batching_max_messages or size + length > self._options.batching_max_bytes
            )
            if packed and (full or message.deliver_at_ms or packed[0].deliver_at_ms):
                yield packed
                packed, size = [], 0
            packed.append(message)
            size += length
        if packed:
            yield packed

    async def _partition_of(self, message: OutgoingMessage, turn: int) -> str:
        """The topic-partition of a row: as it says, by key, else in turn."""
        count = self._partitions.get(message.topic)
        if count is None:
            name = TopicName.parse(message.topic)
            count = 0 if name.is_partition else await self._session.lookup.partitions(name, create=False)
            self._partitions[message.topic] = count
        if count == 0:
            return message.topic
        if message.partition is not None:
            if not 0 <= message.partition < count:
                raise InvalidRequest(f"{message.topic} has {count} partitions, a row asks for {message.partition}")
            return str(TopicName.parse(message.topic).partition(message.partition))
        index = murmur3_hash(_routing_key(message)) % count if message.key is not None else turn % count
        return str(TopicName.parse(message.topic).partition(index))

    async def _publisher(self, topic: str) -> _Publisher:
        publisher = self._publishers.get(topic)
        if publisher is None:
            sender = EntrySender(
                self._session, TopicName.parse(topic), self._prefix, window_bytes=self._options.max_pending_bytes
            )
            await sender.open()
            publisher = self._publishers[topic] = _Publisher(sender, sender.last_sequence_id + 1)
        return publisher

    async def finish(self) -> list[TopicWritten]:
        written = []
        for topic, publisher in self._publishers.items():
            await publisher.sender.drain()
            last = publisher.receipts[-1].result().position if publisher.receipts else EARLIEST
            written.append(
                TopicWritten(
                    topic,
                    last_position=last,
                    entries=len(publisher.receipts),
                    messages=publisher.messages,
                    bytes=publisher.sent_bytes,
                )
            )
        return written

    async def close(self) -> None:
        publishers, self._publishers = self._publishers, {}
        for publisher in publishers.values():
            for future in publisher.receipts:
                future.cancel()
            await publisher.sender.close()


def _routing_key(message: OutgoingMessage) -> bytes:
    """A binary key is routed by the text it travels as."""
    assert message.key is not None
    return message.key if message.key_is_text else base64.b64encode(message.key)

"""At least once: rows become messages in batches, or entries published anew as they are."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.producing.router import Router
from interpulse.client.producing.send_queue import Receipt
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import IncompatibleSchema, InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaType
from interpulse.replication.copy import SKIP_MARKER, renumber
from interpulse.spark.lanes import UNTOUCHED
from interpulse.spark.writing.kafka_style import with_own_names
from interpulse.spark.writing.lane_report import LaneReport
from interpulse.spark.writing.lane_writer import EntryRows
from interpulse.spark.writing.row_encoders import RowEncoders
from interpulse.spark.writing.sink_rows import OutgoingMessage, build_messages, entry_rows, outgoing_messages
from interpulse.spark.writing.target_schemas import TargetSchemas
from interpulse.spark.writing.target_topics import TargetTopics, check_takes_entries
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import build_entry

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["PublishingWriter"]

_TEXT_SCHEMAS: Final = (SchemaType.STRING, SchemaType.JSON)


@dataclass
class _Publisher:
    """One producer, and what it has sent."""

    sender: EntrySender
    next_sequence_id: int
    report: LaneReport
    receipts: list[asyncio.Future[Receipt]] = field(default_factory=list)

    async def send(self, entry: bytes, messages: int) -> None:
        sequence_id, self.next_sequence_id = self.next_sequence_id, self.next_sequence_id + messages
        highest = sequence_id + messages - 1
        sending = self.sender.send_entry(
            entry, sequence_id=sequence_id, highest_sequence_id=highest if messages > 1 else 0, num_messages=messages
        )
        self.receipts.append(await sending)
        self.report.entries += 1
        self.report.messages += messages
        self.report.bytes += len(entry)

    async def finish(self) -> LaneReport:
        """Wait for all receipts and report."""
        await self.sender.drain()
        if self.receipts:
            self.report.state = UNTOUCHED._replace(target=self.receipts[-1].result().position)
        return self.report


class PublishingWriter:
    """At least once: messages packed into batches, or entries published anew as they are."""

    def __init__(
        self,
        options: WriteOptions,
        session: Session,
        schemas: TargetSchemas,
        topics: TargetTopics,
        record: StructType | None = None,
    ) -> None:
        """``record``: the columns that are encoded by the schema of their topic."""
        self._options = options
        self._record = record
        self._encoders = None
        if record is not None:
            self._encoders = RowEncoders(session, record, SchemaType[options.schema_type.upper()])
        self._session = session
        self._schemas = schemas
        self._topics = topics
        self._codec = pb.CompressionType.Value(options.compression_type.upper())
        self._prefix = f"{options.producer_name or 'spark-interpulse'}-{secrets.token_hex(5)}"
        self._publishers: dict[str, _Publisher] = {}
        self._router = Router(mode=options.routing_mode, hashing=options.hashing_scheme)

    async def write(self, batch: pa.RecordBatch) -> None:
        if self._options.mode == "entry":
            await self._write_entries(entry_rows(batch, self._options.topic))
        else:
            batch = with_own_names(batch) if self._options.column_style == "kafka" else batch
            messages = outgoing_messages(batch, self._options.topic, self._record)
            await self._write_messages([await self._encoded(message) for message in messages])

    async def _encoded(self, message: OutgoingMessage) -> OutgoingMessage:
        """With the payload that the schema of its topic makes of its columns."""
        if self._encoders is None or message.row is None:
            return message
        await self._topics.partitions(message.topic)  # which may create it
        encoded = (await self._encoders.encoder(message.topic)).encode(message.row)
        if encoded.key is not None:
            return message._replace(value=encoded.value, key=encoded.key, key_is_text=False)
        return message._replace(value=encoded.value)

    async def _write_entries(self, rows: EntryRows) -> None:
        for topic, raw, payload in zip(rows.topics, rows.metadata, rows.payloads, strict=True):
            if topic not in self._publishers:
                await check_takes_entries(self._topics, topic)
            publisher = await self._publisher(topic)
            metadata = pb.MessageMetadata.FromString(raw)
            if metadata.HasField("marker_type"):
                publisher.report.skipped[SKIP_MARKER] += 1
                continue
            name, version = publisher.sender.name, None
            if metadata.HasField("schema_version"):
                version = await self._schemas.version(topic, metadata.schema_version, producer_name=name)
            renumbered = renumber(raw, metadata, name, publisher.next_sequence_id, version)
            await publisher.send(build_entry(renumbered, payload), metadata.num_messages_in_batch)

    async def _write_messages(self, messages: Sequence[OutgoingMessage]) -> None:
        """Rows of one partition become Pulsar batches; a batch ends with the Arrow batch at the latest."""
        keyless: dict[str, int] = {}
        grouped: dict[str, list[OutgoingMessage]] = {}
        for message in messages:
            grouped.setdefault(await self._partition_of(message, keyless), []).append(message)
        for topic, group in grouped.items():
            publisher = await self._publisher(topic)
            _check_text(publisher.sender, group)
            for packed in self._packed(group):
                await self._send(publisher, packed)

    async def _send(self, publisher: _Publisher, packed: Sequence[OutgoingMessage]) -> None:
        entry = build_messages(
            packed,
            producer_name=publisher.sender.name,
            sequence_id=publisher.next_sequence_id,
            publish_time_ms=now_ms(),
            batched=self._options.batching_max_messages > 1 and not packed[0].deliver_at_ms,
            codec=self._codec,
            schema_version=publisher.sender.schema_version,
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

    async def _partition_of(self, message: OutgoingMessage, keyless: dict[str, int]) -> str:
        """The topic-partition of a row: as it says, by key, else where the other ``keyless`` ones of its topic go."""
        count = await self._topics.partitions(message.topic)
        if count == 0:
            return message.topic
        index = message.partition
        if index is None and message.key is not None:
            index = self._router.choose(_routing_key(message), count)
        if index is None:
            if message.topic not in keyless:
                keyless[message.topic] = self._router.choose(None, count)
            index = keyless[message.topic]
        if not 0 <= index < count:
            raise InvalidRequest(f"{message.topic} has {count} partitions, a row asks for {index}")
        return str(TopicName.parse(message.topic).partition(index))

    async def _publisher(self, topic: str) -> _Publisher:
        publisher = self._publishers.get(topic)
        if publisher is None:
            encoder = None if self._encoders is None else await self._encoders.encoder(topic)
            sender = EntrySender(
                self._session,
                TopicName.parse(topic),
                self._prefix,
                schema=None if encoder is None else encoder.schema,
                schema_of_topic=encoder is None,
                window_bytes=self._options.max_pending_bytes,
                send_timeout_ms=self._options.send_timeout_ms,
            )
            await sender.open()
            publisher = self._publishers[topic] = _Publisher(sender, sender.last_sequence_id + 1, LaneReport(topic))
        return publisher

    async def finish(self) -> list[LaneReport]:
        return [await publisher.finish() for publisher in self._publishers.values()]

    async def close(self) -> None:
        publishers, self._publishers = self._publishers, {}
        for publisher in publishers.values():
            for future in publisher.receipts:
                future.cancel()
            await publisher.sender.close()


def _check_text(sender: EntrySender, messages: Sequence[OutgoingMessage]) -> None:
    """Text is no Avro record and no number: readers that follow the topic's schema would fail."""
    schema = sender.schema
    if schema is not None and schema.type not in _TEXT_SCHEMAS and any(message.is_text for message in messages):
        raise IncompatibleSchema(
            f"{sender.topic} has a schema of type {schema.type.name}, column value holds text: encode it for that "
            f"schema into a BINARY column value"
        )


def _routing_key(message: OutgoingMessage) -> str:
    """A binary key is routed by the text it travels as."""
    assert message.key is not None
    return (message.key if message.key_is_text else base64.b64encode(message.key)).decode()

"""Rows as messages: routed to topic-partitions, packed into batches, and passed to publishers."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from interpulse.client.encryption.entries import Encryptor
from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader
from interpulse.client.producing.producer import Router
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import IncompatibleSchema, InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.lanes import LaneReport
from interpulse.spark.options.option_values import key_paths
from interpulse.spark.processes.process_client import patiently
from interpulse.spark.schemas.payload_columns import schema_of_columns
from interpulse.spark.schemas.payload_encoder import RowEncoder
from interpulse.spark.writing.publishing_writer import PlainPublisher, PlainPublishers
from interpulse.spark.writing.row_lanes import BatchLane, ColumnLane, RowLanes
from interpulse.spark.writing.sink_rows import (
    OutgoingMessage,
    build_messages,
    build_packed,
    outgoing_messages,
    with_own_names,
)
from interpulse.spark.writing.target_topics import TargetTopics
from interpulse.spark.writing.value_runs import ROWS_MIN, PackedRun, is_plain, only_topic, plain_values
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_SCHEMAS: Final = (SchemaType.STRING, SchemaType.JSON)


Publisher = PlainPublisher | BatchLane | ColumnLane
"""One producer on one topic-partition."""
Publishers = PlainPublishers | RowLanes


class MessageWriter:
    """All messages of one task."""

    def __init__(
        self,
        options: WriteOptions,
        topics: TargetTopics,
        publishers: Publishers,
        encoders: RowEncoders | None,
    ) -> None:
        """Prepare the task. ``encoders`` encode columns by the schema of their topic."""
        self._options = options
        self._topics = topics
        self._opening = publishers
        self._encoders = encoders
        self._codec = pb.CompressionType.Value(options.compression_type.upper())
        self._router = Router(mode=options.routing_mode, hashing=options.hashing_scheme)
        self._publishers: dict[tuple[str, str], Publisher] = {}
        self._encryptors: dict[str, Encryptor] = {}

    async def write(self, batch: pa.RecordBatch) -> None:
        """Send rows of one partition as Pulsar batches. A batch ends with the Arrow batch at the latest."""
        batch = with_own_names(batch) if self._options.column_style == "kafka" else batch
        record = None if self._encoders is None else self._encoders.columns
        if await self._write_values(batch, record):
            return
        numbered = self._options.dedup == "column"
        messages = outgoing_messages(batch, self._options.topic, record, numbered=numbered)
        keyless: dict[str, int] = {}
        grouped: dict[tuple[str, str], list[OutgoingMessage]] = {}
        for message in [await self._encoded(message) for message in messages]:
            place = (await self._partition_of(message, keyless), self._opening.producer_of(message))
            grouped.setdefault(place, []).append(message)
        for place, group in grouped.items():
            publisher = self._publishers.get(place) or await self._open(place, group[0])
            _check_text(place[0], publisher.sender.schema, is_text=any(message.is_text for message in group))
            for packed in self._packed(publisher.unsent(group)):
                await self._send(place[0], publisher, packed)

    async def _write_values(self, batch: pa.RecordBatch, record: StructType | None) -> bool:
        """Write rows that have only a value, all together.

        Return False if there are others, or if they cannot be packed.
        """
        options = self._options
        topic = options.topic or only_topic(batch)
        few = batch.num_rows < ROWS_MIN or options.batching_max_messages == 1
        if topic is None or options.exactly_once or few or not is_plain(batch, record):
            return False
        count = await self._topics.partitions(topic)  # may create the topic
        is_text = False
        if self._encoders is None:
            values, is_text = plain_values(batch)
        else:
            values = (await self._encoders.encoder(topic)).encode_all(batch)
            if values is None:
                return False
        place = (_partition(topic, self._opening.keyless_partition(count)) if count else topic, "")
        publisher = self._publishers.get(place)
        if publisher is None:
            (first,) = outgoing_messages(batch.slice(0, 1), topic, record)
            publisher = await self._open(place, first)
        _check_text(place[0], publisher.sender.schema, is_text=is_text)
        ids = publisher.ids(range(batch.num_rows))
        assert isinstance(ids, range), "numbers of at least once follow each other"
        for payload, of_these in PackedRun(values, ids).cut(options.batching_max_messages, options.batching_max_bytes):
            entry = build_packed(
                payload,
                producer_name=publisher.sender.name,
                ids=of_these,
                publish_time_ms=now_ms(),
                codec=self._codec,
                schema_version=publisher.sender.schema_version,
                encryptor=self._encryptors.get(place[0]),
            )
            await publisher.send(entry, of_these)
        return True

    async def _encoded(self, message: OutgoingMessage) -> OutgoingMessage:
        """Return the message with the payload that the topic's schema makes of its columns."""
        if self._encoders is None or message.row is None:
            return message
        await self._topics.partitions(message.topic)  # may create the topic
        encoder = await self._encoders.encoder(message.topic)
        encoded = encoder.encode(message.row)
        if encoder.makes_keys and message.key is not None:
            raise InvalidRequest(
                f"column __key: the schema of {message.topic} keeps its column key there, so a row has no other key: "
                f"leave __key out"
            )
        if encoded.key is not None:
            return message._replace(value=encoded.value, key=encoded.key, key_is_text=False)
        return message._replace(value=encoded.value)

    async def _open(self, place: tuple[str, str], first: OutgoingMessage) -> Publisher:
        topic, _ = place
        encoder = None if self._encoders is None else await self._encoders.encoder(topic)
        self._prepare_encryption(topic)
        publisher = await self._opening.open(topic, first, None if encoder is None else encoder.schema)
        self._publishers[place] = publisher
        return publisher

    def _prepare_encryption(self, topic: str) -> None:
        """Load the encryption keys of a topic. Raises CryptoError for a key that cannot be used."""
        options = self._options
        if options.encryption_keys and topic not in self._encryptors:
            reader = DefaultCryptoKeyReader(public_keys=key_paths(options.encryption_public_keys))
            encryptor = Encryptor(topic, options.encryption_keys, reader, options.crypto_failure_action)
            encryptor.open()
            self._encryptors[topic] = encryptor

    async def _send(self, topic: str, publisher: Publisher, packed: Sequence[OutgoingMessage]) -> None:
        ids = publisher.ids(packed)
        entry = build_messages(
            packed,
            producer_name=publisher.sender.name,
            ids=ids,
            publish_time_ms=now_ms(),
            batched=self._options.batching_max_messages > 1 and not packed[0].travels_alone,
            codec=self._codec,
            schema_version=publisher.sender.schema_version,
            encryptor=self._encryptors.get(topic),
        )
        await publisher.send(entry, ids)

    def _packed(self, messages: Sequence[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
        """Cut messages into batches. Some messages are sent alone."""
        packed: list[OutgoingMessage] = []
        size = 0
        for message in messages:
            length = len(message.value or b"")
            full = (
                len(packed) >= self._options.batching_max_messages or size + length > self._options.batching_max_bytes
            )
            if packed and (full or message.travels_alone or packed[0].travels_alone):
                yield packed
                packed, size = [], 0
            packed.append(message)
            size += length
        if packed:
            yield packed

    async def _partition_of(self, message: OutgoingMessage, keyless: dict[str, int]) -> str:
        """Return the topic-partition of a row: as the row says, by key, or the ``keyless`` one of its topic."""
        count = await self._topics.partitions(message.topic)
        index = message.partition
        if count == 0:
            self._check_plain(message.topic, index)
            return message.topic
        if index is None and message.key is not None:
            # A binary key is routed by the text in which it is sent.
            key = message.key if message.key_is_text else base64.b64encode(message.key)
            index = self._router.choose(key.decode(), count)
        if index is None:
            if message.topic not in keyless:
                keyless[message.topic] = self._opening.keyless_partition(count)
            index = keyless[message.topic]
        if not 0 <= index < count:
            raise InvalidRequest(
                f"{self._partition_column}: {message.topic} has {count} partitions, a row asks for {index}"
            )
        return _partition(message.topic, index)

    @property
    def _partition_column(self) -> str:
        return "column partition" if self._options.column_style == "kafka" else "column __partition"

    def _check_plain(self, topic: str, index: int | None) -> None:
        """Refuse a row with a partition that its topic does not have, or that is not the named one.

        Kafka's style reads a topic without partitions as number 0, so such rows are accepted.
        """
        if index is None or index == TopicName.parse(topic).partition_index:
            return
        if index or self._options.column_style != "kafka":
            raise InvalidRequest(
                f"{self._partition_column}: {topic} has no partitions, a row asks for {index}: leave the column null"
            )

    async def finish(self) -> list[LaneReport]:
        return [await publisher.finish() for publisher in self._publishers.values()]

    async def close(self) -> None:
        publishers, self._publishers = self._publishers, {}
        for publisher in publishers.values():
            await publisher.close()


def _partition(topic: str, index: int) -> str:
    return str(TopicName.parse(topic).partition(index))


def _check_text(topic: str, schema: SchemaInfo | None, *, is_text: bool) -> None:
    """Refuse text for a schema other than text: readers that use the schema would fail."""
    if schema is not None and schema.type not in _TEXT_SCHEMAS and is_text:
        raise IncompatibleSchema(
            f"{topic} has a schema of type {schema.type.name}, column value holds text: encode it for that "
            f"schema into a BINARY column value"
        )


class RowEncoders:
    """Encoders by topic. The schema of a topic is requested for its first row, and cached for the task."""

    def __init__(self, session: Session, columns: StructType, record_type: SchemaType) -> None:
        """Set the columns. ``record_type`` is the type of a schema that the columns make."""
        self._session = session
        self.columns = columns
        self._record_type = record_type
        self._encoders: dict[TopicName, RowEncoder] = {}

    async def encoder(self, topic: str) -> RowEncoder:
        """Return the encoder of a topic. Raises IncompatibleSchema if the columns do not fit its schema."""
        base = TopicName.parse(topic).base
        encoder = self._encoders.get(base)
        if encoder is None:
            stored = await patiently(self._session, lambda: self._session.lookup.schema(base))
            schema = None if stored is None else stored.schema
            if schema is None or schema.type is SchemaType.NONE:  # Pulsar answers a deleted schema with type NONE
                schema = schema_of_columns(self.columns, self._record_type)
            encoder = self._encoders[base] = RowEncoder(str(base), schema, self.columns)
        return encoder

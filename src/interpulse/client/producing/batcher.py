"""Entries of outgoing messages: one message each, a batch of many, or chunks of one."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from interpulse.client.encryption.entries import Encryptor
from interpulse.client.messages import OutgoingMessage
from interpulse.client.producing.unconfirmed import Outgoing
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_one
from interpulse.wire.compression import compress
from interpulse.wire.entries import build_entry
from interpulse.wire.ids import unsigned

_CHUNK_OVERHEAD = 1024
"""Room for checksum, sizes and chunk fields that are not set yet when an entry is measured.

It also covers the headers of storage nodes, which in some installations count against the same limit.
"""


def key_text(key: str | bytes | None) -> str | None:
    """Return a key as it travels: text unchanged, bytes in base64."""
    return base64.b64encode(key).decode() if isinstance(key, bytes) else key


class EntryBuilder:
    """Builds the entries of one producer.

    ``codec`` compresses single messages and whole batches, ``encryptor`` then encrypts them. A chunked message is
    compressed as a whole, and each chunk is encrypted.
    """

    def __init__(self, *, codec: pb.CompressionType.ValueType = pb.NONE, encryptor: Encryptor | None = None) -> None:
        self.producer_name = ""
        self.schema_version = b""
        self._codec = codec
        self._encryptor = encryptor

    def single(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> Outgoing:
        metadata = self._single_metadata(message, sequence_id, now_ms)
        payload = self._encrypted(metadata, self._compressed(metadata, message.content or b""))
        return Outgoing([build_entry(metadata.SerializeToString(), payload)], [sequence_id], [1])

    def batch(self, messages: Sequence[tuple[OutgoingMessage, int]], packed: Sequence[bytes], now_ms: int) -> Outgoing:
        """Return a batch. ``messages`` come with their sequence ids, ``packed`` has their forms from :meth:`pack`."""
        (first, first_id), (_, last_id) = messages[0], messages[-1]
        metadata = self._metadata(first, first_id, now_ms)
        metadata.num_messages_in_batch = len(messages)
        metadata.highest_sequence_id = last_id
        payload = self._encrypted(metadata, self._compressed(metadata, b"".join(packed)))
        return Outgoing([build_entry(metadata.SerializeToString(), payload)], [first_id], [len(messages)], last_id)

    def pack(self, message: OutgoingMessage, sequence_id: int) -> bytes:
        """Return a message in its form within a batch."""
        metadata = pb.SingleMessageMetadata(sequence_id=sequence_id)
        if message.properties:
            metadata.properties.extend(_pairs(message))
        if message.event_time_ms:
            metadata.event_time = unsigned(message.event_time_ms)
        if message.content is None:
            metadata.null_value = True
        _set_keys(metadata, message)
        return pack_one(metadata, message.content or b"")

    def chunks(self, message: OutgoingMessage, sequence_id: int, now_ms: int, bytes_max: int) -> list[Outgoing]:
        """Return a message as several entries of at most ``bytes_max`` bytes each, metadata included."""
        metadata = self._single_metadata(message, sequence_id, now_ms)
        payload = self._compressed(metadata, message.content or b"")
        metadata.uuid = f"{self.producer_name}-{sequence_id}"
        metadata.total_chunk_msg_size = len(payload)
        self._encrypted(metadata, b"")  # reserve room for the metadata that it adds
        room = bytes_max - metadata.ByteSize() - _CHUNK_OVERHEAD
        pieces = [payload[start : start + room] for start in range(0, len(payload), room)]
        metadata.num_chunks_from_msg = len(pieces)
        built = []
        for index, piece in enumerate(pieces):
            metadata.chunk_id = index
            sealed = self._encrypted(metadata, piece)
            entry = build_entry(metadata.SerializeToString(), sealed)
            built.append(Outgoing([entry], [sequence_id], [1], is_chunk=True))
        return built

    def _metadata(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> pb.MessageMetadata:
        metadata = pb.MessageMetadata(
            producer_name=self.producer_name,
            sequence_id=sequence_id,
            publish_time=now_ms,
            schema_version=self.schema_version or None,
            deliver_at_time=message.deliver_at_ms,
            replicate_to=message.replication_clusters,
        )
        _set_keys(metadata, message)
        return metadata

    def _single_metadata(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> pb.MessageMetadata:
        metadata = self._metadata(message, sequence_id, now_ms)
        metadata.properties.extend(_pairs(message))
        if message.event_time_ms:
            metadata.event_time = unsigned(message.event_time_ms)
        if message.content is None:
            metadata.null_value = True
        return metadata

    def _compressed(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        if self._codec == pb.NONE:
            return payload
        metadata.compression = self._codec
        metadata.uncompressed_size = len(payload)
        return compress(self._codec, payload)

    def _encrypted(self, metadata: pb.MessageMetadata, payload: bytes) -> bytes:
        return payload if self._encryptor is None else self._encryptor.seal(metadata, payload)


def _set_keys(metadata: pb.MessageMetadata | pb.SingleMessageMetadata, message: OutgoingMessage) -> None:
    key = key_text(message.key)
    try:
        if key is not None:
            metadata.partition_key = key
            if isinstance(message.key, bytes):
                metadata.partition_key_b64_encoded = True
        if message.ordering_key is not None:
            metadata.ordering_key = message.ordering_key
    except TypeError as error:
        raise TypeError(
            f"key={message.key!r} must be str or bytes, ordering_key={message.ordering_key!r} bytes"
        ) from error


def _pairs(message: OutgoingMessage) -> list[pb.KeyValue]:
    try:
        return [pb.KeyValue(key=key, value=value) for key, value in message.properties.items()]
    except (TypeError, AttributeError) as error:
        raise TypeError(f"properties={message.properties!r} must have names and values of type str") from error


class Batcher:
    """Collector of the messages of one batch."""

    def __init__(self, builder: EntryBuilder, *, messages_max: int, bytes_max: int) -> None:
        self._builder = builder
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._messages: list[tuple[OutgoingMessage, int]] = []
        self._packed: list[bytes] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def fits(self, message: OutgoingMessage) -> bool:
        """Return True if the message may join. A batch has one set of target clusters and a limited size."""
        if not self._messages:
            return True
        first, _ = self._messages[0]
        size = len(message.content or b"") + 64
        return self._bytes + size <= self._bytes_max and first.replication_clusters == message.replication_clusters

    def add(self, message: OutgoingMessage, sequence_id: int) -> None:
        packed = self._builder.pack(message, sequence_id)
        self._messages.append((message, sequence_id))
        self._packed.append(packed)
        self._bytes += len(packed)

    @property
    def is_full(self) -> bool:
        return len(self._messages) >= self._messages_max or self._bytes >= self._bytes_max

    def take(self, now_ms: int) -> Outgoing:
        """Return the entry of the collected messages, and start an empty batch. Raise CryptoError."""
        try:
            return self._builder.batch(self._messages, self._packed, now_ms)
        finally:
            self._messages, self._packed, self._bytes = [], [], 0

"""Messages of applications: outgoing ones, and those unpacked from entries."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from interpulse.model.ids import ChunkMessageId, MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import unpack_batch
from interpulse.wire.compression import decompress
from interpulse.wire.entries import ParsedEntry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import signed

UNCOMPRESSED_BYTES_MAX = 512 * 1024 * 1024
"""Maximum size of a decompressed entry. A broker's frame limit keeps real entries far below."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """Message to send. ``content`` None is a tombstone. Times are ms since 1970, negative before."""

    content: bytes | None
    key: str | bytes | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    event_time_ms: int = 0
    ordering_key: bytes | None = None
    deliver_at_ms: int | None = None
    """Earliest delivery time for shared subscriptions. Others receive the message immediately."""

    sequence_id: int | None = None
    replication_clusters: tuple[str, ...] = ()
    deliver_after_ms: int | None = None
    """Delivery delay for shared subscriptions, counted from the moment of sending."""

    def due_from(self, now_ms: int) -> OutgoingMessage:
        """Return the message with its delay converted to a time. Raise ValueError if it has both."""
        if self.deliver_after_ms is None:
            return self
        if self.deliver_at_ms is not None:
            raise ValueError("deliver_at_ms and deliver_after_ms are both set: give one of them")
        return replace(self, deliver_at_ms=now_ms + self.deliver_after_ms, deliver_after_ms=None)


@dataclass(slots=True)
class Message:
    """Received message. Treat it as immutable; it is not frozen because that triples the cost of creating one."""

    id: MessageId
    topic: str
    content: bytes | None
    """Payload, None for a tombstone."""

    key: str | None
    key_is_binary: bool
    """True if the key was bytes. ``key`` is then their base64 form, :attr:`key_bytes` the bytes."""

    ordering_key: bytes | None
    properties: Mapping[str, str]
    publish_time_ms: int
    event_time_ms: int
    producer_name: str
    sequence_id: int
    schema_version: bytes | None
    replicated_from: str | None
    deliver_at_ms: int | None
    redelivery_count: int
    index: int | None
    """Number of the message in its topic, if the broker counts."""

    broker_publish_time_ms: int | None
    is_encrypted: bool
    """True if the content is still encrypted."""

    batch_size: int
    """Number of messages in the same entry, 0 outside batches."""

    was_encrypted: bool = False
    """True if the content came encrypted and this client has decrypted it."""

    @property
    def key_bytes(self) -> bytes | None:
        if self.key is None:
            return None
        return base64.b64decode(self.key) if self.key_is_binary else self.key.encode()


def messages_of(
    entry: ParsedEntry,
    *,
    topic: str,
    ledger: int,
    entry_id: int,
    partition: int,
    redelivery_count: int,
    first_chunk: Position | None = None,
    is_encrypted: bool | None = None,
) -> Iterator[Message]:
    """Return the messages of an entry without those removed by compaction. Raise RemoteProtocolError.

    ``first_chunk`` is the position of the first chunk if the entry was assembled from chunks. ``is_encrypted`` says if
    the payload is left as it is; None: as the metadata says.
    """
    metadata = entry.metadata
    encrypted = len(metadata.encryption_keys) > 0 if is_encrypted is None else is_encrypted
    plain = bytes(entry.payload) if encrypted else _plain_payload(entry)
    if not entry.is_batch or encrypted:
        message_id = MessageId(ledger, entry_id, partition)
        if first_chunk is not None:
            message_id = ChunkMessageId(*message_id, first_chunk)
        yield _message(entry, metadata, plain, message_id, topic, redelivery_count, encrypted=encrypted)
        return
    count = metadata.num_messages_in_batch
    for index, (one, payload) in enumerate(unpack_batch(plain, count)):
        if one.compacted_out:
            continue
        message_id = MessageId(ledger, entry_id, partition, index)
        behind = count - 1 - index
        yield _message(entry, one, bytes(payload), message_id, topic, redelivery_count, behind=behind)


def _plain_payload(entry: ParsedEntry) -> bytes:
    size = entry.metadata.uncompressed_size
    if size > UNCOMPRESSED_BYTES_MAX:
        raise RemoteProtocolError(f"uncompressed payload of {size} bytes, above the limit of {UNCOMPRESSED_BYTES_MAX}")
    return decompress(entry.metadata.compression, entry.payload, size)


def _message(
    entry: ParsedEntry,
    one: pb.MessageMetadata | pb.SingleMessageMetadata,
    payload: bytes,
    message_id: MessageId,
    topic: str,
    redelivery_count: int,
    *,
    encrypted: bool = False,
    behind: int = 0,
) -> Message:
    """Build a message. ``one`` holds its own metadata in a batch, ``behind`` the number of messages after it."""
    metadata = entry.metadata
    broker = entry.broker_metadata
    sequence_id = one.sequence_id if one.HasField("sequence_id") else metadata.sequence_id + message_id.batch_index
    return Message(
        id=message_id,
        topic=topic,
        content=None if one.null_value else payload,
        key=one.partition_key if one.HasField("partition_key") else None,
        key_is_binary=one.partition_key_b64_encoded,
        ordering_key=one.ordering_key if one.HasField("ordering_key") else None,
        properties={pair.key: pair.value for pair in one.properties},
        publish_time_ms=metadata.publish_time,
        event_time_ms=signed(one.event_time),
        producer_name=metadata.producer_name,
        sequence_id=sequence_id,
        schema_version=metadata.schema_version if metadata.HasField("schema_version") else None,
        replicated_from=metadata.replicated_from if metadata.HasField("replicated_from") else None,
        deliver_at_ms=metadata.deliver_at_time if metadata.HasField("deliver_at_time") else None,
        redelivery_count=redelivery_count,
        index=broker.index - behind if broker and broker.HasField("index") else None,
        broker_publish_time_ms=broker.broker_timestamp if broker and broker.HasField("broker_timestamp") else None,
        is_encrypted=encrypted,
        batch_size=metadata.num_messages_in_batch if entry.is_batch else 0,
        was_encrypted=entry.was_encrypted,
    )

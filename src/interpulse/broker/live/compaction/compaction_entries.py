"""Entries as compaction reads and writes them. Pure.

A message is identified by its number: all messages of the compacted entries count from 0, in their order, also those of
batches and those that never survive. So two passes over the same entries give a message the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.broker.live.entry_metadata import message_metadata_of
from interpulse.model.errors import PersistenceError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import BatchedMessage, pack_batch, unpack_batch
from interpulse.wire.compression import compress, decompress
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.errors import RemoteProtocolError

_KEY_BYTES: Final = 16  # bytes of a digest: keys may be long, and there may be millions of them
_BROKER_METADATA_MARK: Final = b"\x0e\x02"
_REMOVED: Final = pb.SingleMessageMetadata(compacted_out=True)
_BATCH_BYTES_MAX: Final = 512 * 1024 * 1024  # uncompressed; a broker's frame limit keeps honest batches far below


class Treatment(Enum):
    """The treatment of one entry."""

    DROPPED = "dropped"
    """The treatment of a marker, which no consumer gets."""

    KEPT = "kept"
    """The treatment of an unreadable entry, such as an encrypted batch."""

    SINGLE = "single"
    BATCH = "batch"


class MessageView(NamedTuple):
    """One message: the digest of its key (None without one), and True if it is a tombstone."""

    key: bytes | None
    is_tombstone: bool = False
    is_gone: bool = False
    """True for a message removed from its batch by an earlier compaction."""


class Chunk(NamedTuple):
    """A chunk of a message that is larger than an entry may be."""

    producer: str
    uuid: str
    is_last: bool


class EntryView(NamedTuple):
    """One entry with its messages, or with one keyless message if they are unreadable."""

    treatment: Treatment
    messages: Sequence[MessageView] = (MessageView(None),)
    chunk: Chunk | None = None


_MARKER: Final = EntryView(Treatment.DROPPED)
_OPAQUE: Final = EntryView(Treatment.KEPT)


def view_of(entry: bytes) -> EntryView:
    """Parse an entry for compaction."""
    try:
        metadata = message_metadata_of(entry)
    except PersistenceError:
        return _OPAQUE
    if metadata.HasField("marker_type"):
        return _MARKER
    if not metadata.HasField("num_messages_in_batch"):
        return _single(entry, metadata)
    if metadata.encryption_keys:
        return _OPAQUE
    try:
        batch = _unpacked(entry)
    except RemoteProtocolError:
        return _OPAQUE
    return EntryView(Treatment.BATCH, [_batched(message.metadata) for message in batch])


def survivor_of(entry: bytes, surviving: Sequence[bool]) -> bytes | None:
    """Return the batch with its surviving messages; None if there are none.

    Messages keep their index: a removed one becomes an empty message that says so.
    """
    batch = _unpacked(entry)
    if not any(surviving):
        return None
    if all(stays or message.metadata.compacted_out for stays, message in zip(surviving, batch, strict=True)):
        return entry
    plain = pack_batch(
        (message.metadata, bytes(message.payload)) if stays else (_removed(), b"")
        for stays, message in zip(surviving, batch, strict=True)
    )
    metadata = parse_entry(entry).metadata
    metadata.uncompressed_size = len(plain)
    rebuilt = build_entry(metadata.SerializeToString(), compress(metadata.compression, plain))
    return _broker_part(entry) + rebuilt


def last_index_left(entry: bytes) -> int:
    """Return the index of the last message of a batch that was not removed; -1 for any other entry."""
    view = view_of(entry)
    if view.treatment is not Treatment.BATCH:
        return -1
    return max((index for index, message in enumerate(view.messages) if not message.is_gone), default=-1)


def _single(entry: bytes, metadata: pb.MessageMetadata) -> EntryView:
    chunk = None
    if metadata.num_chunks_from_msg > 1:
        is_last = metadata.chunk_id == metadata.num_chunks_from_msg - 1
        chunk = Chunk(metadata.producer_name, metadata.uuid, is_last)
    key = _digest(metadata.partition_key) if metadata.HasField("partition_key") else None
    return EntryView(Treatment.SINGLE, (MessageView(key, _is_tombstone(entry, metadata)),), chunk)


def _is_tombstone(entry: bytes, metadata: pb.MessageMetadata) -> bool:
    if metadata.null_value:
        return True
    if metadata.HasField("uncompressed_size"):
        return metadata.uncompressed_size == 0
    return len(parse_entry(entry).payload) == 0


def _batched(metadata: pb.SingleMessageMetadata) -> MessageView:
    key = _digest(metadata.partition_key) if metadata.HasField("partition_key") else None
    return MessageView(key, metadata.null_value or metadata.payload_size == 0, metadata.compacted_out)


def _digest(key: str | bytes) -> bytes:
    raw = key if isinstance(key, bytes) else key.encode()  # bytes if its producer wrote no UTF-8
    return blake2b(raw, digest_size=_KEY_BYTES).digest()


def _unpacked(entry: bytes) -> list[BatchedMessage]:
    """Return the messages of a batch; raise RemoteProtocolError if it cannot be read."""
    parsed = parse_entry(entry)
    size = parsed.metadata.uncompressed_size
    if size > _BATCH_BYTES_MAX:
        raise RemoteProtocolError(f"batch that announces {size} bytes")
    try:
        return unpack_batch(
            decompress(parsed.metadata.compression, parsed.payload, size), parsed.metadata.num_messages_in_batch
        )
    except DecodeError as error:
        raise RemoteProtocolError(f"batch that cannot be parsed: {error}") from error


def _removed() -> pb.SingleMessageMetadata:
    empty = pb.SingleMessageMetadata()
    empty.CopyFrom(_REMOVED)
    return empty


def _broker_part(entry: bytes) -> bytes:
    if entry[:2] != _BROKER_METADATA_MARK:
        return b""
    return entry[: 6 + int.from_bytes(entry[2:6], "big")]

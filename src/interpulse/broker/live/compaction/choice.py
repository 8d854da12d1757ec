"""The messages that survive compaction: the newest of every key, unless it is a tombstone. Pure.

A message is identified by its number: all messages of the compacted entries count from 0, in their order, also those of
batches and those that never survive. So two passes over the same entries give a message the same number.

Memory is bounded for any number of keys: one pass over all messages remembers `keys_max` keys at most, and one bit per
message. With more keys, the pass continues with half of them, chosen by their digest, and the other half gets a pass of
its own later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from hashlib import blake2b
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.broker.live.entry_metadata import message_metadata_of
from interpulse.model.errors import PersistenceError
from interpulse.storage.api import LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import BatchedMessage, pack_batch, unpack_batch
from interpulse.wire.compression import compress, decompress
from interpulse.wire.entries import build_entry, parse_entry, without_broker_metadata
from interpulse.wire.errors import RemoteProtocolError

_KEY_BYTES: Final = 16  # bytes of a digest: keys may be long, and there may be millions of them
_BATCH_BYTES_MAX: Final = 512 * 1024 * 1024  # uncompressed; a broker's frame limit keeps honest batches far below

_ALL_BITS: Final = 64  # bits of a digest that select its share


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
        message = MessageView(_key_of(metadata), _is_tombstone(entry, metadata))
        if metadata.num_chunks_from_msg <= 1:
            return EntryView(Treatment.SINGLE, (message,))
        is_last = metadata.chunk_id == metadata.num_chunks_from_msg - 1
        return EntryView(Treatment.SINGLE, (message,), Chunk(metadata.producer_name, metadata.uuid, is_last))
    if metadata.encryption_keys:
        return _OPAQUE
    try:
        batch = _unpacked(entry)
    except RemoteProtocolError:
        return _OPAQUE
    singles = [message.metadata for message in batch]
    return EntryView(
        Treatment.BATCH,
        [
            MessageView(_key_of(single), single.null_value or single.payload_size == 0, single.compacted_out)
            for single in singles
        ],
    )


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
        (message.metadata, bytes(message.payload)) if stays else (pb.SingleMessageMetadata(compacted_out=True), b"")
        for stays, message in zip(surviving, batch, strict=True)
    )
    metadata = parse_entry(entry).metadata
    metadata.uncompressed_size = len(plain)
    rebuilt = build_entry(metadata.SerializeToString(), compress(metadata.compression, plain))
    return entry[: len(entry) - len(without_broker_metadata(entry))] + rebuilt


def last_index_left(entry: bytes) -> int:
    """Return the index of the last message of a batch that was not removed; -1 for any other entry."""
    view = view_of(entry)
    if view.treatment is not Treatment.BATCH:
        return -1
    return max((index for index, message in enumerate(view.messages) if not message.is_gone), default=-1)


def _is_tombstone(entry: bytes, metadata: pb.MessageMetadata) -> bool:
    if metadata.null_value:
        return True
    if metadata.HasField("uncompressed_size"):
        return metadata.uncompressed_size == 0
    return len(parse_entry(entry).payload) == 0


def _key_of(metadata: pb.MessageMetadata | pb.SingleMessageMetadata) -> bytes | None:
    """Return the digest of a message's key; None without one."""
    if not metadata.HasField("partition_key"):
        return None
    key: str | bytes = metadata.partition_key  # bytes if its producer wrote no UTF-8
    return blake2b(key if isinstance(key, bytes) else key.encode(), digest_size=_KEY_BYTES).digest()


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


class KeyShare(NamedTuple):
    """The keys whose digest ends in these bits."""

    bits: int = 0
    width: int = 0

    def has(self, key: bytes) -> bool:
        return int.from_bytes(key[:8], "little") & ((1 << self.width) - 1) == self.bits

    def halves(self) -> tuple[KeyShare, KeyShare]:
        return KeyShare(self.bits, self.width + 1), KeyShare(self.bits | 1 << self.width, self.width + 1)


class Choice:
    """The surviving messages, by number. Complete when every share of keys had its pass."""

    def __init__(self, *, keys_max: int, keyless_kept: bool = False) -> None:
        self.keys_max = keys_max
        self.keyless_kept = keyless_kept
        self.looks_needed = [KeyShare()]
        self._bits = bytearray()

    def keep(self, number: int) -> None:
        index = number >> 3
        if index >= len(self._bits):
            self._bits.extend(bytes(index + 1 - len(self._bits)))
        self._bits[index] |= 1 << (number & 7)

    def keeps(self, number: int) -> bool:
        index = number >> 3
        return index < len(self._bits) and bool(self._bits[index] >> (number & 7) & 1)

    @property
    def count(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count()

    def next_look(self) -> Look:
        """Return a pass over all messages, from the first; some share still needs it."""
        return Look(self, self.looks_needed.pop())


class Look:
    """One pass over all entries, in order, for a share of the keys."""

    def __init__(self, choice: Choice, share: KeyShare) -> None:
        self.messages = 0
        """The messages seen so far, which is the number of the next one."""
        self.present = 0
        """Messages that a reader would get."""
        self._choice = choice
        self._share = share
        self._newest: dict[bytes, int | tuple[int, ...]] = {}
        self._chunks: dict[str, tuple[str, list[int]]] = {}

    def see(self, views: Iterable[EntryView]) -> None:
        for view in views:
            if view.treatment is not Treatment.DROPPED:
                self.present += sum(not message.is_gone for message in view.messages)
            if view.chunk is not None:
                self._see_chunk(view.messages[0], view.chunk)
            elif view.treatment is Treatment.KEPT:
                self._choice.keep(self.messages)
            elif view.treatment is not Treatment.DROPPED:
                for number, message in enumerate(view.messages, self.messages):
                    if not message.is_gone:
                        self._see_message(message, number)
            self.messages += len(view.messages)
            if len(self._newest) > self._choice.keys_max:
                assert self._share.width < _ALL_BITS, "so many digests do not begin with the same bytes"
                self._share, other = self._share.halves()
                self._choice.looks_needed.append(other)
                self._newest = {key: numbers for key, numbers in self._newest.items() if self._share.has(key)}

    def end(self) -> None:
        """End the pass: the newest message of each key now survives."""
        for numbers in self._newest.values():
            self._keep(numbers)
        for _, begun in self._chunks.values():  # the rest of these messages is after the horizon
            self._keep(tuple(begun))

    def _see_message(self, message: MessageView, numbers: int | tuple[int, ...]) -> None:
        key = message.key
        if key is None:
            if self._choice.keyless_kept:
                self._keep(numbers)
        elif self._share.has(key):
            if message.is_tombstone:
                self._newest.pop(key, None)
            else:
                self._newest[key] = numbers

    def _see_chunk(self, message: MessageView, chunk: Chunk) -> None:
        """Process a chunk. A chunked message counts at its last chunk, and only if it is complete.

        A producer sends one such message at a time, so a new one means that the previous one will never be complete.
        """
        uuid, begun = self._chunks.get(chunk.producer, ("", []))
        begun = [*begun, self.messages] if uuid == chunk.uuid else [self.messages]
        if chunk.is_last:
            self._chunks.pop(chunk.producer, None)
            self._see_message(message, tuple(begun))
        else:
            self._chunks[chunk.producer] = chunk.uuid, begun

    def _keep(self, numbers: int | tuple[int, ...]) -> None:
        for number in (numbers,) if isinstance(numbers, int) else numbers:
            self._choice.keep(number)


def survivors(entries: Sequence[LogEntry], choice: Choice, number: int) -> tuple[list[LogEntry], int]:
    """Return the survivors of these entries, whose first message has this number, and the number after the last."""
    surviving: list[LogEntry] = []
    for entry in entries:
        view = view_of(entry.entry)
        if view.treatment is Treatment.BATCH:
            left = survivor_of(entry.entry, [choice.keeps(number + index) for index in range(len(view.messages))])
            if left is not None:
                surviving.append(LogEntry(entry.position, left))
        elif choice.keeps(number):
            surviving.append(entry)
        number += len(view.messages)
    return surviving, number

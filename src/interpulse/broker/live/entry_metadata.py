"""The metadata of stored entries: message count, key, and the kind (ordinary, marker or chunk). Pure.

`EntryMetadata` is the part that dispatch reads, cached per topic in `EntryMetadataCache`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.entries import metadata_in, parse_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.hashing import sticky_slot, sticky_slots
from interpulse.wire.ids import of_batch, signed

_CACHED_MAX = 50_000
_BROKER_METADATA_MARK = b"\x0e\x02"
_NO_BROKER_METADATA = pb.BrokerEntryMetadata()
_parse_metadata = pb.MessageMetadata.FromString


class EntryMetadata(NamedTuple):
    """``chunk_uuid`` is "" unless the entry is one chunk of a message; ``last_chunk`` ends that message."""

    message_count: int = 1
    is_marker: bool = False
    chunk_uuid: str = ""
    last_chunk: bool = False

    @property
    def ends_message(self) -> bool:
        """True if the entry has sequence ids of its own: it is no marker, and no chunk but the last."""
        return not self.is_marker and (not self.chunk_uuid or self.last_chunk)


ORDINARY = EntryMetadata()
"""A single message that fits into one entry."""

MARKER = EntryMetadata(is_marker=True)
"""An entry of the replicated-subscription or transaction machinery; consumers never see it."""


def message_metadata_of(entry: bytes | memoryview) -> pb.MessageMetadata:
    """Parse the metadata of a stored entry; raise PersistenceError if it has none.

    Entries begin with their checksum unless broker entry metadata is in front; other forms take a slower way.
    """
    try:
        metadata = metadata_in(entry)
        return parse_entry(entry).metadata if metadata is None else _parse_metadata(metadata)
    except (RemoteProtocolError, DecodeError) as error:
        raise PersistenceError(f"a stored entry cannot be understood: {error}") from error


def broker_entry_metadata_of(entry: bytes) -> pb.BrokerEntryMetadata:
    """Return the broker entry metadata of a stored entry; empty if it has none, or is unreadable."""
    if entry[:2] != _BROKER_METADATA_MARK:
        return _NO_BROKER_METADATA
    try:
        return pb.BrokerEntryMetadata.FromString(entry[6 : 6 + int.from_bytes(entry[2:6], "big")])
    except DecodeError:
        return _NO_BROKER_METADATA


def entry_metadata_of(entry: bytes | memoryview) -> EntryMetadata:
    """Return the metadata of a stored entry; `ORDINARY` for an unreadable one, which its consumers judge."""
    try:
        return entry_metadata_in(message_metadata_of(entry))
    except PersistenceError:
        return ORDINARY


def entry_metadata_in(metadata: pb.MessageMetadata) -> EntryMetadata:
    """Return the part of a message's metadata that the broker needs."""
    if metadata.HasField("marker_type"):
        return MARKER
    if metadata.num_chunks_from_msg > 1:
        last = metadata.chunk_id == metadata.num_chunks_from_msg - 1
        return EntryMetadata(1, chunk_uuid=metadata.uuid, last_chunk=last)
    if metadata.num_messages_in_batch <= 1:
        return ORDINARY
    return EntryMetadata(metadata.num_messages_in_batch)


def last_sequence_id_of(metadata: pb.MessageMetadata) -> int:
    """Return the highest sequence id that the metadata names.

    The ids of a batch are never counted up from its first one: key-based batches interleave, and clients may number
    whole batches.
    """
    if metadata.HasField("highest_sequence_id"):
        return max(signed(metadata.sequence_id), signed(metadata.highest_sequence_id))
    return signed(metadata.sequence_id)


def waiting_in(entry: bytes, mask: int) -> int:
    """Return the bits of an acknowledgement mask that are messages of this entry.

    Its own metadata has their number: SEND may leave it out, and then messages that still wait would be cut off.
    """
    return of_batch(mask, entry_metadata_of(entry).message_count)


def sticky_slot_of(entry: bytes) -> int:
    """Return the slot that selects the Key_Shared consumer of the entry: by ordering key, else by partition key."""
    try:
        metadata = message_metadata_of(entry)
    except PersistenceError:
        return sticky_slot(b"NONE_KEY")
    key = metadata.ordering_key or _partition_key(metadata)
    if key or metadata.HasField("partition_key"):
        return sticky_slot(key)
    if metadata.producer_name:
        return sticky_slot(f"{metadata.producer_name}-{metadata.sequence_id}".encode())
    return sticky_slot(b"NONE_KEY")


def sticky_slots_of(entries: Sequence[bytes]) -> list[int]:
    """Return the slots of many entries; see `sticky_slot_of`."""
    keys = codec().sticky_keys(entries)
    plain = [key for key in keys if key is not None]
    if len(plain) == len(keys):
        return sticky_slots(plain)
    return [
        sticky_slot_of(entry) if key is None else sticky_slot(key) for key, entry in zip(keys, entries, strict=True)
    ]


def _partition_key(metadata: pb.MessageMetadata) -> bytes:
    text: str | bytes = metadata.partition_key  # bytes if its producer wrote no UTF-8
    key = text if isinstance(text, bytes) else text.encode()
    if not metadata.partition_key_b64_encoded:
        return key
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        return key


class EntryMetadataCache:
    """The metadata of recent entries of one topic, so that many subscriptions share one parse of each.

    Of the entries published since ``known_from``, only the ones that are not ordinary are stored. Others are parsed
    once and cached for a while.
    """

    __slots__ = ("_known_from", "_parsed", "_published")

    def __init__(self, known_from: Position) -> None:
        self._known_from = known_from
        self._published: dict[Position, EntryMetadata] = {}
        self._parsed: dict[Position, EntryMetadata] = {}

    def all_ordinary_since(self, position: Position) -> bool:
        """Return True if every entry from ``position`` on is known to be ordinary."""
        return not self._published and position >= self._known_from

    def markers_after(self, position: Position) -> list[Position]:
        """Return the known markers after a position, oldest first."""
        known = (*self._parsed.items(), *self._published.items())
        return sorted(marker for marker, metadata in known if metadata.is_marker and marker > position)

    def remember(self, position: Position, metadata: EntryMetadata) -> None:
        """Store the metadata of an entry that is not ordinary; all others since ``known_from`` are."""
        self._published[position] = metadata
        if len(self._published) > _CACHED_MAX:
            oldest = list(self._published)[: _CACHED_MAX // 2]
            for old in oldest:
                del self._published[old]
            self._known_from = Position(oldest[-1].ledger, oldest[-1].entry + 1)

    def learn(self, entries: Sequence[LogEntry]) -> None:
        """Parse entries that were read together, which costs a fraction of single calls."""
        if not entries or (last := entries[-1].position) >= self._known_from or last in self._parsed:
            return
        counts = codec().message_counts([entry for _, entry in entries])
        by_count = {count: ORDINARY if count == 1 else EntryMetadata(count) for count in set(counts)}
        if len(self._parsed) + len(entries) > _CACHED_MAX:
            self._parsed.clear()
        pairs = zip(entries, counts, strict=True)
        self._parsed.update((position, by_count[count]) for (position, _), count in pairs if count)

    def get(self, position: Position, entry: bytes) -> EntryMetadata:
        if position >= self._known_from:
            return self._published.get(position, ORDINARY)
        metadata = self._parsed.get(position)
        if metadata is None:
            if len(self._parsed) >= _CACHED_MAX:
                self._parsed.clear()
            metadata = self._parsed[position] = entry_metadata_of(entry)
        return metadata

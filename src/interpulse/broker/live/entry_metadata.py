"""What the broker wants to know of an entry before it sends it: how many messages, a marker, a chunk, its key. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from google.protobuf.message import DecodeError

from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import parse_entry
from interpulse.wire.hashing import sticky_slot
from interpulse.wire.ids import signed

__all__ = [
    "MARKER",
    "ORDINARY",
    "EntryFacts",
    "FactsCache",
    "broker_metadata_of",
    "facts_in",
    "facts_of",
    "last_sequence_id_of",
    "metadata_of",
    "sticky_slot_of",
]

_CACHED_MAX = 50_000
_CHECKSUM_MARK = b"\x0e\x01"
_METADATA_START = 10  # behind the mark, the checksum and the size
_BROKER_METADATA_MARK = b"\x0e\x02"
_NO_BROKER_METADATA = pb.BrokerEntryMetadata()
_parse_metadata = pb.MessageMetadata.FromString


class EntryFacts(NamedTuple):
    """``chunk_uuid`` is "" unless the entry is one chunk of a message; ``last_chunk`` ends that message."""

    message_count: int = 1
    is_marker: bool = False
    chunk_uuid: str = ""
    last_chunk: bool = False

    @property
    def ends_message(self) -> bool:
        """The entry carries sequence ids of its own: it is no marker, and no chunk but the last."""
        return not self.is_marker and (not self.chunk_uuid or self.last_chunk)


ORDINARY = EntryFacts()
"""A single message that fits into one entry."""

MARKER = EntryFacts(is_marker=True)
"""An entry of the replicated-subscription or transaction machinery; consumers never see it."""


def metadata_of(entry: bytes | memoryview) -> pb.MessageMetadata:
    """The metadata of a stored entry; raises PersistenceError if it holds none.

    Entries begin with their checksum unless the broker put something in front; what does not is taken apart the slow
    way.
    """
    try:
        if entry[:2] == _CHECKSUM_MARK:
            end = _METADATA_START + int.from_bytes(entry[_METADATA_START - 4 : _METADATA_START], "big")
            if end <= len(entry):
                return _parse_metadata(bytes(entry[_METADATA_START:end]))
        return parse_entry(entry).metadata
    except (RemoteProtocolError, DecodeError) as error:
        raise PersistenceError(f"a stored entry cannot be understood: {error}") from error


def broker_metadata_of(entry: bytes) -> pb.BrokerEntryMetadata:
    """What the broker put in front of a stored entry; empty where that is nothing, or cannot be understood."""
    if entry[:2] != _BROKER_METADATA_MARK:
        return _NO_BROKER_METADATA
    try:
        return pb.BrokerEntryMetadata.FromString(entry[6 : 6 + int.from_bytes(entry[2:6], "big")])
    except DecodeError:
        return _NO_BROKER_METADATA


def facts_of(entry: bytes | memoryview) -> EntryFacts:
    """Read the facts from the metadata of a stored entry. One that holds none is left to its consumers to judge."""
    try:
        return facts_in(metadata_of(entry))
    except PersistenceError:
        return ORDINARY


def facts_in(metadata: pb.MessageMetadata) -> EntryFacts:
    """The facts that metadata holds."""
    if metadata.HasField("marker_type"):
        return MARKER
    if metadata.num_chunks_from_msg > 1:
        last = metadata.chunk_id == metadata.num_chunks_from_msg - 1
        return EntryFacts(1, chunk_uuid=metadata.uuid, last_chunk=last)
    if metadata.num_messages_in_batch <= 1:
        return ORDINARY
    return EntryFacts(metadata.num_messages_in_batch)


def last_sequence_id_of(metadata: pb.MessageMetadata) -> int:
    """The sequence id of the last message in an entry; ids in a batch rise by one unless the metadata knows better."""
    if metadata.HasField("highest_sequence_id"):
        return max(signed(metadata.sequence_id), signed(metadata.highest_sequence_id))
    return signed(metadata.sequence_id) + max(metadata.num_messages_in_batch, 1) - 1


def sticky_slot_of(entry: bytes) -> int:
    """The slot that decides which Key_Shared consumer gets the entry: ordering key, else partition key."""
    try:
        metadata = metadata_of(entry)
    except PersistenceError:
        return sticky_slot(b"NONE_KEY")
    if metadata.ordering_key:
        return sticky_slot(metadata.ordering_key)
    if metadata.HasField("partition_key"):
        return sticky_slot(_partition_key(metadata))
    if metadata.producer_name:
        return sticky_slot(f"{metadata.producer_name}-{metadata.sequence_id}".encode())
    return sticky_slot(b"NONE_KEY")


def _partition_key(metadata: pb.MessageMetadata) -> bytes:
    text: str | bytes = metadata.partition_key  # bytes if its producer wrote no UTF-8
    key = text if isinstance(text, bytes) else text.encode()
    if not metadata.partition_key_b64_encoded:
        return key
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        return key


class FactsCache:
    """The facts of recent entries of one topic, so that many subscriptions share one look at each.

    Entries published since ``known_from`` are remembered only when they are not ordinary; others are parsed once and
    kept for a while.
    """

    __slots__ = ("_known_from", "_parsed", "_published")

    def __init__(self, known_from: Position) -> None:
        self._known_from = known_from
        self._published: dict[Position, EntryFacts] = {}
        self._parsed: dict[Position, EntryFacts] = {}

    def all_ordinary_since(self, position: Position) -> bool:
        """Whether every entry from ``position`` on is known to be ordinary."""
        return not self._published and position >= self._known_from

    def published(self, position: Position, facts: EntryFacts) -> None:
        """Remember the facts of an entry that is not ordinary; all others since ``known_from`` are."""
        self._published[position] = facts
        if len(self._published) > _CACHED_MAX:
            oldest = list(self._published)[: _CACHED_MAX // 2]
            for each in oldest:
                del self._published[each]
            self._known_from = Position(oldest[-1].ledger, oldest[-1].entry + 1)

    def facts(self, position: Position, entry: bytes) -> EntryFacts:
        if position >= self._known_from:
            return self._published.get(position, ORDINARY)
        facts = self._parsed.get(position)
        if facts is None:
            if len(self._parsed) >= _CACHED_MAX:
                self._parsed.clear()
            facts = self._parsed[position] = facts_of(entry)
        return facts

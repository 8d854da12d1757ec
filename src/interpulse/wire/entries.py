"""Stored entries: their parts, magic numbers, checksums.

An entry is stored exactly as SEND carries it and MESSAGE delivers it, except for what the broker may prepend::

    [0x0e02 size broker_entry_metadata] [0x0e01 crc32c] metadata_size metadata payload

Integers are big-endian. The checksum covers everything after itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Final

from google.protobuf.message import DecodeError

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.checksum import crc32c
from interpulse.wire.errors import RemoteProtocolError

_CHECKSUM_MAGIC: Final = 0x0E01
_CHECKSUM_MARK: Final = b"\x0e\x01"
_BROKER_METADATA_MAGIC: Final = 0x0E02
_BROKER_METADATA_MARK: Final = b"\x0e\x02"
_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_unpack_checksum: Final = Struct(">HI").unpack_from
_HEAD: Final = Struct(">HII")
"""The magic number, the checksum and the size of the metadata."""
_unpack_head: Final = _HEAD.unpack_from
_METADATA_START: Final = _HEAD.size


@dataclass(slots=True)
class ParsedEntry:
    """The parts of a stored entry. ``payload`` may still be compressed, encrypted, or a batch."""

    metadata: pb.MessageMetadata
    metadata_bytes: bytes
    payload: memoryview
    broker_metadata: pb.BrokerEntryMetadata | None = None
    was_encrypted: bool = False
    """True once a client has decrypted it. Metadata and payload then look as if it was never encrypted."""

    @property
    def is_batch(self) -> bool:
        """True for a batch. Presence decides, not the number: a batch may hold a single message."""
        return self.metadata.HasField("num_messages_in_batch")

    @property
    def message_count(self) -> int:
        """The number of messages, at least one: a number invented by a producer must not give permits back."""
        return max(self.metadata.num_messages_in_batch, 1)


def parse_entry(entry: bytes | memoryview) -> ParsedEntry:
    """Split an entry into its parts without verifying its checksum. Raise RemoteProtocolError if it is no entry."""
    view = memoryview(entry)
    try:
        broker_size = _broker_part_size(view)
        start = broker_size + (6 if _magic_at(view, broker_size) == _CHECKSUM_MAGIC else 0)
        (metadata_size,) = _U32.unpack_from(view, start)
        end = start + 4 + metadata_size
        if end > len(view):
            raise RemoteProtocolError(f"entry metadata of {metadata_size} bytes in an entry of {len(view)} bytes")
        metadata_bytes = bytes(view[start + 4 : end])
        metadata = pb.MessageMetadata.FromString(metadata_bytes)
        broker_metadata = pb.BrokerEntryMetadata.FromString(bytes(view[6:broker_size])) if broker_size else None
    except (DecodeError, StructError) as error:
        raise RemoteProtocolError(f"entry that cannot be parsed: {error}") from None
    if not metadata.IsInitialized():
        raise RemoteProtocolError("entry metadata without a required field")
    return ParsedEntry(metadata, metadata_bytes, view[end:], broker_metadata)


def _magic_at(view: memoryview, start: int) -> int:
    """Return the two bytes that identify the part of an entry at this offset."""
    magic: int = _U16.unpack_from(view, start)[0]
    return magic


def _broker_part_size(view: memoryview) -> int:
    """Return the size of the broker entry metadata in front of the entry, 0 in most cases."""
    if _magic_at(view, 0) != _BROKER_METADATA_MAGIC:
        return 0
    size: int = 6 + _U32.unpack_from(view, 2)[0]
    if size > len(view):
        raise RemoteProtocolError("entry whose broker metadata is cut off")
    return size


def metadata_in(entry: bytes | memoryview) -> bytes | None:
    """Return the raw metadata of an entry that starts with its checksum, as nearly all do; None for others."""
    if len(entry) < _METADATA_START:
        return None
    magic, _, size = _unpack_head(entry)
    end = _METADATA_START + size
    return bytes(entry[_METADATA_START:end]) if magic == _CHECKSUM_MAGIC and end <= len(entry) else None


def checksum_fits(entry: bytes | memoryview) -> bool | None:
    """Return True if the entry matches the checksum that it starts with; None if it starts with something else."""
    if len(entry) < 6:
        return None
    magic, expected = _unpack_checksum(entry)
    if magic != _CHECKSUM_MAGIC:
        return None
    fits: bool = expected == crc32c(memoryview(entry)[6:])
    return fits


def verify_checksum(entry: bytes | memoryview) -> bool:
    """Return False if the checksum does not match, or the entry is cut off. Entries without a checksum pass."""
    fits = checksum_fits(entry)
    if fits is not None or len(entry) < 6:
        return bool(fits)
    view = memoryview(entry)
    try:  # rare: broker metadata before the checksum, or no checksum
        rest = view[_broker_part_size(view) :]
        if _magic_at(rest, 0) != _CHECKSUM_MAGIC:
            return True
    except (RemoteProtocolError, StructError):
        return False
    return bool(checksum_fits(rest))


def with_checksum(entry: bytes | memoryview) -> bytes | memoryview:
    """Return the entry with a checksum: itself if it has one, else a copy.

    Some clients omit it, and some refuse messages without it.
    """
    if entry[:2] == _CHECKSUM_MARK:
        return entry
    return b"".join((_CHECKSUM_MARK, _U32.pack(crc32c(entry)), entry))


def accept_entry(entry: bytes | memoryview) -> bytes | memoryview | None:
    """Return the entry as a broker stores it, always with a checksum; None if it came with a wrong one."""
    fits = checksum_fits(entry)
    if fits is None:
        return with_checksum(entry) if verify_checksum(entry) else None
    return entry if fits else None


def build_entry(metadata_bytes: bytes, payload: bytes | memoryview) -> bytes:
    """Build an entry to send or store, including the checksum. Copies the payload once."""
    size = _U32.pack(len(metadata_bytes))
    crc = crc32c(payload, crc32c(size + metadata_bytes))
    return b"".join((_CHECKSUM_MARK, _U32.pack(crc), size, metadata_bytes, payload))


def with_broker_metadata(broker_metadata: pb.BrokerEntryMetadata, entry: bytes | memoryview) -> bytes:
    """Return the entry with broker entry metadata in front."""
    raw = broker_metadata.SerializeToString()
    return b"".join((_BROKER_METADATA_MARK, _U32.pack(len(raw)), raw, entry))


def without_broker_metadata(entry: bytes) -> bytes:
    """Return the entry as its producer sent it: itself, or a copy without broker entry metadata."""
    if entry[:2] != _BROKER_METADATA_MARK:
        return entry
    return entry[6 + int.from_bytes(entry[2:6], "big") :]

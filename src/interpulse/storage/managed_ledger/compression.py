"""Records as protobuf messages, which may be compressed behind a header.

A plain record cannot start like a compressed one: ``0x47`` would be a field of a wire type that protobuf does not have.
Source: docs/reference/cluster-protocol.md#compressed-records.
"""

from __future__ import annotations

from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb

M = TypeVar("M", bound=Message)

COMPRESSED_ABOVE: Final = 16 * 1024
"""The size from which on a record is compressed, as in Pulsar (managedLedgerInfoCompressionThresholdInBytes)."""

_MAGIC: Final = b"\x47\x78"
_NONE, _LZ4 = 0, 1
_NAMES: Final = {2: "ZLIB", 3: "ZSTD", 4: "SNAPPY"}
_SIZE_MAX: Final = 64 << 20


def packed(record: bytes) -> bytes:
    """Return the stored form of a record."""
    return record if len(record) <= COMPRESSED_ABOVE else compressed(record)


def compressed(record: bytes) -> bytes:
    """Return the record compressed with LZ4, whatever its size."""
    import cramjam  # loaded with the first long record

    head = pb.CompressedRecordHead(compressionType=_LZ4, uncompressedSize=len(record)).SerializeToString()
    body = bytes(cramjam.lz4.compress_block(record, store_size=False))
    return _MAGIC + len(head).to_bytes(4, "big") + head + body


def unpacked(value: bytes) -> bytes:
    """Return the record of a stored value. Raise ValueError for an unsupported compression, or damage."""
    if not value.startswith(_MAGIC):
        return value
    size = int.from_bytes(value[2:6], "big")
    if len(value) < 6 + size:
        raise ValueError(f"the head of a compressed record is cut short: {len(value)} bytes")
    head = parsed(pb.CompressedRecordHead, value[6 : 6 + size])
    record = _decompressed(head.compressionType, value[6 + size :], head.uncompressedSize)
    if len(record) != head.uncompressedSize:
        raise ValueError(f"a compressed record has {len(record)} bytes and should have {head.uncompressedSize}")
    return record


def parsed(kind: type[M], raw: bytes) -> M:
    """Parse a complete message. Raise ValueError if the bytes are none."""
    try:
        message = kind.FromString(raw)
    except DecodeError as error:
        raise ValueError(f"it is no {kind.__name__}: {error}") from None
    missing = message.FindInitializationErrors()  # type: ignore[attr-defined]
    if missing:
        raise ValueError(f"it is no {kind.__name__}: it lacks {', '.join(missing)}")
    return message


def _decompressed(kind: int, body: bytes, size: int) -> bytes:
    if kind == _NONE:
        return body
    if kind != _LZ4:
        raise ValueError(f"the record is compressed with {_NAMES.get(kind, kind)}; only LZ4 is supported")
    if not 0 <= size <= _SIZE_MAX:
        raise ValueError(f"the record is said to have {size} bytes; at most {_SIZE_MAX} are read")
    import cramjam

    target = bytearray(size)
    try:
        count = cramjam.lz4.decompress_block_into(body, target)
    except cramjam.DecompressionError as error:
        raise ValueError(f"the compressed record is damaged: {error}") from None
    return bytes(target[:count])

"""The four compressions of payloads.

LZ4 and SNAPPY are raw blocks, without the headers of their file formats; ZLIB and ZSTD are their usual streams.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

from interpulse.model.errors import NotSupported
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError


def _cramjam() -> Any:
    """Import the library, with the first message that needs it: most programs never do. Raise NotSupported."""
    try:
        import cramjam
    except ImportError as error:
        raise NotSupported(
            "payloads in LZ4, ZSTD or SNAPPY need package cramjam, which has compiled code and runs from no archive: "
            "install it on every machine that reads or writes them"
        ) from error
    return cramjam


_COMPRESS: Final[dict[int, Callable[[bytes], bytes]]] = {
    pb.NONE: bytes,
    pb.LZ4: lambda payload: bytes(_cramjam().lz4.compress_block(payload, store_size=False)),
    pb.ZLIB: zlib.compress,
    pb.ZSTD: lambda payload: bytes(_cramjam().zstd.compress(payload)),
    pb.SNAPPY: lambda payload: bytes(_cramjam().snappy.compress_raw(payload)),
}


def _decompress_into(decompress: Callable[[bytes, bytearray], int], payload: bytes, size: int) -> bytes:
    target = bytearray(size)
    count = decompress(payload, target)
    return bytes(target[:count])


def _decompress_snappy(payload: bytes, size: int) -> bytes:
    if _cramjam().snappy.decompress_raw_len(payload) != size:
        raise ValueError("the block announces another size")
    return bytes(_cramjam().snappy.decompress_raw(payload))


_DECOMPRESS: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    pb.LZ4: lambda payload, size: _decompress_into(_cramjam().lz4.decompress_block_into, payload, size),
    pb.ZLIB: lambda payload, size: zlib.decompressobj().decompress(payload, size + 1),
    pb.ZSTD: lambda payload, size: _decompress_into(_cramjam().zstd.decompress_into, payload, size),
    pb.SNAPPY: _decompress_snappy,
}


def compress(codec: pb.CompressionType.ValueType, payload: bytes) -> bytes:
    """Compress a payload to its form on Pulsar's wire. Raise NotSupported."""
    return _COMPRESS[codec](payload)


def decompress(codec: pb.CompressionType.ValueType, payload: bytes | memoryview, uncompressed_size: int) -> bytes:
    """Decompress a payload, to at most ``uncompressed_size`` bytes. The caller bounds that size.

    Raise RemoteProtocolError if it cannot be read or has another size, NotSupported if the library is not installed.
    """
    if codec == pb.NONE:
        return bytes(payload)
    try:
        plain = _DECOMPRESS[codec](bytes(payload), uncompressed_size)
    except NotSupported:
        raise
    except Exception as error:  # noqa: BLE001  # every library has errors of its own
        raise RemoteProtocolError(f"payload that cannot be decompressed: {error}") from None
    if len(plain) != uncompressed_size:
        raise RemoteProtocolError(f"payload of {len(plain)} bytes, announced were {uncompressed_size}")
    return plain

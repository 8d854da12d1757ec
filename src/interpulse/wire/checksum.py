"""CRC32C, the checksum in front of every stored entry.

The compiled library computes it where it is installed. Code shipped to Spark executors as a plain archive cannot
include the library and uses a table of 256 steps: the same numbers, several hundred times slower.
"""

from __future__ import annotations

from collections.abc import Callable

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed


def _octet_checksum(octet: int) -> int:
    for _ in range(8):
        octet = octet >> 1 ^ (_POLYNOMIAL if octet & 1 else 0)
    return octet


_TABLE = [_octet_checksum(octet) for octet in range(256)]


def crc32c_slowly(data: bytes | memoryview, value: int = 0) -> int:
    """Compute CRC32C without any library. ``value`` is the checksum of the bytes before."""
    crc = value ^ 0xFFFFFFFF
    for octet in memoryview(data).cast("B"):
        crc = crc >> 8 ^ _TABLE[(crc ^ octet) & 0xFF]
    return crc ^ 0xFFFFFFFF


crc32c: Callable[..., int]
"""Computes CRC32C of some bytes. A second argument continues from the checksum of the bytes before."""

try:
    from crc32c import crc32c
except ImportError:
    crc32c = crc32c_slowly

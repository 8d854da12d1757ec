"""Hashes that clients and brokers must agree on: choice of partition, sticky keys, topic lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from interpulse.wire.checksum import crc32c

STICKY_SLOTS: Final = 65536
"""The size of the ring that Key_Shared divides among consumers."""

_POSITIVE: Final = 0x7FFFFFFF
_U32: Final = 0xFFFFFFFF


def java_string_hash(key: str) -> int:
    """Return Java's ``String.hashCode``, made non-negative.

    It covers UTF-16 units, so characters outside the BMP count as two.
    """
    value = 0
    encoded = key.encode("utf-16-le", "surrogatepass")
    for low, high in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _U32
    return value & _POSITIVE


def murmur3_slowly(key: bytes) -> int:
    """Return MurmurHash3 (x86, 32 bits, seed 0), unsigned, without any library."""
    value = 0
    whole = len(key) & ~3
    for start in range(0, whole, 4):
        value ^= _murmur3_mix(int.from_bytes(key[start : start + 4], "little"))
        value = ((value << 13 | value >> 19) * 5 + 0xE6546B64) & _U32
    value ^= _murmur3_mix(int.from_bytes(key[whole:], "little"))
    value ^= len(key)
    value = ((value ^ value >> 16) * 0x85EBCA6B) & _U32
    value = ((value ^ value >> 13) * 0xC2B2AE35) & _U32
    return value ^ value >> 16


def _murmur3_mix(block: int) -> int:
    block = (block * 0xCC9E2D51) & _U32
    return ((block << 15 | block >> 17) & _U32) * 0x1B873593 & _U32


_murmur3: Callable[[bytes, int, bool], int]
"""Returns the hash of a key with a seed, signed or not."""

try:
    from mmh3 import hash as _murmur3
except ImportError:  # also in an archive that holds the package without its compiled part

    def _murmur3(key: bytes, seed: int, signed: bool) -> int:
        return murmur3_slowly(key)


def murmur3_hash(key: bytes) -> int:
    """Return Murmur3 (x86, 32 bits, seed 0), made non-negative, as all Pulsar clients use it."""
    return _murmur3(key, 0, False) & _POSITIVE


def sticky_slot(key: bytes) -> int:
    """Return the slot of a key on the ring of Key_Shared: 1 to 65535, never 0."""
    return _murmur3(key, 0, False) % STICKY_SLOTS or 1


def sticky_slots(keys: Iterable[bytes]) -> list[int]:
    """Return the slots of many keys; see `sticky_slot`."""
    murmur3 = _murmur3
    return [murmur3(key, 0, False) % STICKY_SLOTS or 1 for key in keys]


def topics_hash(topics: Iterable[str]) -> str:
    """Return the hash of topic names in any order, as in GET_TOPICS_OF_NAMESPACE."""
    value: int = crc32c(",".join(sorted(topics)).encode())
    return value.to_bytes(4, "little").hex()

"""Bundles: the hash ranges of a namespace, and which one a topic belongs to."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from interpulse.model.names import TopicName

__all__ = ["BUNDLES_DEFAULT", "bundle_boundaries", "bundle_hash", "bundle_of"]

BUNDLES_DEFAULT: Final = 4
_HASH_MAX: Final = 0xFFFFFFFF


def bundle_boundaries(bundles: int) -> tuple[str, ...]:
    """The ends of that many equal hash ranges, as Pulsar writes them: ``0x00000000`` ... ``0xffffffff``."""
    step = (_HASH_MAX + 1) // bundles
    return (*(f"0x{step * index:08x}" for index in range(bundles)), f"0x{_HASH_MAX:08x}")


def bundle_hash(topic: TopicName) -> int:
    """Where a topic lies in the hash range of its namespace: the CRC-32 of its complete name."""
    return zlib.crc32(str(topic).encode())


def bundle_of(topic: TopicName, boundaries: Sequence[str]) -> str:
    """The bundle of a topic, as ``<lower>_<upper>``; the last one includes its upper end."""
    lower_ends = [int(boundary, 16) for boundary in boundaries[:-1]]
    index = bisect_right(lower_ends, bundle_hash(topic)) - 1
    return f"{boundaries[index]}_{boundaries[index + 1]}"

"""Bundles, the hash ranges of a namespace: assignment of topics, names used by operators, and splits."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from interpulse.model.errors import InvalidRequest, NotFound, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies

BUNDLES_DEFAULT: Final = 4
_BUNDLES_MAX: Final = 65_536
"""Maximum number of bundles, more than any load balancer creates. Pulsar's limit of 2^32 could exhaust the memory."""
_HASH_MAX: Final = 0xFFFFFFFF
ONE_BUNDLE: Final = ("0x00000000", "0xffffffff")
"""Boundaries of a namespace that is not divided."""
_REASON_CHARS_MAX: Final = 500

RANGE_EQUALLY_DIVIDE: Final = "range_equally_divide"
TOPIC_COUNT_EQUALLY_DIVIDE: Final = "topic_count_equally_divide"
SPECIFIED_POSITIONS_DIVIDE: Final = "specified_positions_divide"
SPLIT_ALGORITHMS: Final = (RANGE_EQUALLY_DIVIDE, TOPIC_COUNT_EQUALLY_DIVIDE, SPECIFIED_POSITIONS_DIVIDE)
"""Supported split algorithms.

Pulsar's ``flow_or_qps_equally_divide`` needs rates per topic, which are not measured here.
"""
LARGEST: Final = "LARGEST"
_HOT: Final = "HOT"


def bundle_boundaries(bundles: int) -> tuple[str, ...]:
    """Return the ends of ``count`` equal hash ranges in Pulsar's form: ``0x00000000`` ... ``0xffffffff``."""
    step = (_HASH_MAX + 1) // bundles
    return (*(f"0x{step * index:08x}" for index in range(bundles)), f"0x{_HASH_MAX:08x}")


def bundle_hash(topic: TopicName) -> int:
    """Return the position of a topic in the hash range of its namespace: the CRC-32 of its full name."""
    return zlib.crc32(str(topic).encode())


def bundle_of(topic: TopicName, boundaries: Sequence[str]) -> str:
    """Return the bundle of a topic as ``<lower>_<upper>``. The last bundle includes its upper end."""
    return bundle_at(boundaries, bisect_right(lower_ends(boundaries), bundle_hash(topic)) - 1)


def boundaries_of(policies: NamespacePolicies | None) -> tuple[str, ...]:
    """Return the boundaries in the policies of a namespace; one bundle for everything if they have none."""
    return boundaries_in(policies.other if policies else {})


def boundaries_in(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the boundaries in a record with ``bundles``; one bundle for everything if it has none."""
    bundles = record.get("bundles") or {}
    return tuple(bundles.get("boundaries") or ONE_BUNDLE)


def bundles_of_new_namespace(requested: Any) -> dict[str, Any]:
    """Return the ``bundles`` of a new namespace: the requested boundaries, or equal ranges. Raise InvalidRequest.

    Without a positive ``numBundles`` Pulsar's default number applies, even if boundaries are given.
    """
    body = requested if isinstance(requested, dict) else {}
    count, boundaries = body.get("numBundles"), body.get("boundaries")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        count, boundaries = BUNDLES_DEFAULT, None
    if boundaries:
        chosen = _checked_boundaries(boundaries)
    elif count > _BUNDLES_MAX:
        raise InvalidRequest(f"Invalid number of bundles {count}: it has to be in the range of 1 to {_BUNDLES_MAX}")
    else:
        chosen = bundle_boundaries(count)
    return {"boundaries": list(chosen), "numBundles": len(chosen) - 1}


def _checked_boundaries(boundaries: Any) -> tuple[str, ...]:
    try:
        numbers = sorted({int(boundary, 0) for boundary in boundaries})
    except (TypeError, ValueError):
        raise InvalidRequest(f"Bundle boundaries must be hexadecimal texts, not {str(boundaries)[:100]}") from None
    if numbers[0] != 0 or numbers[-1] != _HASH_MAX:
        raise InvalidRequest(
            f"Input bundles do not cover the whole hash range. "
            f"first:0x{numbers[0]:08x}, last:0x{numbers[-1]:08x}; they go from 0x00000000 to 0x{_HASH_MAX:08x}"
        )
    return tuple(f"0x{number:08x}" for number in numbers)


def lower_ends(boundaries: Sequence[str]) -> list[int]:
    """Return the lower end of each bundle as a number."""
    return [int(boundary, 16) for boundary in boundaries[:-1]]


def bundle_at(boundaries: Sequence[str], index: int) -> str:
    """Return the bundle with this number as ``<lower>_<upper>``."""
    return f"{boundaries[index]}_{boundaries[index + 1]}"


def checked_bundle(text: str, boundaries: Sequence[str]) -> str:
    """Return the bundle ``<lower>_<upper>`` in its canonical form. The letter case is ignored.

    Raise PreconditionFailed if the namespace has no such bundle.
    """
    bundles = [f"{lower}_{upper}" for lower, upper in pairwise(boundaries)]
    if text.lower() not in bundles:
        supported = ", ".join(bundles)
        raise PreconditionFailed(f"Invalid bundle range {text[:100]!r}: there is {supported[:_REASON_CHARS_MAX]}")
    return text.lower()


def named_bundle(text: str, boundaries: Sequence[str], topics: Iterable[TopicName]) -> str:
    """Return the bundle ``<lower>_<upper>``, or the one with the most ``topics`` for ``LARGEST``.

    Raise PreconditionFailed if the namespace has no such bundle, and NotFound for ``HOT`` or without topics.
    """
    if text == _HOT:
        raise NotFound("Bundle range HOT not found: the load of bundles is not measured here; name one, or LARGEST")
    if text != LARGEST:
        return checked_bundle(text, boundaries)
    counts = Counter(bundle_of(topic, boundaries) for topic in topics)
    if not counts:
        raise NotFound("Bundle range LARGEST not found: the namespace has no topics")
    return min(counts, key=lambda bundle: (-counts[bundle], bundle))


def split_positions(
    bundle: str, *, algorithm: str, topics: Iterable[TopicName], positions: Sequence[int] = ()
) -> list[int]:
    """Return the sorted positions at which a bundle is divided; empty if its topics leave nothing to divide.

    ``topics`` are those of the bundle. Raise PreconditionFailed for an unknown algorithm, and if the algorithm needs
    positions and none inside the bundle is given.
    """
    lower, upper = (int(end, 16) for end in bundle.split("_"))
    if algorithm == SPECIFIED_POSITIONS_DIVIDE:
        return _positions_inside(bundle, range(lower + 1, upper), positions)
    if algorithm == RANGE_EQUALLY_DIVIDE:
        middle = lower + (upper - lower) // 2
    elif algorithm == TOPIC_COUNT_EQUALLY_DIVIDE:
        hashes = sorted(map(bundle_hash, topics))
        if len(hashes) < 2:
            return []
        left, right = hashes[len(hashes) // 2 - 1], hashes[len(hashes) // 2]
        middle = left + (right - left) // 2
    else:
        supported = ", ".join(SPLIT_ALGORITHMS)
        raise PreconditionFailed(
            f"Unsupported namespace bundle split algorithm {algorithm[:100]!r}, supported algorithms are [{supported}]"
        )
    return [middle] if lower < middle < upper else []


def _positions_inside(bundle: str, inside: range, positions: Sequence[int]) -> list[int]:
    if not positions:
        raise PreconditionFailed(
            f"With {SPECIFIED_POSITIONS_DIVIDE} split algorithm, splitBoundaries must not be empty"
        )
    chosen = sorted({position for position in positions if position in inside})
    if not chosen:
        raise PreconditionFailed(
            f"None of the split boundaries lies in bundle {bundle}: they are numbers from {inside.start} to "
            f"{inside.stop - 1}"
        )
    return chosen


def split_at(boundaries: Sequence[str], positions: Iterable[int]) -> tuple[str, ...]:
    """Return the boundaries with these added. Raise PreconditionFailed if there would be too many bundles."""
    numbers = sorted({*(int(boundary, 16) for boundary in boundaries), *positions})
    if len(numbers) - 1 > _BUNDLES_MAX:
        raise PreconditionFailed(f"A namespace may have {_BUNDLES_MAX} bundles; this would make {len(numbers) - 1}")
    return tuple(f"0x{number:08x}" for number in numbers)

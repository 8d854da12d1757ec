"""Judge of lanes.

R1: the target is the source restricted to what is meant for it. R2: no entry goes round, and cursors on the source
never pass what the target holds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from interpulse.model.ids import EARLIEST, LATEST, Position
from tests.simulation.judge import Finding


class StoredEntry(NamedTuple):
    """An entry of a topic at the end of a run."""

    position: Position
    content: bytes
    origin: str = ""
    """The cluster that it was replicated from; empty if it was published here."""
    source: Position | None = None
    """Its position there."""
    producer: str = ""
    addressed: Sequence[str] = ()
    """The clusters that it is meant for; empty for all."""


class Acknowledged(NamedTuple):
    """An acknowledgement of a lane on its source."""

    position: Position
    target_end: Position
    """The last position that the target held at that moment."""


def judge_lane(
    lane: str,
    clusters: tuple[str, str],
    source: Sequence[StoredEntry],
    target: Sequence[StoredEntry],
    *,
    upto: Position,
    acknowledged: Sequence[Acknowledged],
) -> Iterator[Finding]:
    """Yield the differences between the entries that were published in the source, and their copies in the target.

    ``clusters`` are the names of both. Entries behind ``upto``, which no committed batch has read, may be missing.
    """
    origin, there = clusters
    originals = {entry.position: entry for entry in source if _is_meant(entry, there)}
    copies = [entry for entry in target if entry.origin == origin]
    for copy in copies:
        original = originals.get(copy.source) if copy.source is not None else None
        if original is None:
            yield Finding("R1", f"{lane}: {copy.position} is a copy of {copy.source}, which is not meant for {there}")
        elif original.content != copy.content:
            yield Finding("R1", f"{lane}: {copy.position} differs from {copy.source}, of which it is a copy")
    copied = [copy.source for copy in copies if copy.source is not None]
    for position, count in Counter(copied).items():
        if count > 1:
            yield Finding("R1", f"{lane}: {position} is there {count} times")
    for before, after in pairwise(copied):
        if after < before:
            yield Finding("R1", f"{lane}: {after} comes behind {before}")
    places = {copy.source: copy.position for copy in copies}
    for position in originals:
        if position not in places and position <= upto:
            yield Finding("R1", f"{lane}: {position} is missing")
    yield from _judge_cursor(lane, [(each, places.get(each, LATEST)) for each in originals], acknowledged)


def _judge_cursor(
    lane: str, places: Sequence[tuple[Position, Position]], acknowledged: Sequence[Acknowledged]
) -> Iterator[Finding]:
    """Yield the first acknowledgement of an entry that the target did not hold; ``places`` has those of all entries."""
    originals = [original for original, _ in places]
    ends = [EARLIEST, *accumulate((place for _, place in places), max)]
    for position, end in acknowledged:
        if ends[bisect_right(originals, position)] > end:
            yield Finding("R2", f"{lane}: {position} was acknowledged when the target ended at {end}")
            return


def _is_meant(entry: StoredEntry, cluster: str) -> bool:
    """Return True if an entry was published where it is, and is meant for this cluster."""
    return not entry.origin and (not entry.addressed or cluster in entry.addressed)


def judge_origins(cluster: str, stored: Sequence[StoredEntry]) -> Iterator[Finding]:
    """Yield the entries of a cluster that came back to it, or that another cluster than their own sent."""
    for entry in stored:
        if entry.origin == cluster:
            yield Finding("R2", f"{cluster}: {entry.position} was published there at {entry.source} and came back")
        elif entry.origin and f".{entry.origin}-->{cluster}." not in entry.producer:
            yield Finding("R2", f"{cluster}: {entry.position} of {entry.origin} came by {entry.producer}")

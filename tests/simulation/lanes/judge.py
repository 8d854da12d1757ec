"""Judge of lanes: R1, the target is the source restricted to what is meant for it; R2, no entry goes round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from interpulse.model.ids import Position
from tests.simulation.judge import Finding


class StoredEntry(NamedTuple):
    """An entry of a topic at the end of a run."""

    position: Position
    content: bytes
    origin: str = ""
    """The cluster that it was replicated from; empty if it was published here."""
    source: Position | None = None
    """Its position there."""


def judge_lane(
    lane: str, origin: str, source: Sequence[StoredEntry], target: Sequence[StoredEntry], *, upto: Position
) -> Iterator[Finding]:
    """Yield the differences between the entries published in ``origin`` and their copies in the target.

    Entries behind ``upto``, which no committed batch has read, may be missing.
    """
    originals = {entry.position: entry for entry in source if not entry.origin}
    copies = [entry for entry in target if entry.origin == origin]
    for copy in copies:
        original = originals.get(copy.source) if copy.source is not None else None
        if original is None:
            yield Finding("R1", f"{lane}: {copy.position} is a copy of {copy.source}, which was not published there")
        elif original.content != copy.content:
            yield Finding("R1", f"{lane}: {copy.position} differs from {copy.source}, of which it is a copy")
    positions = [copy.source for copy in copies if copy.source is not None]
    for position, count in Counter(positions).items():
        if count > 1:
            yield Finding("R1", f"{lane}: {position} is there {count} times")
    for before, after in pairwise(positions):
        if after < before:
            yield Finding("R1", f"{lane}: {after} comes behind {before}")
    copied = set(positions)
    for position in originals:
        if position not in copied and position <= upto:
            yield Finding("R1", f"{lane}: {position} is missing")


def judge_round_trips(cluster: str, stored: Sequence[StoredEntry]) -> Iterator[Finding]:
    """Yield the entries of a cluster that came back to it."""
    for entry in stored:
        if entry.origin == cluster:
            yield Finding("R2", f"{cluster}: {entry.position} was published there at {entry.source} and came back")

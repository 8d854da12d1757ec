"""Acknowledgements of a tail at the site that serves, and payloads at both sites. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import ALL_WAIT, Acknowledgements


class Wanted(NamedTuple):
    """Message of a tail, and the subscriptions that must not deliver its copy."""

    position: Position
    batch_index: int
    subscriptions: tuple[str, ...]


def wanted_of(rows: Iterable[Mapping[str, Any]], replicated: Collection[tuple[str, str]]) -> dict[str, list[Wanted]]:
    """Return the messages that a replicated subscription has acknowledged, by topic-partition.

    ``rows`` are lines of the list of a tail, and ``replicated`` pairs of topic-partition and subscription.
    """
    found: defaultdict[str, list[Wanted]] = defaultdict(list)
    for row in rows:
        topic = row["topic"]
        names = tuple(name for name in row["acknowledged_by"] if (topic, name) in replicated)
        if names:
            found[topic].append(Wanted(Position.parse(row["position"]), row["batch_index"], names))
    return dict(found)


def count_missing(
    wanted: Iterable[Wanted], copies: Mapping[Position, Position], cursors: Mapping[str, Acknowledgements]
) -> int:
    """Return how many acknowledgements of a tail are missing. Those without a copy are, too.

    ``copies`` are positions of copies by that of the original, and ``cursors`` the subscriptions where the copies are.
    """
    return sum(
        not _holds(cursors.get(name), copies.get(each.position), each.batch_index)
        for each in wanted
        for name in each.subscriptions
    )


def _holds(cursor: Acknowledgements | None, copy: Position | None, batch_index: int) -> bool:
    if cursor is None or copy is None:
        return False
    waiting = cursor.masks.get(copy, ALL_WAIT)
    return cursor.holds(copy) or (batch_index >= 0 and not waiting >> batch_index & 1)


class Comparison(NamedTuple):
    """Entries of one site compared with their copies at the other one."""

    same: int
    missing: tuple[Position, ...]
    different: tuple[Position, ...]


def compared(originals: Iterable[tuple[Position, bytes]], copies: Mapping[Position, bytes]) -> Comparison:
    """Compare checksums of payloads, by the position of the original."""
    same, missing, different = 0, [], []
    for position, checksum in originals:
        copy = copies.get(position)
        if copy is None:
            missing.append(position)
        elif copy != checksum:
            different.append(position)
        else:
            same += 1
    return Comparison(same, tuple(missing), tuple(different))

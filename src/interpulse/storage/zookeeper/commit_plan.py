"""A commit as the steps of a multi.

ZooKeeper has no step for "must be absent": such a key is created and, if it is not to be written, deleted again. It has
none for "put, whether it exists or not" either: the plan follows the cached nodes, and is made again if they were
outdated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from interpulse.storage.api import Change, CommitConflict, Put
from interpulse.storage.zookeeper import records as zk
from interpulse.storage.zookeeper.node_cache import CachedNode
from interpulse.storage.zookeeper.records import ANY_VERSION, Step


class Planned(NamedTuple):
    """One step. ``expected`` is True if its refusal means that an expectation of the commit does not hold."""

    step: Step
    expected: bool


def last_changes(changes: Sequence[Change]) -> dict[str, Change]:
    """Return the last change of each key: only that one counts."""
    return {change.key: change for change in changes}


def plan_commit(
    changes: Mapping[str, Change],
    expect: Mapping[str, int | None],
    nodes: Mapping[str, CachedNode],
    session_id: int = 0,
) -> list[Planned]:
    """Return the steps in an order in which each finds what it needs.

    ``nodes`` holds every key, ``session_id`` is the session of ephemeral keys. Raise `CommitConflict` if the nodes
    contradict an expectation, or if an ephemeral key exists and is not of this session.
    """
    for key, version in expect.items():
        stored = nodes[key].stored
        if (None if stored is None else stored.version) != version:
            raise CommitConflict(key)
    for key, change in changes.items():
        if isinstance(change, Put) and change.ephemeral and nodes[key].stored and nodes[key].owner != session_id:
            raise CommitConflict(key)
    checks = [
        Planned(Step(zk.CHECK, zk.Check(key, nodes[key].version)), True)
        for key in expect
        if key not in changes and nodes[key].stored is not None
    ]
    doomed = sorted((key for key, change in changes.items() if not isinstance(change, Put)), reverse=True)
    deletions = [
        Planned(Step(zk.DELETE, zk.Delete(key, nodes[key].version if key in expect else ANY_VERSION)), key in expect)
        for key in doomed
        if nodes[key].stored is not None
    ]
    puts = {
        key: [_put(change, key in expect, nodes[key])] for key, change in changes.items() if isinstance(change, Put)
    }
    absent = {key for key, version in expect.items() if version is None} - puts.keys()
    absences = {
        key: [Planned(Step(zk.CREATE, zk.Create(key)), True), Planned(Step(zk.DELETE, zk.Delete(key)), True)]
        for key in absent
        if absent.isdisjoint(_above(key))
    }
    return [*checks, *deletions, *(step for _, steps in sorted((puts | absences).items()) for step in steps)]


def plan_marks(marks: Sequence[str]) -> list[Planned]:
    """Return steps that are refused if one of these marks is gone. The commit is then planned again."""
    return [Planned(Step(zk.CHECK, zk.Check(mark, ANY_VERSION)), False) for mark in marks]


def _above(key: str) -> Iterator[str]:
    """Yield every key above. If one of them is absent, this key is too."""
    while key := key.rpartition("/")[0]:
        yield key


def _put(put: Put, expected: bool, node: CachedNode) -> Planned:
    if node.stored is None:
        flags = zk.EPHEMERAL if put.ephemeral else zk.PERSISTENT
        return Planned(Step(zk.CREATE, zk.Create(put.key, put.value, flags=flags)), expected)
    return Planned(Step(zk.SET, zk.Set(put.key, put.value, node.version if expected else ANY_VERSION)), expected)

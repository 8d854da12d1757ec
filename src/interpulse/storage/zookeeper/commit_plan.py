"""A commit as the steps of a multi.

ZooKeeper has no step for "must be absent": such a key is created and, if it is not to be written, deleted again. It has
none for "put, whatever there is" either: the plan follows what was known, and is made again if that was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from interpulse.storage.api import Change, CommitConflict, Put
from interpulse.storage.zookeeper.known import KnownNode
from interpulse.storage.zookeeper.records import (
    ANY_VERSION,
    CHECK,
    CREATE,
    DELETE,
    SET,
    Check,
    Create,
    Delete,
    Set,
    Step,
)

__all__ = ["Planned", "last_changes", "plan_commit"]


class Planned(NamedTuple):
    """One step; ``expected`` if its refusal says that an expectation of the commit does not hold."""

    step: Step
    expected: bool


def last_changes(changes: Sequence[Change]) -> dict[str, Change]:
    """Of several changes of one key only the last one counts."""
    return {change.key: change for change in changes}


def plan_commit(
    changes: Mapping[str, Change], expect: Mapping[str, int | None], nodes: Mapping[str, KnownNode]
) -> list[Planned]:
    """The steps, in an order in which each finds what it needs.

    ``nodes`` has every key. Raises `CommitConflict` for an expectation that they contradict.
    """
    for key, version in expect.items():
        found = nodes[key].found
        if (None if found is None else found.version) != version:
            raise CommitConflict(key)
    looks: list[Planned] = []
    for key in expect.keys() - changes.keys():
        looks += _look(key, expect[key], nodes[key])
    doomed = sorted((key for key, change in changes.items() if not isinstance(change, Put)), reverse=True)
    puts = [changes[key] for key in sorted(changes) if isinstance(changes[key], Put)]
    deletions = [step for key in doomed for step in _deletion(key, key in expect, nodes[key])]
    return [*looks, *deletions, *(_put(put, put.key in expect, nodes[put.key]) for put in puts if isinstance(put, Put))]


def _look(key: str, version: int | None, node: KnownNode) -> list[Planned]:
    if version is None:
        return _absence(key)
    return [Planned(Step(CHECK, Check(key, node.version)), True)]


def _absence(key: str) -> list[Planned]:
    return [Planned(Step(CREATE, Create(key)), True), Planned(Step(DELETE, Delete(key)), True)]


def _deletion(key: str, expected: bool, node: KnownNode) -> list[Planned]:
    if node.found is None:
        return _absence(key) if expected else []
    return [Planned(Step(DELETE, Delete(key, node.version if expected else ANY_VERSION)), expected)]


def _put(put: Put, expected: bool, node: KnownNode) -> Planned:
    if node.found is None:
        return Planned(Step(CREATE, Create(put.key, put.value)), expected)
    return Planned(Step(SET, Set(put.key, put.value, node.version if expected else ANY_VERSION)), expected)

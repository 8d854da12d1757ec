from __future__ import annotations

import pytest

from interpulse.storage.api import Change, CommitConflict, Delete, Put, Versioned
from interpulse.storage.zookeeper.commit_plan import last_changes, plan_commit
from interpulse.storage.zookeeper.node_cache import CachedNode

THERE = CachedNode(Versioned(b"", 70), 7)  # transaction 70, written 7 times
GONE = CachedNode(None, -1)


@pytest.mark.parametrize(
    ("change", "expect", "node", "steps"),
    [
        (Put("/a", b""), {}, GONE, ["create /a"]),
        (Put("/a", b""), {}, THERE, ["set /a -1"]),
        (Put("/a", b""), {"/a": None}, GONE, ["create /a !"]),
        (Put("/a", b""), {"/a": 70}, THERE, ["set /a 7 !"]),
        (Delete("/a"), {}, GONE, []),
        (Delete("/a"), {}, THERE, ["delete /a -1"]),
        (Delete("/a"), {"/a": None}, GONE, ["create /a !", "delete /a -1 !"]),
        (Delete("/a"), {"/a": 70}, THERE, ["delete /a 7 !"]),
        (None, {"/a": None}, GONE, ["create /a !", "delete /a -1 !"]),
        (None, {"/a": 70}, THERE, ["check /a 7 !"]),
    ],
)
def test_key_when_changed_or_expected_then_these_steps(
    change: Change | None, expect: dict[str, int | None], node: CachedNode, steps: list[str]
) -> None:
    assert printed(last_changes([change] if change else []), expect, {"/a": node}) == steps


@pytest.mark.parametrize(("expected", "node"), [(None, THERE), (70, GONE), (71, THERE), (69, THERE)])
def test_expectation_when_the_cache_contradicts_then_conflict(expected: int | None, node: CachedNode) -> None:
    with pytest.raises(CommitConflict, match="/a"):
        plan_commit({}, {"/a": expected}, {"/a": node})


def test_steps_when_keys_nest_then_deleted_from_below_and_created_from_above() -> None:
    changes = last_changes(
        [Delete("/a"), Delete("/a/b"), Put("/c/d/e", b""), Put("/c", b""), Put("/c/d", b""), Put("/z", b"")]
    )
    nodes = {"/a": THERE, "/a/b": THERE, "/c": GONE, "/c/d": GONE, "/c/d/e": GONE, "/z": THERE}
    order = ["delete /a/b -1", "delete /a -1", "create /c", "create /c/d", "create /c/d/e", "set /z -1"]
    assert printed(changes, {}, nodes) == order


def test_absence_when_keys_nest_then_checked_once_and_after_what_is_put_above() -> None:
    keys = ["/a", "/a/b", "/a/b/c", "/z", "/z/y"]
    expect: dict[str, int | None] = dict.fromkeys(keys)
    nodes = dict.fromkeys(keys, GONE)
    steps = ["create /a !", "delete /a -1 !", "create /z !", "create /z/y !", "delete /z/y -1 !"]
    assert printed(last_changes([Put("/z", b"")]), expect, nodes) == steps


def printed(changes: dict[str, Change], expect: dict[str, int | None], nodes: dict[str, CachedNode]) -> list[str]:
    lines = []
    for (operation, request), expected in plan_commit(changes, expect, nodes):
        version = "" if operation.name == "create" else f" {request.version}"
        lines.append(f"{operation.name} {request.path}{version}" + (" !" if expected else ""))
    return lines

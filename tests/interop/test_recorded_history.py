"""The checker of histories on short ones by hand: those that it must accept, and violations that it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.recorded_history import ABSENT, Operation, judge

pytestmark = [pytest.mark.interop, pytest.mark.slow]

KEY = "/t/n"
FIRST, SECOND = {"version": 1, "value": "a"}, {"version": 2, "value": "b"}


def write(call: int, end: int | None, value: str = "x", **fields: object) -> Operation:
    """A write between two moments, which was acknowledged unless the fields say otherwise."""
    outcome = "unknown" if end is None else "ok"
    return {"key": KEY, "client": "c", "kind": "write", "call": call, "return": end, "outcome": outcome} | {
        "value": value,
        **fields,
    }


def saw(call: int, kind: str = "read", **fields: object) -> Operation:
    """A read or a claim that takes a moment."""
    return {"key": KEY, "client": "c", "kind": kind, "call": call, "return": call, **fields}


CREATED = write(1, 2, "a", expect=ABSENT)
LOCKED = write(1, 2, "lock", expect=ABSENT, session=7)
EXPIRES = {"key": KEY, "client": "server", "kind": "expire", "call": 1, "return": None, "session": 7}
TAKEN = write(5, 6, "lock", expect=ABSENT, session=8)

POSSIBLE = {
    "compare and set": [CREATED, write(3, 4, "b", expect=FIRST), saw(5, found=SECOND)],
    "concurrent writes in either order": [write(1, 4, "a"), write(2, 3, "b"), saw(5, found=FIRST)],
    "true conflict": [CREATED, write(3, 6, "b", expect=FIRST), write(4, 5, "c", expect=FIRST, outcome="conflict")],
    "lost answer, applied later": [CREATED, write(3, None, "b"), saw(4, found=FIRST), saw(5, found=SECOND)],
    "lost answer, never applied": [CREATED, write(3, None, "b"), saw(4, found=FIRST)],
    "lost answer of a conflict": [CREATED, write(3, 4, "b"), write(5, None, "c", expect=FIRST), saw(6, found=SECOND)],
    "lock of a session that expired": [LOCKED, EXPIRES, saw(3, "claim", session=7), TAKEN, saw(7, "claim", session=8)],
    "created again and written as often": [
        *(CREATED, write(3, 4, kind="delete"), write(5, 6, "b", expect=ABSENT)),
        write(7, 8, "c", expect={**FIRST, "writes": 0}),
    ],
}
IMPOSSIBLE = {
    "stale read": [CREATED, write(3, 4, "b", expect=FIRST), saw(5, found=FIRST)],
    "lost update": [CREATED, write(3, 6, "b", expect=FIRST), write(4, 5, "c", expect=FIRST)],
    "lost write": [CREATED, write(3, 4, "b"), write(5, 6, "c", expect=FIRST)],
    "created twice": [CREATED, write(3, 4, "b", expect=ABSENT)],
    "false conflict": [CREATED, write(3, 4, "b", expect=FIRST, outcome="conflict")],
    "conflict that is applied": [
        *(CREATED, write(3, 4, "b"), write(5, 6, "c", expect=FIRST, outcome="conflict")),
        saw(7, found={"version": 3, "value": "c"}),
    ],
    "lost answer, applied and undone": [CREATED, write(3, None, "b"), saw(4, found=SECOND), saw(5, found=FIRST)],
    "version falls": [CREATED, saw(3, found={**FIRST, "version": 5}), write(4, 5, "b"), saw(6, found=SECOND)],
    "two holders": [LOCKED, EXPIRES, TAKEN, saw(7, "claim", session=7)],
    "two holders, session alive": [LOCKED, TAKEN],
    "claim without a lock": [saw(1, "claim", session=7)],
    "lock outlives its session": [LOCKED, EXPIRES, TAKEN, saw(7, found={"version": 1}, session=7)],
    "commit under an earlier lock": [
        *(LOCKED, EXPIRES, write(3, 4, kind="check", expect={"version": 1}), TAKEN),
        *(saw(7, found={"version": 2}, session=8), write(8, 9, kind="check", expect={"version": 1})),
    ],
    "written as often, not deleted between": [CREATED, write(3, 4, "b"), write(5, 6, expect={**FIRST, "writes": 0})],
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_history_when_an_order_explains_it_then_accepted(checker: Path, case: str) -> None:
    verdict = judge(checker, POSSIBLE[case])
    assert verdict.linearizable, verdict.text


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_history_when_no_order_explains_it_then_the_key_and_the_last_operation_are_shown(
    checker: Path, case: str
) -> None:
    other = [{**operation, "key": "/t/other"} for operation in POSSIBLE["compare and set"]]
    verdict = judge(checker, [*other, *IMPOSSIBLE[case]])
    assert not verdict.linearizable
    assert verdict.text.startswith(f"not linearizable: {KEY}, ")
    assert "/t/other" not in verdict.text


@pytest.mark.parametrize("broken", [{"kind": "swap"}, {"call": 9}, {"surprise": 1}, {"outcome": "fine"}])
def test_history_when_it_is_no_history_then_no_verdict(checker: Path, broken: Operation) -> None:
    with pytest.raises(RuntimeError, match="operation 1"):
        judge(checker, [CREATED | broken])

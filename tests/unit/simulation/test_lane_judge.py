"""Findings of the judge of lanes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interpulse.model.ids import Position
from tests.simulation.lanes.judge import Acknowledged, StoredEntry, judge_lane, judge_origins

UPTO = Position(1, 3)
SOURCE = [
    StoredEntry(Position(1, 0), b"0"),
    StoredEntry(Position(1, 1), b"1"),
    StoredEntry(Position(1, 2), b"of b", "b", Position(7, 7), "interpulse.sim.b-->a.e0"),
    StoredEntry(Position(1, 3), b"3"),
    StoredEntry(Position(1, 4), b"4"),
    StoredEntry(Position(1, 5), b"of c", "c", Position(7, 8), "interpulse.sim.b-->a.e0"),
    StoredEntry(Position(1, 6), b"for c", addressed=("c",)),
]
CHANGED = StoredEntry(Position(5, 9), b"?", "a", Position(1, 3))


def copies(*numbers: int) -> list[StoredEntry]:
    own = StoredEntry(Position(5, 0), b"own")
    stored = enumerate(numbers, 1)
    return [own, *(StoredEntry(Position(5, at), b"%d" % each, "a", Position(1, each)) for at, each in stored)]


@pytest.mark.parametrize(
    ("target", "texts"),
    [
        (copies(0, 1, 3), []),
        (copies(0, 1, 3, 4), []),
        (copies(0, 3), ["1:1 is missing"]),
        (copies(), ["1:0 is missing", "1:1 is missing", "1:3 is missing"]),
        (copies(0, 1, 1, 3), ["1:1 is there 2 times"]),
        (copies(1, 0, 3), ["1:0 comes behind 1:1"]),
        (copies(0, 1, 2, 3), ["5:3 is a copy of 1:2, which is not meant for b"]),
        (copies(0, 1, 3, 9), ["5:4 is a copy of 1:9, which is not meant for b"]),
        (copies(0, 1, 3, 6), ["5:4 is a copy of 1:6, which is not meant for b"]),
        (
            [*copies(0, 1), StoredEntry(Position(5, 9), b"?", "a", UPTO)],
            ["5:9 differs from 1:3, of which it is a copy"],
        ),
    ],
    ids=[
        "complete",
        "more",
        "hole",
        "nothing",
        "doubled",
        "reordered",
        "of another",
        "invented",
        "for another",
        "changed",
    ],
)
def test_copies_when_judged_then_each_difference_is_a_finding(
    target: Sequence[StoredEntry], texts: Sequence[str]
) -> None:
    findings = list(judge_lane("a-->b t", ("a", "b"), SOURCE, target, upto=UPTO, acknowledged=[]))
    assert [(each.property, each.text) for each in findings] == [("R1", f"a-->b t: {text}") for text in texts]


@pytest.mark.parametrize(
    ("position", "target_end", "passed"),
    [
        (Position(1, 1), Position(5, 2), False),
        (Position(1, 2), Position(5, 2), False),
        (Position(1, 1), Position(5, 1), True),
        (Position(1, 3), Position(5, 2), True),
        (Position(1, 4), Position(5, 9), True),
    ],
    ids=["held", "of another", "too early", "further", "missing"],
)
def test_acknowledgement_when_the_target_did_not_hold_everything_then_is_a_finding(
    position: Position, target_end: Position, passed: bool
) -> None:
    acknowledged = [Acknowledged(Position(1, -1), Position(5, -1)), Acknowledged(position, target_end)]
    findings = list(judge_lane("a-->b t", ("a", "b"), SOURCE, copies(0, 1, 3), upto=UPTO, acknowledged=acknowledged))
    text = f"a-->b t: {position} was acknowledged when the target ended at {target_end}"
    assert [(each.property, each.text) for each in findings] == ([("R2", text)] if passed else [])


@pytest.mark.parametrize(
    ("cluster", "texts"),
    [
        ("a", ["a: 1:5 of c came by interpulse.sim.b-->a.e0"]),
        (
            "b",
            [
                "b: 1:2 was published there at 7:7 and came back",
                "b: 1:5 of c came by interpulse.sim.b-->a.e0",
            ],
        ),
    ],
)
def test_entries_when_they_come_back_or_take_another_way_then_are_findings(cluster: str, texts: Sequence[str]) -> None:
    findings = list(judge_origins(cluster, SOURCE))
    assert [(each.property, each.text) for each in findings] == [("R2", text) for text in texts]

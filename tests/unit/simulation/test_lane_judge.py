"""Findings of the judge of lanes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interpulse.model.ids import Position
from tests.simulation.lanes.judge import StoredEntry, judge_lane, judge_round_trips

UPTO = Position(1, 3)
SOURCE = [
    StoredEntry(Position(1, 0), b"0"),
    StoredEntry(Position(1, 1), b"1"),
    StoredEntry(Position(1, 2), b"of b", "b", Position(7, 7)),
    StoredEntry(Position(1, 3), b"3"),
    StoredEntry(Position(1, 4), b"4"),
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
        (copies(0, 1, 2, 3), ["5:3 is a copy of 1:2, which was not published there"]),
        (copies(0, 1, 3, 9), ["5:4 is a copy of 1:9, which was not published there"]),
        (
            [*copies(0, 1), StoredEntry(Position(5, 9), b"?", "a", UPTO)],
            ["5:9 differs from 1:3, of which it is a copy"],
        ),
    ],
    ids=["complete", "more", "hole", "nothing", "doubled", "reordered", "of another", "invented", "changed"],
)
def test_copies_when_judged_then_each_difference_is_a_finding(
    target: Sequence[StoredEntry], texts: Sequence[str]
) -> None:
    findings = list(judge_lane("a-->b t", "a", SOURCE, target, upto=UPTO))
    assert [(each.property, each.text) for each in findings] == [("R1", f"a-->b t: {text}") for text in texts]


def test_entry_when_it_comes_back_then_is_a_finding() -> None:
    (finding,) = judge_round_trips("b", SOURCE)
    assert (finding.property, finding.text) == ("R2", "b: 1:2 was published there at 7:7 and came back")
    assert not list(judge_round_trips("a", SOURCE))

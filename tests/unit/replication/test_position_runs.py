"""The map between positions of originals and copies, against a dictionary."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.replication.acknowledgements import Span
from interpulse.replication.position_runs import PositionRuns, Run

Copies = list[tuple[Position, Position]]


def run(source: str, target: str, length: int = 1) -> Run:
    return Run(Position.parse(source), Position.parse(target), length)


def from_copy(copy: tuple[Position, Position], length: int = 1) -> Run:
    source, target = copy
    return Run(source, target, length)


def advanced(position: Position, step: int) -> Position:
    """Return a later position, in the next ledger if the step is large."""
    return Position(position.ledger, position.entry + step) if step < 4 else Position(position.ledger + 1, step - 4)


@st.composite
def copies(draw: Any) -> Copies:
    """Entries of a source with their positions on a target, both rising, with gaps and several ledgers on each side."""
    steps = draw(st.lists(st.tuples(*[st.sampled_from([1, 1, 1, 1, 2, 3, 4, 5])] * 2), max_size=30))
    source, target, made = Position(2, 0), Position(7, 3), []
    for on_source, on_target in steps:
        source, target = advanced(source, on_source), advanced(target, on_target)
        made.append((source, target))
    return made


@st.composite
def copies_in_runs(draw: Any) -> tuple[Copies, list[Run]]:
    """Copies, and runs that cover them in any order, some of them several times."""
    made: Copies = draw(copies())
    pieces = [Run(source, target, 1) for source, target in made]
    for start in draw(st.lists(st.integers(0, max(0, len(made) - 1)), max_size=10)) if made else []:
        length = 1
        while start + length < len(made) and from_copy(made[start], length).is_followed_by(
            from_copy(made[start + length])
        ):
            length += 1
        pieces.append(from_copy(made[start], draw(st.integers(1, length))))
    return made, draw(st.permutations(pieces))


@given(copies_in_runs())
def test_runs_added_in_any_order_map_each_entry_both_ways(given_copies: tuple[Copies, list[Run]]) -> None:
    made, pieces = given_copies
    runs = PositionRuns(pieces)
    assert [(runs.target_of(source), runs.source_of(target)) for source, target in made] == [
        (target, source) for source, target in made
    ]
    assert sum(part.length for part in runs) == len(made)
    assert not any(before.is_followed_by(after) for before, after in pairwise(runs)), "neighbours are merged"
    assert list(runs) == sorted(runs)
    assert [*runs] == [*PositionRuns(sorted(pieces))], "the order of adding does not matter"
    for part in [*runs, *pieces]:
        runs.add(part)
    assert [*runs] == [*PositionRuns(pieces)], "adding again changes nothing"


positions = st.builds(Position, st.integers(1, 12), st.integers(-1, 9))


@given(copies_in_runs(), positions, positions)
def test_ranges_are_translated_like_single_entries(
    given_copies: tuple[Copies, list[Run]], first: Position, last: Position
) -> None:
    made, pieces = given_copies
    runs = PositionRuns(pieces)
    there = [target for source, target in made if first <= source <= last]
    assert entries(runs.to_target(Span(first, last))) == there
    assert entries(runs.to_source(Span(first, last))) == [source for source, target in made if first <= target <= last]


def entries(ranges: Iterable[Span]) -> list[Position]:
    return [Position(first.ledger, entry) for first, last in ranges for entry in range(first.entry, last.entry + 1)]


@given(copies_in_runs())
def test_translation_there_and_back_is_the_identity_on_copies(given_copies: tuple[Copies, list[Run]]) -> None:
    made, pieces = given_copies
    runs = PositionRuns(pieces)
    for part in runs:
        (there,) = runs.to_target(Span(part.source, part.source_end))
        assert [*runs.to_source(there)] == [(part.source, part.source_end)]
    there_and_back = [
        position for copied in runs.to_target(Span(EARLIEST, LATEST)) for position in entries(runs.to_source(copied))
    ]
    assert there_and_back == [source for source, _ in made]


@given(copies_in_runs(), st.integers(0, 30), st.integers(0, 30))
def test_drop_forgets_runs_that_end_before_both_positions(
    given_copies: tuple[Copies, list[Run]], on_source: int, on_target: int
) -> None:
    made, pieces = given_copies
    runs = PositionRuns(pieces)
    source, target = (
        made[min(index, len(made) - 1)][side] if made else Position(0, 0)
        for side, index in enumerate((on_source, on_target))
    )
    left = [part for part in runs if part.source_end > source or part.target_end > target]
    runs.drop(source, target)
    assert [*runs] == left


@given(copies_in_runs(), st.integers(1, 12), st.integers(-1, 9))
def test_cut_forgets_entries_from_a_position_on(
    given_copies: tuple[Copies, list[Run]], ledger: int, entry: int
) -> None:
    made, pieces = given_copies
    runs, position = PositionRuns(pieces), Position(ledger, entry)
    runs.cut(position)
    assert [*runs] == [*PositionRuns(Run(here, there, 1) for here, there in made if here < position)]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(run("5:10", "9:111"), id="another copy of one entry"),
        pytest.param(run("5:16", "9:104"), id="another original of one copy"),
        pytest.param(run("5:30", "9:50"), id="behind on the source, before on the target"),
        pytest.param(run("5:5", "9:105", 10), id="overlaps on one side"),
        pytest.param(run("4:9", "9:300"), id="earlier ledger, later copy"),
        pytest.param(run("5:0", "9:90", 100), id="covers runs at other distances"),
        pytest.param(run("5:1", "9:1", 0), id="no entries"),
        pytest.param(run("5:-1", "9:1"), id="no position"),
    ],
)
def test_run_that_contradicts_others_is_refused_and_changes_nothing(wrong: Run) -> None:
    known = [run("5:10", "9:100", 5), run("5:20", "9:200", 5)]
    runs = PositionRuns(known)
    with pytest.raises(ValueError, match=r"5:|4:"):
        runs.add(wrong)
    assert [*runs] == known


def test_contradiction_names_both_runs() -> None:
    runs = PositionRuns([run("5:10", "9:100", 5)])
    with pytest.raises(ValueError, match=r"copies of 5:12 to 5:12 at 9:7 contradict 5:10 to 5:14 at 9:100: "):
        runs.add(run("5:12", "9:7"))


def test_runs_take_little_more_than_forty_bytes_each() -> None:
    tracemalloc.start()
    runs = PositionRuns(run(f"1:{2 * number}", f"1:{3 * number}") for number in range(20_000))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(runs) == 20_000
    assert taken < 20_000 * 64

"""The entry numbers of a ledger against a set."""

from __future__ import annotations

from itertools import chain, pairwise
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.broker.live import entry_numbers
from interpulse.broker.live.entry_numbers import EntryNumbers


@pytest.mark.parametrize("loose_max", [0, 3, entry_numbers.LOOSE_MAX])
@given(walk=st.lists(st.tuples(st.sampled_from(["add", "all", "remove", "run", "ranges"]), st.integers(0, 30))))
def test_entry_numbers_whatever_is_added_and_removed_then_they_agree_with_a_set(
    loose_max: int, walk: list[tuple[str, int]]
) -> None:
    with patch.object(entry_numbers, "LOOSE_MAX", loose_max):
        assert_agree_with_a_set(walk)


def assert_agree_with_a_set(walk: list[tuple[str, int]]) -> None:
    numbers, model = EntryNumbers(), set()
    for name, value in walk:
        if name == "add":
            assert numbers.add(value) == (value not in model)
            model.add(value)
        elif name == "run":
            run = set(range(value, min(value + 1 + value % 7, 31)))
            assert numbers.add_run(min(run), max(run)) == len(run - model)
            model |= run
        elif name == "all":
            scattered = set(range(value, 31, value % 4 + 1))
            assert numbers.add_all(scattered) == len(scattered - model)
            model |= scattered
        elif name == "ranges":
            ranges = list(numbers.ranges())
            assert set(chain.from_iterable(range(start, end + 1) for start, end in ranges)) == model
            assert all(end + 1 < start for (_, end), (start, _) in pairwise(ranges))
        else:
            assert numbers.remove_through(value) == sum(1 for each in model if each <= value)
            model = {each for each in model if each > value}
        assert {each for each in range(32) if each in numbers} == model
        assert numbers.count() == len(model)
        assert bool(numbers) == bool(model)
        assert numbers.highest >= max(model, default=-1)
        if model:
            gaps = set(range(32)) - model
            assert numbers.run_end(min(model)) == min(each for each in gaps if each > min(model)) - 1


@pytest.mark.parametrize(
    ("upto", "removed", "left"),
    [
        (1, 0, [(2, 6), (9, 9), (12, 15)]),
        (2, 1, [(3, 6), (9, 9), (12, 15)]),
        (6, 5, [(9, 9), (12, 15)]),
        (8, 5, [(9, 9), (12, 15)]),
        (13, 8, [(14, 15)]),
        (15, 10, []),
        (99, 10, []),
    ],
)
def test_entry_numbers_when_removed_through_one_then_of_its_range_only_what_lies_behind_is_left(
    upto: int, removed: int, left: list[tuple[int, int]]
) -> None:
    numbers = EntryNumbers()
    for entry in (12, 13, 14, 15, 9, 6, 5, 4, 3, 2):
        assert numbers.add(entry)
    assert numbers.remove_through(upto) == removed
    assert list(numbers.ranges()) == left


def test_entry_numbers_when_higher_ones_were_added_last_then_lower_ones_are_removed_too() -> None:
    numbers = EntryNumbers()
    numbers.add_all({5, 7})
    numbers.add_all({20, 30})
    assert numbers.remove_through(21) == 3
    assert list(numbers.ranges()) == [(30, 30)]

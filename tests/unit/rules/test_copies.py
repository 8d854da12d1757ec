"""The rule of copies as a table, and laws that hold for any two sequences."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.rules.copies import Item, Problem, judge


def items(text: str) -> list[Item]:
    """One letter per item; a capital has another content, and an item behind ``<`` is overtaken."""
    found, overtaken = [], False
    for index, letter in enumerate(text):
        if letter == "<":
            overtaken = True
            continue
        found.append(Item(letter.lower(), letter.encode(), str(index), overtaken))
        overtaken = False
    return found


CASES = {
    "nothing": ("", "", ""),
    "equal": ("abc", "abc", ""),
    "equal, one item": ("a", "a", ""),
    "one is missing": ("abc", "ac", "missing b"),
    "all are missing": ("ab", "", "missing a, missing b"),
    "extra": ("", "ab", "extra a, extra b"),
    "duplicated": ("a", "aa", "duplicated a"),
    "a range came twice": ("abc", "ababc", "duplicated a, duplicated b"),
    "equal items are told apart by their number": ("aab", "aab", ""),
    "of equal items one is missing": ("aa", "a", "missing a"),
    "different": ("ab", "aB", "different b"),
    "one item, different": ("a", "A", "different a"),
    "reordered": ("abc", "acb", "reordered b"),
    "reordered and different": ("ab", "bA", "different a, reordered a"),
    "overtaken by another group": ("a", "<a", "reordered a"),
    "a repeat that is overtaken is a repeat": ("a", "a<a", "duplicated a"),
    "left over on both sides": ("ab", "ax", "different b"),
    "more left over here": ("abc", "ax", "different b, missing c"),
    "more left over there": ("ab", "axy", "different b, extra y"),
}


@pytest.mark.parametrize(("originals", "copies", "expected"), CASES.values(), ids=CASES)
def test_copies_when_judged_then_have_these_problems(originals: str, copies: str, expected: str) -> None:
    found = judge(items(originals), items(copies))
    shown = [f"{each.problem} {(each.original or each.copy).identity}" for each in found]
    assert ", ".join(sorted(shown)) == ", ".join(sorted(filter(None, expected.split(", "))))


texts = st.text("abcdABCD", max_size=12)


@given(texts)
def test_copies_when_equal_then_nothing_is_found(text: str) -> None:
    assert judge(items(text), items(text)) == []


@given(texts, texts)
def test_copies_when_judged_then_every_item_is_accounted_for(originals: str, copies: str) -> None:
    """What is on one side only is as many items as the sides differ by."""
    found = Counter(each.problem for each in judge(items(originals), items(copies)))
    only_here, only_there = found[Problem.MISSING], found[Problem.EXTRA] + found[Problem.DUPLICATED]
    assert len(originals) - only_here == len(copies) - only_there


@given(texts, texts)
def test_copies_when_nothing_is_found_then_both_are_equal(originals: str, copies: str) -> None:
    assert (judge(items(originals), items(copies)) == []) == (originals == copies)


@given(st.lists(st.integers(0, 9), unique=True), st.data())
def test_copies_when_shuffled_then_only_their_order_is_wrong(numbers: list[int], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(numbers))
    found = judge(*([Item(number, b"", str(number)) for number in side] for side in (numbers, shuffled)))
    assert {each.problem for each in found} <= {Problem.REORDERED}
    assert bool(found) == (shuffled != numbers)

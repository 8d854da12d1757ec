"""Acknowledgements of two clusters, against sets of entries."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.acknowledgements import (
    Acknowledgements,
    News,
    Span,
    Translation,
    count_behind,
    joined,
    news_of,
    without,
)

LEDGERS, ENTRIES = range(1, 4), range(6)
LOG = [Position(ledger, entry) for ledger in LEDGERS for entry in ENTRIES]
positions = st.sampled_from(LOG)
sets = st.frozensets(positions)
copies = st.lists(st.tuples(positions, positions), unique_by=(lambda pair: pair[0], lambda pair: pair[1]))


def rising(pairs: Iterable[tuple[Position, Position]]) -> dict[Position, Position]:
    """Pair the sources with the targets in order, as copies are."""
    sources, targets = [sorted(side) for side in zip(*pairs, strict=True)] or [[], []]
    return dict(zip(sources, targets, strict=True))


mappings = copies.map(lambda pairs: rising(pairs) if pairs else {})


def spans_of(entries: Iterable[Position]) -> list[Span]:
    return joined(Span(entry, entry) for entry in entries)


def entries_of(spans: Iterable[Span]) -> set[Position]:
    return {entry for first, last in spans for entry in LOG if first <= entry <= last}


def acknowledged(mark_delete: Position, others: Iterable[Position]) -> Acknowledgements:
    return Acknowledgements(mark_delete, tuple(spans_of(each for each in others if each > mark_delete)))


states = st.builds(acknowledged, st.sampled_from([EARLIEST, *LOG]), sets)


def translation(mapping: dict[Position, Position]) -> Translation:
    def spans(span: Span) -> list[Span]:
        return spans_of(mapping[entry] for entry in sorted(mapping) if span.first <= entry <= span.last)

    return Translation(spans, mapping.get)


def applied(state: Acknowledgements, news: News) -> Acknowledgements:
    return acknowledged(state.mark_delete, entries_of([*state.beyond, *news.spans]))


@given(sets)
def test_spans_hold_the_same_entries_and_do_not_touch(entries: frozenset[Position]) -> None:
    spans = spans_of(entries)
    assert entries_of(spans) == entries
    assert all(before.last < (after.first.ledger, after.first.entry - 1) for before, after in pairwise(spans))


@given(sets, sets)
def test_difference_of_spans_is_that_of_their_entries(some: frozenset[Position], others: frozenset[Position]) -> None:
    assert entries_of(without(spans_of(some), spans_of(others))) == some - others


@given(states, states, mappings)
def test_news_are_the_counterparts_that_the_other_side_lacks(
    here: Acknowledgements, there: Acknowledgements, mapping: dict[Position, Position]
) -> None:
    news = news_of(here, there, translation(mapping))
    counterparts = {mapping[entry] for entry in entries_of(here.spans()) & mapping.keys()}
    assert entries_of(news.spans) == counterparts - entries_of(there.spans())
    assert news.entries == len(entries_of(news.spans))


@given(states, states, mappings)
def test_one_exchange_each_way_makes_both_sides_agree_on_all_copies(
    source: Acknowledgements, target: Acknowledgements, mapping: dict[Position, Position]
) -> None:
    to_target = translation(mapping)
    to_source = translation({there: here for here, there in mapping.items()})
    target_after = applied(target, news_of(source, target, to_target))
    source_after = applied(source, news_of(target, source, to_source))
    assert not news_of(source_after, target_after, to_target)
    assert not news_of(target_after, source_after, to_source)
    for here, there in mapping.items():
        before = source.holds(here) or target.holds(there)
        assert source_after.holds(here) == target_after.holds(there) == before, "the union, and nothing else"


def test_parts_of_batches_are_carried_until_the_other_side_has_them() -> None:
    here, there = LOG[3], LOG[7]
    to = translation({here: there})
    part = Acknowledgements(masks={here: 0b1010})
    assert news_of(part, Acknowledgements(), to) == News([], {there: 0b1010})
    assert not news_of(part, Acknowledgements(masks={there: 0b1010}), to)
    assert not news_of(part, Acknowledgements(masks={there: 0b0010}), to), "more of it is acknowledged there"
    assert news_of(part, Acknowledgements(masks={there: 0b0110}), to) == News([], {there: 0b1010})
    assert not news_of(part, acknowledged(there, ()), to), "the whole batch is"
    assert not news_of(part, Acknowledgements(), translation({})), "it has no counterpart"


def test_acknowledged_entries_behind_a_position_are_counted() -> None:
    state = acknowledged(Position(2, 3), [Position(2, 5), Position(3, 0)])
    assert [count_behind(state, Position(2, entry)) for entry in (0, 3, 5)] == [5, 2, 1]
    assert count_behind(state, Position(3, 0)) == 0

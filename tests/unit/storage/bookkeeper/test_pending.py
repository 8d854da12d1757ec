"""Acknowledgements against a plain model: every entry with the set of bookies that have it."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.bookkeeper.pending import PendingEntries
from interpulse.storage.bookkeeper.records import Quorum

QUORUMS = [Quorum(1, 1, 1), Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(5, 3, 2), Quorum(4, 3, 1)]
places = st.integers(0, 4)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(0, 9), min_size=1, max_size=12), st.just(0)),
        st.tuples(st.just("stored"), st.tuples(st.integers(0, 60), st.integers(1, 12)), places),
        st.tuples(st.just("stored by all"), st.tuples(st.integers(0, 60), st.integers(1, 12)), st.just(0)),
        st.tuples(st.sampled_from(["give up", "replace", "revive"]), st.none(), places),
    ),
    max_size=100,
)


class Model:
    """What is acknowledged and kept, said in the plainest way."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.sizes: list[int] = []
        self.stored: list[set[int]] = []
        self.waiting: list[set[int]] = []
        self.given_up: set[int] = set()
        self.confirmed = -1

    def append(self, sizes: list[int]) -> None:
        for size in sizes:
            self.waiting.append(set(self.quorum.positions(len(self.sizes))) - self.given_up)
            self.sizes.append(size)
            self.stored.append(set())

    def store(self, place: int, first: int, count: int) -> None:
        for entry in range(first, min(first + count, len(self.sizes))):
            if place in self.waiting[entry]:
                self.waiting[entry].discard(place)
                self.stored[entry].add(place)

    def give_up(self, place: int) -> None:
        self.given_up.add(place)
        for each in self.waiting:
            each.discard(place)

    def revive(self, place: int) -> None:
        self.given_up.discard(place)
        for entry in range(self.confirmed + 1, len(self.sizes)):
            if place in self.quorum.positions(entry) and place not in self.stored[entry]:
                self.waiting[entry].add(place)

    def replace(self, place: int) -> None:
        for each in self.stored[self.confirmed + 1 :]:
            each.discard(place)
        self.revive(place)

    def confirm(self) -> bool:
        before = self.confirmed
        while self.confirmed + 1 < len(self.stored) and len(self.stored[self.confirmed + 1]) >= self.quorum.ack:
            self.confirmed += 1
        return self.confirmed > before

    def kept(self) -> list[int]:
        return [entry for entry, places in enumerate(self.waiting) if places or entry > self.confirmed]

    def awaited(self, place: int) -> list[int]:
        return [entry for entry, places in enumerate(self.waiting) if place in places]


def add(pending: PendingEntries, sizes: list[int]) -> range:
    """Entries whose frames are their numbers."""
    first = pending.last + 1
    lengths = list(accumulate(sizes, initial=pending.length))[1:]
    return pending.append([b"%d" % (first + each) for each in range(len(sizes))], lengths)


@given(st.sampled_from(QUORUMS), moves)
def test_entries_when_runs_are_answered_at_random_then_as_in_the_model(
    quorum: Quorum, played: list[tuple[str, Any, int]]
) -> None:
    pending, model = PendingEntries(quorum), Model(quorum)
    for move, what, position in played:
        place = position % quorum.ensemble
        if move == "append":
            model.append(what)
            entry_ids = add(pending, what)
            for each in range(quorum.ensemble):
                assert list(pending.share(each, entry_ids)) == [e for e in entry_ids if each in quorum.positions(e)]
        elif move.startswith("stored"):
            for each in [place] if move == "stored" else range(quorum.ensemble):
                pending.stored(each, *what)
                model.store(each, *what)
        elif move == "give up":
            pending.give_up(place)
            model.give_up(place)
        elif move == "replace":
            pending.replace(place)
            model.replace(place)
        else:
            pending.revive(place)
            model.revive(place)
        assert pending.confirm() is model.confirm()
        check(pending, model)


def check(pending: PendingEntries, model: Model) -> None:
    assert (pending.confirmed, pending.last) == (model.confirmed, len(model.sizes) - 1)
    assert (pending.confirmed_length, pending.length) == (sum(model.sizes[: model.confirmed + 1]), sum(model.sizes))
    assert len(pending) == len(model.kept())
    assert pending.frames(model.kept()) == [b"%d" % each for each in model.kept()]
    for place in range(model.quorum.ensemble):
        assert pending.waiting(place) == model.awaited(place)
        behind = [each for each in model.awaited(place) if each <= model.confirmed]
        assert pending.lag(place) == (len(behind), sum(model.sizes[each] for each in behind))


def test_run_when_answered_in_part_then_so_much_of_it_is_acknowledged() -> None:
    pending = PendingEntries(Quorum(3, 3, 2))
    add(pending, [10] * 100)
    pending.stored(0, 0, 60)
    pending.stored(1, 30, 70)
    assert not pending.confirm()  # nobody but the first has the beginning
    pending.stored(2, 0, 40)
    assert pending.confirm()
    assert (pending.confirmed, pending.confirmed_length) == (59, 600)
    assert [pending.lag(place) for place in range(3)] == [(0, 0), (30, 300), (20, 200)]
    assert pending.waiting(1) == list(range(30))
    assert len(pending) == 90  # all have answered only from 30 to 39


def test_bookie_when_replaced_inside_a_run_then_its_successor_gets_the_rest() -> None:
    pending = PendingEntries(Quorum(3, 2, 2))
    add(pending, [1] * 12)
    for place in range(3):
        pending.stored(place, 0, 6)
    pending.confirm()
    pending.stored(1, 6, 6)  # and yet lost with the bookie
    pending.give_up(1)
    pending.replace(1)
    assert pending.confirmed == 5
    assert pending.waiting(1) == [6, 7, 9, 10]
    pending.stored(0, 6, 6)
    pending.stored(2, 6, 6)
    pending.stored(1, 9, 2)
    assert not pending.confirm()
    pending.stored(1, 6, 2)
    assert pending.confirm()
    assert (pending.confirmed, len(pending)) == (11, 0)


@pytest.mark.parametrize(
    ("quorum", "given_up", "possible"),
    [
        (Quorum(3, 3, 2), [0], True),
        (Quorum(3, 3, 2), [0, 1], False),
        (Quorum(3, 2, 2), [2], False),
        (Quorum(6, 3, 2), [0, 3], True),  # no write set has both: they are neighbours of two others
        (Quorum(6, 3, 2), [0, 2], False),
    ],
)
def test_quorum_when_bookies_are_given_up_then_possible_or_not(
    quorum: Quorum, given_up: list[int], possible: bool
) -> None:
    pending = PendingEntries(quorum)
    for position in given_up:
        pending.give_up(position)
    assert pending.possible is possible

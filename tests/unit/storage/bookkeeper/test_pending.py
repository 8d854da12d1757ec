"""Acknowledgements against a plain model: every entry with the set of bookies that have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.bookkeeper.ledger_metadata import Quorum
from interpulse.storage.bookkeeper.pending import PendingEntries, PendingEntry

QUORUMS = [Quorum(1, 1, 1), Quorum(3, 3, 2), Quorum(3, 2, 2), Quorum(5, 3, 2), Quorum(4, 3, 1)]
moves = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("stored"), st.integers(0, 40), st.integers(0, 4)),
        st.tuples(st.sampled_from(["give up", "replace", "revive"]), st.integers(0, 4), st.just(0)),
    ),
    max_size=120,
)


class Model:
    """What is acknowledged, said in the plainest way."""

    def __init__(self, quorum: Quorum) -> None:
        self.quorum = quorum
        self.stored: list[set[int]] = []
        self.confirmed = -1

    def confirm(self) -> None:
        while self.confirmed + 1 < len(self.stored) and len(self.stored[self.confirmed + 1]) >= self.quorum.ack:
            self.confirmed += 1

    def replace(self, position: int) -> None:
        for places in self.stored[self.confirmed + 1 :]:
            places.discard(position)


@given(st.sampled_from(QUORUMS), moves)
def test_entries_when_anything_happens_then_acknowledged_as_the_model_says(
    quorum: Quorum, played: list[tuple[str, int, int]]
) -> None:
    pending, model, entries = PendingEntries(quorum), Model(quorum), list[PendingEntry]()
    for move, number, position in played:
        place = (position if move == "stored" else number) % quorum.ensemble
        if move == "append":
            entries.append(pending.append(b"", number))
            model.stored.append(set())
        elif move == "stored" and number < len(entries):
            if place in pending.positions(entries[number]):
                model.stored[number].add(place)
            pending.stored(entries[number], place)
        elif move == "give up":
            pending.give_up(place)
        elif move == "replace":
            again = list(pending.replace(place))
            model.replace(place)
            assert [e for e in entries[model.confirmed + 1 :] if place in quorum.positions(e.entry_id)] == again
        elif move == "revive":
            list(pending.revive(place))
        pending.confirm()
        model.confirm()
        assert (pending.confirmed, pending.last) == (model.confirmed, len(entries) - 1)
        assert pending.confirmed_length == sum(each.size for each in entries[: model.confirmed + 1])
        waiting = {each.entry_id for each in entries if pending.positions(each)}
        assert len(pending) == len(waiting | set(range(model.confirmed + 1, len(entries))))
        for each in range(quorum.ensemble):
            behind = [e for e in entries[: model.confirmed + 1] if each in pending.positions(e)]
            assert pending.behind_entries[each] == len(behind)
            assert pending.behind_bytes[each] == sum(e.size for e in behind)


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

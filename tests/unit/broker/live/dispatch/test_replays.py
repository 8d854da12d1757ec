"""Positions that wait, oldest first."""

from __future__ import annotations

import random

from interpulse.broker.live.dispatch.replays import Replays
from interpulse.model.ids import Position


def positions(*entries: int) -> list[Position]:
    return [Position(1, entry) for entry in entries]


def test_whatever_is_done_then_it_is_a_sorted_set() -> None:
    chance = random.Random(1)
    replays, expected = Replays(), set[Position]()
    for _ in range(2_000):
        [position] = positions(chance.randrange(40))
        match chance.randrange(6):
            case 0 | 1:
                replays.add(position)
                expected.add(position)
            case 2:
                assert replays.discard(position) == (position in expected)
                expected.discard(position)
            case 3:
                first = chance.choice([40, position.entry])
                new = [each for each in positions(*range(first, 44, 2)) if each not in expected]
                replays.add_all(new)
                expected.update(new)
            case 4:
                gone = positions(*sorted(chance.sample(range(44), chance.randrange(6))))
                replays.discard_all(gone)
                expected -= set(gone)
            case 5:
                start = chance.randrange(len(expected) + 1)
                gone = sorted(expected)[start : start + 3]
                replays.discard_all(gone)
                expected -= set(gone)
        assert list(replays) == sorted(expected)
        assert len(replays) == len(expected)
        assert (position in replays) == (position in expected)


def test_first_ones_stay_and_popped_ones_go() -> None:
    replays = Replays(positions(3, 1, 2))
    assert replays.first(2) == positions(1, 2)
    assert replays.pop_upto(Position(1, 2)) == positions(1, 2)
    assert list(replays) == positions(3)

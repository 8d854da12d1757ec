"""Messages behind a position, from looks at a growing log."""

from __future__ import annotations

import pytest

from interpulse.failover.reporting.looks import Look, Looks
from interpulse.model.ids import Position

GROWING = (Look(1000, Position(3, 9), 10), Look(2000, Position(3, 19), 40), Look(3000, Position(4, 4), 50))


def looks_of(*looks: Look) -> Looks:
    made = Looks()
    for look in looks:
        made.add(look)
    return made


@pytest.mark.parametrize(
    ("position", "entries", "expected"),
    [
        (Position(3, 19), 5, 10),
        (Position(3, 9), 15, 40),
        (Position(3, 14), 10, 25),
        (Position(3, 2), 22, 22),
        (Position(4, 4), 0, 0),
        (Position(3, 19), 12, 12),
    ],
    ids=["at a look", "at an earlier one", "between two", "before all", "at the end", "more entries than messages"],
)
def test_messages_when_counted_behind_a_position_then_follow_the_looks(
    position: Position, entries: int, expected: int
) -> None:
    assert looks_of(*GROWING).messages_after(position, entries) == expected


def test_age_when_something_is_behind_then_counts_from_the_first_look_that_saw_it() -> None:
    looks = looks_of(*GROWING)
    assert [looks.age_ms(Position(3, entry), 3500) for entry in (9, 19)] == [1500, 500]
    assert looks.age_ms(Position(4, 4), 3500) is None


def test_looks_when_the_topic_was_loaded_again_then_begin_again() -> None:
    looks = looks_of(*GROWING, Look(4000, Position(5, 1), 2))
    assert looks.messages_after(Position(4, 4), 2) == 2

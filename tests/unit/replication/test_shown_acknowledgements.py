import pytest

from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements, Span
from interpulse.replication.shown_acknowledgements import (
    acknowledgements_in_stats,
    parse_ranges,
    reported_acknowledgements,
)


@pytest.mark.parametrize(
    ("shown", "spans"),
    [
        ("[]", []),
        ("[(8:0..8:1],(8:2..8:3]]", [((8, 1), (8, 1)), ((8, 3), (8, 3))]),
        ("[[3:9..3:14]]", [((3, 9), (3, 14))]),
        ("[(3:9..3:14)]", [((3, 10), (3, 13))]),
        ("[(7:-1..7:4]]", [((7, 0), (7, 4))]),
        ("[(3:9..5:2]]", [((3, 10), (5, 2))]),
    ],
)
def test_ranges_have_the_ends_that_their_brackets_say(
    shown: str, spans: list[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    assert parse_ranges(shown) == [Span(Position(*first), Position(*last)) for first, last in spans]


def test_acknowledgements_when_reported_then_with_masks() -> None:
    item = {"markDelete": "3:4", "ranges": [[3, 6, 8]], "masks": [[3, 10, [5]]]}
    expected = Acknowledgements(Position(3, 4), (Span(Position(3, 6), Position(3, 8)),), {Position(3, 10): 0b101})
    assert reported_acknowledgements(item) == expected


def test_acknowledgements_when_in_stats_then_whole_entries() -> None:
    cursor = {"markDeletePosition": "3:4", "individuallyDeletedMessages": "[(3:5..3:8]]"}
    assert acknowledgements_in_stats(cursor) == Acknowledgements(
        Position(3, 4), (Span(Position(3, 6), Position(3, 8)),)
    )

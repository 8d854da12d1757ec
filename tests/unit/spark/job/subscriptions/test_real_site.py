"""Positions of subscriptions as Apache Pulsar shows them."""

from __future__ import annotations

import pytest

from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Span
from interpulse.spark.job.subscriptions.real_site import parse_ranges


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

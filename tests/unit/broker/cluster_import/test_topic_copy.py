"""Positions move with their ledgers: what was acknowledged stays so, and nothing else becomes it."""

from __future__ import annotations

import pytest

from interpulse.broker.cluster_import.topic_copy import CopiedLedger, moved_cursor, moved_end
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.cursors import CursorRecord

LEDGERS = [CopiedLedger(3, 100, 5), CopiedLedger(7, 104, 2)]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position(3, 2), Position(100, 2)),
        (Position(3, -1), Position(100, -1)),
        (Position(7, 1), Position(104, 1)),
        (EARLIEST, Position(100, -1)),
        (Position(2, 9), Position(100, -1)),
        (Position(5, -1), Position(100, 4)),
        (Position(8, -1), Position(104, 1)),
        (Position(3, 9), Position(100, 4)),
        (LATEST, Position(104, 1)),
    ],
    ids=[
        "in a ledger",
        "before a ledger",
        "last entry",
        "before all",
        "in a trimmed ledger",
        "in an empty ledger between",
        "in the empty ledger at the end",
        "behind the end of a ledger",
        "behind all",
    ],
)
def test_end_when_ledgers_are_copied_then_the_same_entries_are_before_it(
    position: Position, expected: Position
) -> None:
    assert moved_end(position, LEDGERS) == expected


def test_end_when_no_entry_is_left_then_stands_before_all() -> None:
    assert moved_end(Position(9, 4), []) == EARLIEST


def test_cursor_when_ledgers_are_copied_then_acknowledges_the_same_entries() -> None:
    moved = moved_cursor(
        CursorRecord(
            mark_delete=Position(3, 0),
            ranges=((2, 0, 9), (3, 2, 3), (7, 1, 4), (7, 2, 3), (8, 0, 0)),
            batches=((Position(3, 4), (5,)), (Position(2, 1), (6,)), (Position(7, 2), (7,))),
            properties={"a": "b"},
            last_active_ms=9,
            numbers={"p": 3},
        ),
        LEDGERS,
    )
    assert moved == CursorRecord(
        mark_delete=Position(100, 0),
        ranges=((100, 2, 3), (104, 1, 1)),
        batches=((Position(100, 4), (5,)),),
        properties={"a": "b"},
        last_active_ms=9,
        numbers={"p": 3},
    )

"""Two states of one cursor taken together."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.ids import Position
from interpulse.storage.cursors import CursorRecord, is_continued, merged


def at(ledger: int, entry: int, *ranges: tuple[int, int, int], **more: Any) -> CursorRecord:
    return CursorRecord(Position(ledger, entry), ranges, **more)


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        pytest.param(at(7, 3), at(7, 5), at(7, 5), id="theirs-is-ahead"),
        pytest.param(at(8, 0), at(7, 5), at(8, 0), id="ours-is-ahead"),
        pytest.param(at(7, 3, (7, 5, 6)), at(7, 1, (7, 9, 9)), at(7, 3, (7, 5, 6), (7, 9, 9)), id="ranges"),
        pytest.param(at(7, 0, (7, 5, 6)), at(7, 0, (7, 7, 9)), at(7, 0, (7, 5, 9)), id="ranges-that-touch"),
        pytest.param(at(7, 5), at(7, 1, (7, 3, 8), (8, 0, 0)), at(7, 5, (7, 6, 8), (8, 0, 0)), id="half-passed"),
        pytest.param(
            at(7, 0, batches=((Position(7, 4), (0b111,)),)),
            at(7, 0, batches=((Position(7, 4), (0b101,)), (Position(7, 6), (1,)))),
            at(7, 0, batches=((Position(7, 4), (0b101,)), (Position(7, 6), (1,)))),
            id="parts-of-batches",
        ),
        pytest.param(
            at(7, 0, batches=((Position(7, 4), (0b111,)), (Position(7, 1), (1,)))),
            at(7, 2, (7, 4, 4)),
            at(7, 2, (7, 4, 4)),
            id="parts-of-what-is-done",
        ),
        pytest.param(
            at(7, 0, properties={"a": "ours"}),
            at(7, 1, properties={"a": "theirs"}),
            at(7, 1, properties={"a": "ours"}),
            id="properties-are-ours",
        ),
    ],
)
def test_states_when_merged_then_have_the_acknowledgements_of_both(
    ours: CursorRecord, theirs: CursorRecord, both: CursorRecord
) -> None:
    assert merged(ours, theirs) == both


@pytest.mark.parametrize(
    ("before", "after", "continued"),
    [
        (at(7, 3), at(7, 3), True),
        (at(7, 3), at(8, 0), True),
        (at(7, 3), at(7, 2), False),
        (at(7, 3, (7, 5, 6)), at(7, 6), True),
        (at(7, 3, (7, 5, 6)), at(7, 5, (7, 6, 9)), True),
        (at(7, 3, (7, 5, 6)), at(7, 4), False),
        (at(7, 3, (7, 5, 9)), at(7, 3, (7, 5, 6), (7, 7, 9)), True),
    ],
)
def test_state_when_an_acknowledged_entry_waits_again_then_cursor_was_reset(
    before: CursorRecord, after: CursorRecord, continued: bool
) -> None:
    assert is_continued(before, after) is continued

"""Positions of copies from receipts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.producing.unconfirmed import Receipt
from interpulse.model.ids import Position
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.lanes import pack_sequence
from interpulse.spark.writing.collected_runs import CollectedRuns

REFUSED = Position(-1, -1)


def receipt(sources: Sequence[Position], targets: Sequence[Position]) -> Receipt:
    return Receipt([pack_sequence(*source) for source in sources], targets)


def positions(ledger: int, *entries: int) -> list[Position]:
    return [Position(ledger, entry) for entry in entries]


@pytest.mark.parametrize(
    ("sources", "targets", "runs"),
    [
        pytest.param(
            positions(5, 0, 1, 2), positions(9, 7, 8, 9), [Run(Position(5, 0), Position(9, 7), 3)], id="consecutive"
        ),
        pytest.param(positions(5, 3), positions(9, 7), [Run(Position(5, 3), Position(9, 7), 1)], id="one"),
        pytest.param(
            positions(5, 0, 1, 3),
            positions(9, 7, 8, 9),
            [Run(Position(5, 0), Position(9, 7), 2), Run(Position(5, 3), Position(9, 9), 1)],
            id="an entry of the source was skipped",
        ),
        pytest.param(
            positions(5, 0, 1, 2),
            positions(9, 7, 9, 10),
            [Run(Position(5, 0), Position(9, 7), 1), Run(Position(5, 1), Position(9, 9), 2)],
            id="another producer published between",
        ),
        pytest.param(
            [*positions(5, 8, 9), *positions(6, 0)],
            positions(9, 7, 8, 9),
            [Run(Position(5, 8), Position(9, 7), 2), Run(Position(6, 0), Position(9, 9), 1)],
            id="next ledger of the source",
        ),
        pytest.param(
            positions(5, 0, 1, 2),
            [*positions(9, 7, 8), *positions(10, 9)],
            [Run(Position(5, 0), Position(9, 7), 2), Run(Position(5, 2), Position(10, 9), 1)],
            id="next ledger of the target",
        ),
        pytest.param(
            positions(5, 0, 1, 2),
            [Position(9, 7), REFUSED, Position(9, 9)],
            [Run(Position(5, 0), Position(9, 7), 1), Run(Position(5, 2), Position(9, 9), 1)],
            id="one was refused",
        ),
        pytest.param(positions(5, 0, 1), [REFUSED, REFUSED], [], id="all were refused"),
    ],
)
def test_receipt_gives_the_runs_of_its_entries(
    sources: list[Position], targets: list[Position], runs: list[Run]
) -> None:
    collected = CollectedRuns()
    taken = receipt(sources, targets)
    collected.add_receipt(taken, taken.duplicates)
    assert collected.take() == runs
    assert collected.take() == []


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2), st.booleans()), min_size=1, max_size=40))
def test_receipts_of_any_length_give_the_same_runs(steps: list[tuple[int, int, bool]]) -> None:
    collected, source, target = CollectedRuns(), 0, 0
    copies: list[tuple[Position, Position]] = []
    sent: list[tuple[Position, Position]] = []
    for on_source, on_target, is_last in steps:
        source, target = source + on_source, target + on_target
        sent.append((Position(1, source), Position(2, target)))
        if is_last:
            copies += sent
            collected.add_receipt(receipt(*zip(*sent, strict=True)), ())
            sent = []
    assert collected.take() == [*PositionRuns(Run(here, there, 1) for here, there in copies)]


def test_copies_that_were_read_back_join_those_with_receipts() -> None:
    collected = CollectedRuns()
    collected.add_copies([(pack_sequence(5, 0), Position(9, 0)), (pack_sequence(5, 1), Position(9, 1))])
    collected.add_receipt(receipt(positions(5, 2, 3), positions(9, 2, 3)), ())
    assert collected.take() == [Run(Position(5, 0), Position(9, 0), 4)]

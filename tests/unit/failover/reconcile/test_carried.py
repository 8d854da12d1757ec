"""Acknowledgements of a tail, and payloads compared."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.failover.reconcile.carried import Comparison, Wanted, compared, count_missing, wanted_of
from interpulse.model.ids import Position
from interpulse.replication.acknowledgements import Acknowledgements, Span

TOPIC = "persistent://shop/orders/paid"
FIRST, SECOND = Position(3, 5), Position(3, 6)
COPIES = {FIRST: Position(7, 1), SECOND: Position(7, 2)}


def row(position: Position, *names: str, batch_index: int = -1) -> dict[str, Any]:
    return {"topic": TOPIC, "position": str(position), "batch_index": batch_index, "acknowledged_by": list(names)}


def test_wanted_when_rows_are_acknowledged_then_has_those_of_replicated_subscriptions() -> None:
    rows = [row(FIRST, "billing", "own"), row(SECOND, "own"), row(SECOND, batch_index=1)]
    assert wanted_of(rows, {(TOPIC, "billing"), ("other", "own")}) == {TOPIC: [Wanted(FIRST, -1, ("billing",))]}


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        (Acknowledgements(Position(7, 0)), 2),
        (Acknowledgements(Position(7, 1)), 1),
        (Acknowledgements(Position(7, 0), (Span(Position(7, 2), Position(7, 2)),)), 1),
        (Acknowledgements(Position(7, 2)), 0),
        (Acknowledgements(Position(7, 0), masks={Position(7, 1): 0}), 2),
    ],
)
def test_acknowledgements_when_some_are_carried_then_counts_the_others(held: Acknowledgements, missing: int) -> None:
    wanted = [Wanted(FIRST, -1, ("billing",)), Wanted(SECOND, -1, ("billing",))]
    assert count_missing(wanted, COPIES, {"billing": held}) == missing


def test_acknowledgements_when_in_a_batch_then_the_mask_counts() -> None:
    wanted = [Wanted(FIRST, index, ("billing",)) for index in range(3)]
    held = Acknowledgements(Position(7, 0), masks={Position(7, 1): 0b010})
    assert count_missing(wanted, COPIES, {"billing": held}) == 1
    assert count_missing(wanted, COPIES, {"billing": Acknowledgements(Position(7, 1))}) == 0


def test_acknowledgements_when_copy_or_subscription_are_not_there_then_are_missing() -> None:
    wanted = [Wanted(FIRST, -1, ("billing", "audit"))]
    held = Acknowledgements(Position(9, 0))
    assert count_missing(wanted, COPIES, {"billing": held}) == 1
    assert count_missing(wanted, {}, {"billing": held, "audit": held}) == 2


def test_payloads_when_compared_then_missing_and_different_ones_are_named() -> None:
    third = Position(3, 7)
    originals = [(FIRST, b"a"), (SECOND, b"b"), (third, b"c")]
    assert compared(originals, {FIRST: b"a", SECOND: b"x"}) == Comparison(1, (third,), (SECOND,))
    assert compared([], {FIRST: b"a"}) == Comparison(0, (), ())

"""Minimising, with a rule in place of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.simulation.faults import Fault
from tests.simulation.minimise import fewer_faults, minimise, plainer, shorter
from tests.simulation.runs import Order

FAULTS = tuple(Fault(float(number), "cut", "broker") for number in range(16))


class Rule:
    """Says which orders break the property, and counts the ones that are played."""

    def __init__(self, breaks: Callable[[Order], bool]) -> None:
        self.breaks = breaks
        self.played = 0

    def __call__(self, orders: Sequence[Order]) -> Order | None:
        self.played += len(orders)
        return next((order for order in orders if self.breaks(order)), None)


def _needs(*needed: Fault) -> Rule:
    return Rule(lambda order: set(needed) <= set(order.faults or ()))


def _order() -> Order:
    return Order(1, "single", faults=FAULTS)


@pytest.mark.parametrize(
    "needed",
    [(), FAULTS[5:6], (FAULTS[0], FAULTS[15]), (FAULTS[2], FAULTS[7], FAULTS[8]), FAULTS],
    ids=["none", "one", "the ends", "three", "all"],
)
def test_faults_when_only_some_are_needed_then_no_other_is_left(needed: tuple[Fault, ...]) -> None:
    assert fewer_faults(_order(), _needs(*needed)).faults == needed


def test_faults_when_one_is_needed_then_few_orders_are_played() -> None:
    rule = _needs(FAULTS[11])
    fewer_faults(_order(), rule)
    assert rule.played < 12


def test_faults_when_nothing_smaller_breaks_the_property_then_the_order_stays() -> None:
    assert fewer_faults(_order(), lambda orders: None) == _order()


def test_seconds_when_the_last_fault_needs_time_then_the_shortest_end_that_suffices_is_taken() -> None:
    shortened = shorter(_order(), Rule(lambda order: order.reductions.fault_seconds >= 15.7))
    assert shortened.reductions.fault_seconds == 16.0


def test_streams_when_only_one_may_be_plain_then_the_other_stays_random() -> None:
    reduced = plainer(_order(), Rule(lambda order: "network" not in order.reductions.plain))
    assert reduced.reductions.plain == ("disk",)


def test_order_when_minimised_then_it_has_few_faults_and_is_short_and_plain() -> None:
    smallest = minimise(Order(1, "single"), FAULTS, _needs(FAULTS[3], FAULTS[4]))
    assert smallest.faults == (FAULTS[3], FAULTS[4])
    assert smallest.reductions.fault_seconds == 4.01
    assert smallest.reductions.plain == ("network", "disk")

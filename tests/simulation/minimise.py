"""Minimising: the smallest run to be found that breaks the same property."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from tests.simulation import patches
from tests.simulation.faults import Fault
from tests.simulation.runs import Order, play_all

SECONDS_MAX: Final = 600.0
_STREAMS: Final = ("network", "disk")
_AFTER_LAST_FAULT_SECONDS: Final = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0)

FirstBroken = Callable[[Sequence[Order]], Order | None]
"""Plays the orders, and returns the first one that breaks the property."""


@dataclass(slots=True)
class Trials:
    """Runs that show if an order breaks a property, until the time is over."""

    property: str
    jobs: int
    until: float
    """The monotonic time of the machine after which nothing is tried any more."""
    count: int = 0

    def first_broken(self, orders: Sequence[Order]) -> Order | None:
        """Return the first order that breaks the property. None if there is none, or the time is over."""
        for begin in range(0, len(orders), self.jobs):
            if patches.real_monotonic() > self.until:
                return None
            tried = orders[begin : begin + self.jobs]
            self.count += len(tried)
            broken = [result.order for result in play_all(tried, self.jobs) if self.property in result.properties]
            if broken:
                return min(broken, key=tried.index)  # not the fastest one: the outcome is that of every machine
        return None


def minimise(order: Order, faults: Sequence[Fault], first_broken: FirstBroken) -> Order:
    """Return the smallest order that breaks the property; one with these faults certainly does."""
    return plainer(
        shorter(fewer_faults(replace(order, faults=tuple(faults)), first_broken), first_broken), first_broken
    )


def fewer_faults(order: Order, first_broken: FirstBroken) -> Order:
    """Leave out faults, by delta debugging: halves first, then smaller parts, until each single one is needed."""
    none = first_broken([replace(order, faults=())])
    if none is not None:
        return none
    parts = 2
    while len(order.faults or ()) > 1:
        faults = tuple(order.faults or ())
        chosen = _split(faults, parts)
        rests = [tuple(fault for fault in faults if fault not in part) for part in chosen] if parts > 2 else []
        smaller = first_broken([replace(order, faults=each) for each in (*chosen, *rests)])
        if smaller is not None:
            parts = 2 if smaller.faults in chosen else parts - 1
            order = smaller
        elif parts < len(faults):
            parts = min(len(faults), 2 * parts)
        else:
            break
    return order


def shorter(order: Order, first_broken: FirstBroken) -> Order:
    """End the time of faults, and with it the sending, soon after the last fault."""
    last = max((fault.at for fault in order.faults or ()), default=0.0)
    ends = [round(last + seconds, 3) for seconds in _AFTER_LAST_FAULT_SECONDS]
    reduced = [replace(order, reductions=replace(order.reductions, fault_seconds=end)) for end in ends]
    return first_broken(reduced) or order


def plainer(order: Order, first_broken: FirstBroken) -> Order:
    """Turn the delays of one stream after the other to their middle."""
    for stream in _STREAMS:
        plain = (*order.reductions.plain, stream)
        order = first_broken([replace(order, reductions=replace(order.reductions, plain=plain))]) or order
    return order


def _split(faults: tuple[Fault, ...], parts: int) -> list[tuple[Fault, ...]]:
    bounds = [len(faults) * part // parts for part in range(parts + 1)]
    return [faults[begin:end] for begin, end in pairwise(bounds)]

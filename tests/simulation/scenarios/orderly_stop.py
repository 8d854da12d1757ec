"""S8: a broker stops in order and starts again while clients write, and is killed in the middle of both."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding, Interval
from tests.simulation.programs import BINARY_PORT
from tests.simulation.scenarios.scenario import Course, play_messages
from tests.simulation.scenarios.single import SETTINGS, topic_workload
from tests.simulation.stopping import STOP_SECONDS_MAX, Stop, StoppableBroker
from tests.simulation.world import World

_FAULT_SECONDS: Final = 20.0
_SENT_SECONDS: Final = 0.3
"""The time in which an acknowledgement reaches a broker that runs."""
_BACK_SECONDS: Final = 5.0
"""The time after a stop in which every consumer is connected again."""
_PAUSING: Final = ("freeze", "slow node")
"""Faults in which a process has less time than the clock says."""


class OrderlyStops:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._course = Course(world, Targets(servers=("broker",), clients=("producers", "consumers")), _FAULT_SECONDS)
        self._workload = topic_workload(world, f"broker:{BINARY_PORT}")
        self._stopping = StoppableBroker(SETTINGS)
        self._broker = self._course.add("broker", self._stopping.run)
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.events_of = self._workload.history.events_of

    def plan(self) -> list[Fault]:
        """Draw stops, deaths in the middle of a stop or a start, and in half of the seeds other faults too."""
        chance = self._course.world.stream("stops")
        others = self._course.plan() if chance.random() < 0.5 else []
        return sorted([*_stops(chance), *others], key=lambda fault: fault.at)

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        findings = play_messages(self._course, self._workload, faults, restarted=[self._broker])
        others = self._course.excuses([fault for fault in faults if fault.kind != "terminate"])
        return [*findings, *self._late_stops(faults), *self._came_again(others)]

    def _late_stops(self, faults: Sequence[Fault]) -> Iterator[Finding]:
        pauses = self._course.excuses([fault for fault in faults if fault.kind in _PAUSING])
        for stop in self._stopping.stops:
            end = self._course.world.seconds if stop.end is None else stop.end
            if stop.end is not None and end - stop.begin > STOP_SECONDS_MAX and not _touched(stop.begin, end, pauses):
                yield Finding("C1", f"the stop at {stop.begin:.3f} took {end - stop.begin:.3f} s")

    def _came_again(self, excuses: Sequence[Interval]) -> Iterator[Finding]:
        """Yield the messages that were acknowledged before an orderly stop, and delivered after it."""
        stops = self._stopping.stops
        unsure = [Interval(stop.begin - _SENT_SECONDS, stop.begin + STOP_SECONDS_MAX + _BACK_SECONDS) for stop in stops]
        firm: dict[tuple[str, bytes], Stop] = {}
        for each in self._workload.history.acknowledged:
            stop = next((stop for stop in stops if stop.begin > each.at), None)
            if (
                stop is not None
                and stop.end is not None
                and stop.complete
                and not any(interval.begin <= each.at <= interval.end for interval in unsure)
                and not _touched(each.at, stop.end, excuses)
            ):
                firm.setdefault((each.subscription, each.payload), stop)
        for delivery in self._workload.history.deliveries:
            stop = firm.get((delivery.subscription, delivery.payload))
            if stop is not None and delivery.at > stop.begin:
                text = f"{delivery.payload!r}, acknowledged before the stop at {stop.begin:.3f}, came again"
                yield Finding("S2", f"{text} to {delivery.subscription} at {delivery.at:.3f}", delivery.payload)


def _stops(chance: random.Random) -> list[Fault]:
    """Draw stops some seconds apart; half of them are interrupted, or the start that follows is."""
    faults: list[Fault] = []
    moment = chance.uniform(1, 4)
    while moment < _FAULT_SECONDS:
        downtime = chance.choice([0.01, chance.uniform(0.01, 2)])
        if chance.random() < 0.1:
            stall = chance.uniform(1, 1.5 * STOP_SECONDS_MAX)
            faults.append(Fault(round(moment - chance.uniform(0, 0.1), 6), "stall disk", "broker", round(stall, 6)))
        faults.append(Fault(round(moment, 6), "terminate", "broker", round(downtime, 6)))
        if chance.random() < 0.5:
            later = chance.choice([chance.uniform(0, 0.01), chance.uniform(0, 0.2), downtime + chance.uniform(0, 0.3)])
            kind = chance.choice(["kill", "power off"])
            faults.append(Fault(round(moment + later, 6), kind, "broker", round(chance.uniform(0.01, 1), 6)))
        moment += chance.choice([chance.uniform(0.2, 2), chance.uniform(4, 12)])
    return faults


def _touched(begin: float, end: float, intervals: Sequence[Interval]) -> bool:
    return any(interval.begin <= end and interval.end >= begin for interval in intervals)

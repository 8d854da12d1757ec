"""A broker behind a lookup proxy: the clients of `single` know the address of the proxy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.programs import BINARY_PORT, WEB_PORT, ServingProxy, broker_alone
from tests.simulation.scenarios.scenario import Course, play_messages
from tests.simulation.scenarios.single import SETTINGS, topic_workload
from tests.simulation.workload import KEEP_ALIVE_MS
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

_FAULT_SECONDS: Final = 10.0


class ProxiedBroker:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        targets = Targets(servers=("broker", "proxy"), clients=("producers", "consumers"), without=())
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._workload = topic_workload(world, f"proxy:{BINARY_PORT}")
        self._broker = self._course.add("broker", broker_alone(MemoryTree(), SETTINGS))
        addresses = {
            "brokerServiceURL": f"pulsar://broker:{BINARY_PORT}",
            "brokerWebServiceURL": f"http://broker:{WEB_PORT}",
            "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
        }
        self._course.add("proxy", ServingProxy(addresses).run)
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        return play_messages(self._course, self._workload, faults, restarted=[self._broker])

"""S1: one broker, a producer with batches and one without, an exclusive and a shared subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.programs import BINARY_PORT, broker_alone
from tests.simulation.scenarios.scenario import Course, play_messages
from tests.simulation.workload import KEEP_ALIVE_MS, Workload
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

SETTINGS: Final = {
    "brokerDeduplicationEnabled": "true",
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
    "managedLedgerMaxEntriesPerLedger": 50,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
}
PRODUCERS: Final = {"batched": {"batching_enabled": True}, "single": {"batching_enabled": False}}
SUBSCRIPTIONS: Final = {"exclusive": {"subscription_type": "exclusive"}, "shared": {"subscription_type": "shared"}}
_FAULT_SECONDS: Final = 10.0


class SingleBroker:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._course = Course(
            world, Targets(servers=("broker",), clients=("producers", "consumers"), without=()), _FAULT_SECONDS
        )
        self._workload = Workload(
            world,
            f"pulsar://broker:{BINARY_PORT}",
            "persistent://public/default/t",
            producers=PRODUCERS,
            subscriptions=SUBSCRIPTIONS,
        )
        self._broker = self._course.add("broker", broker_alone(MemoryTree(), SETTINGS))
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        return play_messages(self._course, self._workload, faults, restarted=[self._broker])

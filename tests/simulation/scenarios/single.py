"""S1: one broker, a producer with batches and one without, an exclusive and a shared subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.programs import BINARY_PORT, broker_alone
from tests.simulation.scenarios.scenario import Course
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
_FAULT_SECONDS: Final = 10.0
_STILL_SECONDS: Final = 20.0
"""The time before and after the last restart, in which every acknowledgement becomes firm."""


class SingleBroker:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._course = Course(world, Targets(servers=("broker",), clients=("producers", "consumers")), _FAULT_SECONDS)
        self._workload = Workload(
            world,
            f"pulsar://broker:{BINARY_PORT}",
            "persistent://public/default/t",
            producers={"batched": {"batching_enabled": True}, "single": {"batching_enabled": False}},
            subscriptions={"exclusive": {"subscription_type": "exclusive"}, "shared": {"subscription_type": "shared"}},
        )
        self._broker = self._course.add("broker", broker_alone(MemoryTree(), SETTINGS))
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course, workload, world = self._course, self._workload, self._course.world
        course.start()
        course.faults(faults)
        workload.sending = False
        course.quiet(workload.all_delivered, "everything is sent and delivered after the faults")
        world.run(lambda: False, _STILL_SECONDS)
        course.restart(self._broker)
        course.quiet(workload.all_delivered, "everything is delivered after the last restart")
        world.run(lambda: False, _STILL_SECONDS)
        reader = course.add("reader", workload.read)
        reader.start(workload.read)
        course.quiet(reader.main.done, "the topic is read from its beginning to its end", letter="L7")
        return course.verdict(workload.history)

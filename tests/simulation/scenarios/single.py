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
TOPIC: Final = "persistent://public/default/t"
_FAULT_SECONDS: Final = 10.0


def topic_workload(world: World, hosts: str) -> Workload:
    """Return two producers, with and without batches, and two subscriptions of one topic; ``hosts`` as in a URL."""
    return Workload(
        world,
        f"pulsar://{hosts}",
        TOPIC,
        producers={"batched": {"batching_enabled": True}, "single": {"batching_enabled": False}},
        subscriptions={"exclusive": {"subscription_type": "exclusive"}, "shared": {"subscription_type": "shared"}},
    )


class SingleBroker:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        targets = Targets(
            servers=("broker",),
            clients=("producers", "consumers"),
            without=(),
            brokers=("broker",),
            disks=("broker",),
            owner="broker",
            states=("loading", "rolling", "recovering", "fenced", "fenced", "fenced"),
        )
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._workload = topic_workload(world, f"broker:{BINARY_PORT}")
        self._broker = self._course.add("broker", broker_alone(MemoryTree(), SETTINGS))
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        return play_messages(self._course, self._workload, faults, restarted=[self._broker])

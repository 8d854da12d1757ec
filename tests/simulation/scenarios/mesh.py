"""S9: three clusters that replicate to each other. Lanes hold some of their topics for a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from interpulse.client.messages import OutgoingMessage
from tests.simulation.faults import Fault
from tests.simulation.judge import Sent
from tests.simulation.scenarios.lanes import TOPICS, Lanes
from tests.simulation.world import World

_CLUSTERS: Final = ("a", "b", "c")
_FAULT_SECONDS: Final = 6.0
_HOLD: Final = "hold"


class Mesh(Lanes):
    """See the module, and `Scenario`. In some seeds one of the topics belongs to two clusters only."""

    def __init__(self, world: World) -> None:
        chance = self._mesh_chance = world.stream("mesh")
        two = sorted(chance.sample(_CLUSTERS, 2)) if chance.random() < 0.3 else _CLUSTERS
        replicating = {TOPICS[0]: _CLUSTERS, TOPICS[1]: two}
        super().__init__(world, clusters=_CLUSTERS, replicating=replicating, producers=1, fault_seconds=_FAULT_SECONDS)
        self._course.own_faults[_HOLD] = self._hold

    def plan(self) -> list[Fault]:
        """Draw holds beside the faults of lanes."""
        return sorted([*super().plan(), *self._holds()], key=lambda fault: fault.at)

    def outgoing(self, sent: Sent) -> OutgoingMessage:
        """Return the message to send; some are for one other cluster."""
        message = super().outgoing(sent)
        if self._mesh_chance.random() < 0.1:
            return replace(message, replication_clusters=(self._mesh_chance.choice(_CLUSTERS),))
        return message

    def _holds(self) -> Iterator[Fault]:
        chance = self._course.world.stream("holds")
        for driver, query in self.queries.items():
            for topic in query.direction.topics:
                if chance.random() < 0.3:
                    begin = chance.choice([0.0, chance.uniform(0, _FAULT_SECONDS)])
                    seconds = chance.choice([chance.uniform(0.1, 3), _FAULT_SECONDS])
                    yield Fault(round(begin, 6), _HOLD, driver, round(seconds, 6), topic)

    def _hold(self, fault: Fault) -> None:
        """Hold a topic, as the job does while its target does not fit."""
        query = self.queries[fault.node]
        query.unready.add(fault.other)
        self._course.world.after(fault.seconds, lambda: query.unready.discard(fault.other))

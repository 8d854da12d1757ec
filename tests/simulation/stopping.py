"""A broker that stops in order when its node is asked to end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from interpulse.broker.app import BrokerApp
from tests.simulation.nodes import Node
from tests.simulation.programs import started_broker
from tests.support.memory_storage import MemoryTree

STOP_SECONDS_MAX: Final = 5.0
"""The time within which an orderly stop ends, in seconds of the world."""
_TIMED_OUT_SECONDS: Final = 4.4
"""A stop that takes longer has given something up."""


@dataclass(slots=True)
class Stop:
    """One orderly stop, in seconds of the world."""

    begin: float
    end: float | None = None
    """None: it did not end, because the process was killed meanwhile."""

    @property
    def complete(self) -> bool:
        """Return True if everything was closed in time."""
        return self.end is not None and self.end - self.begin < _TIMED_OUT_SECONDS


class StoppableBroker:
    """A standalone broker whose metadata outlive its node."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.stops: list[Stop] = []
        self.app: BrokerApp | None = None
        """The broker of the present life, once it serves."""
        self.tree = MemoryTree()
        """Its metadata."""
        self._settings = settings

    async def run(self, node: Node) -> None:
        """Serve until the node is asked to end: the program of the node."""
        self.app = None
        asked = asyncio.Event()
        node.on_terminate = asked.set
        app = self.app = await started_broker(node, self.tree, self._settings)
        await asked.wait()
        stop = Stop(node.world.seconds)
        self.stops.append(stop)
        await app.stop()
        stop.end = node.world.seconds

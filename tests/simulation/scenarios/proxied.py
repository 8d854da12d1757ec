"""A broker behind a lookup proxy: the clients of `single` know the address of the proxy alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.programs import BINARY_PORT, WEB_PORT, ServingProxy, broker_alone
from tests.simulation.scenarios.scenario import Course, play_messages
from tests.simulation.scenarios.single import SETTINGS, topic_workload
from tests.simulation.workload import KEEP_ALIVE_MS
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

IDLE_MS: Final = 3 * KEEP_ALIVE_MS
"""The time after which proxies close a connection on which nothing moves."""
_FAULT_SECONDS: Final = 10.0
_LEFT_SECONDS: Final = 2 * IDLE_MS / 1000
"""The time in which a proxy notices that clients are gone."""


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
            "brokerProxyReadTimeoutMs": IDLE_MS,
            "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
        }
        self._proxy = ServingProxy(addresses)
        self._course.add("proxy", self._proxy.run)
        self._course.add("producers", self._workload.produce)
        self._course.add("consumers", self._workload.consume)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        findings = play_messages(self._course, self._workload, faults, restarted=[self._broker])
        return [*findings, *left_of_clients(self._course.world, {"proxy": self._proxy}, servers=("broker",))]


def left_of_clients(
    world: World, proxies: Mapping[str, ServingProxy], *, servers: Collection[str], kept: Collection[str] = ()
) -> Iterator[Finding]:
    """End all nodes but these, and yield what the proxies still hold of clients a while later.

    ``kept`` are the servers to which a proxy keeps a connection without a client.
    """
    for node in world.nodes:
        if node.name not in (*servers, *proxies):
            node.kill()
    world.run(lambda: False, _LEFT_SECONDS)
    for name, proxy in proxies.items():
        if proxy.app is None:
            yield Finding("B1", f"{name} does not serve")
            continue
        permits, clients = proxy.app.permits.taken, proxy.app.meter.active_connections
        if permits:
            yield Finding("B1", f"{permits} permits of {name} are taken, although there is no lookup")
        if clients:
            yield Finding("C1", f"{name} counts {clients} connections, although there is no client")
        for each in world.network.connections:
            if each.node.name == name and each.peer.node.name not in kept:
                yield Finding("C1", f"{name} keeps a connection with {each.peer.node.name}")

"""S5: the cluster of S4 behind two lookup proxies, which find its brokers in ZooKeeper; clients know only these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tests.simulation.cluster_nodes import BOOKIES, BROKERS, SERVERS, SESSION_MS, ZOOKEEPERS
from tests.simulation.faults import Fault
from tests.simulation.judge import Finding
from tests.simulation.programs import ServingProxy
from tests.simulation.scenarios.shared import SharedCluster
from tests.simulation.workload import KEEP_ALIVE_MS
from tests.simulation.world import World

_IDLE_MS: Final = 3 * KEEP_ALIVE_MS
_SETTINGS: Final = {
    "metadataStoreUrl": f"zk:{SERVERS}",
    "metadataStoreSessionTimeoutMillis": SESSION_MS,
    "brokerProxyConnectTimeoutMs": 3_000,
    "brokerProxyReadTimeoutMs": _IDLE_MS,
    "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
    "httpProxyTimeout": _IDLE_MS,
}
_LEFT_SECONDS: Final = 2 * _IDLE_MS / 1000
"""The time in which a proxy notices that clients are gone."""


class ProxiedCluster:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._proxies = {name: ServingProxy(_SETTINGS) for name in ("proxy1", "proxy2")}
        self._cluster = SharedCluster(world, {name: proxy.run for name, proxy in self._proxies.items()})
        self.plan = self._cluster.plan
        self.events_of = self._cluster.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        findings = self._cluster.run(faults)
        for node in self._world.nodes:
            if node.name not in (*ZOOKEEPERS, *BOOKIES, *BROKERS, *self._proxies):
                node.kill()
        self._world.run(lambda: False, _LEFT_SECONDS)
        return [*findings, *self._left()]

    def _left(self) -> Iterator[Finding]:
        """Yield what the proxies hold of clients that are gone."""
        for name, proxy in self._proxies.items():
            if proxy.app is None:
                yield Finding("B1", f"{name} does not serve")
                continue
            permits, clients = proxy.app.permits.taken, proxy.app.meter.active_connections
            if permits:
                yield Finding("B1", f"{permits} permits of {name} are taken, although there is no lookup")
            if clients:
                yield Finding("C1", f"{name} counts {clients} connections, although there is no client")
            for each in self._world.network.connections:
                if each.node.name == name and each.peer.node.name not in ZOOKEEPERS:
                    yield Finding("C1", f"{name} keeps a connection with {each.peer.node.name}")

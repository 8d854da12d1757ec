"""S5: the cluster of S4 behind two lookup proxies, which find its brokers in ZooKeeper; clients know only these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.simulation.cluster_nodes import BOOKIES, BROKERS, SERVERS, SESSION_MS, ZOOKEEPERS
from tests.simulation.faults import Fault
from tests.simulation.judge import Finding
from tests.simulation.programs import ServingProxy
from tests.simulation.scenarios.proxied import IDLE_MS, left_of_clients
from tests.simulation.scenarios.shared import SharedCluster
from tests.simulation.workload import KEEP_ALIVE_MS
from tests.simulation.world import World

_SETTINGS: Final = {
    "metadataStoreUrl": f"zk:{SERVERS}",
    "metadataStoreSessionTimeoutMillis": SESSION_MS,
    "brokerProxyConnectTimeoutMs": 3_000,
    "brokerProxyReadTimeoutMs": IDLE_MS,
    "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
    "httpProxyTimeout": IDLE_MS,
}


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
        servers = (*ZOOKEEPERS, *BOOKIES, *BROKERS)
        return [*findings, *left_of_clients(self._world, self._proxies, servers=servers, kept=ZOOKEEPERS)]

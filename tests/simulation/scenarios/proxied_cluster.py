"""S5: the cluster of S4 behind two lookup proxies, which find its brokers in ZooKeeper; clients know only these."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from interpulse.client.client import Client
from interpulse.client.config import BrokerAddress
from interpulse.model.errors import NotFound, PulsarError
from tests.simulation.cluster_nodes import BOOKIES, BROKERS, SERVERS, SESSION_MS, ZOOKEEPERS
from tests.simulation.faults import Fault
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node
from tests.simulation.programs import BINARY_PORT, ServingProxy
from tests.simulation.scenarios.proxied import IDLE_MS, left_of_clients
from tests.simulation.scenarios.shared import SharedCluster
from tests.simulation.scenarios.single import TOPIC
from tests.simulation.workload import CLIENT_OPTIONS, KEEP_ALIVE_MS
from tests.simulation.world import World

_SETTINGS: Final = {
    "metadataStoreUrl": f"zk:{SERVERS}",
    "metadataStoreSessionTimeoutMillis": SESSION_MS,
    "brokerProxyConnectTimeoutMs": 3_000,
    "brokerProxyReadTimeoutMs": IDLE_MS,
    "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
    "httpProxyTimeout": IDLE_MS,
}
_ENDPOINTS: Final = tuple(f"{name}:{BINARY_PORT}" for name in BROKERS)
_ASK_PAUSE_SECONDS: Final = 0.5
_PATIENCE_SECONDS: Final = 5.0


class ProxiedCluster:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._proxies = {name: ServingProxy(_SETTINGS) for name in ("proxy1", "proxy2")}
        self._wrong: list[Finding] = []
        programs = {name: proxy.run for name, proxy in self._proxies.items()}
        self._cluster = SharedCluster(world, proxies=programs, clients={"asking": self._ask})
        self.plan = self._cluster.plan
        self.events_of = self._cluster.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        findings = self._cluster.run(faults)
        servers = (*ZOOKEEPERS, *BOOKIES, *BROKERS)
        left = left_of_clients(self._world, self._proxies, servers=servers, kept=ZOOKEEPERS)
        return [*findings, *self._wrong, *left]

    async def _ask(self, node: Node) -> None:
        """Look up many topics at a time, for ever. Some questions are given up before their answer."""
        chance = self._world.stream("asking")
        while True:
            proxy = chance.choice(list(self._proxies))
            async with Client(f"pulsar://{proxy}:{BINARY_PORT}", **CLIENT_OPTIONS) as client:
                for _ in range(chance.randint(1, 4)):
                    await asyncio.sleep(chance.expovariate(1 / _ASK_PAUSE_SECONDS))
                    names = [f"{TOPIC}-{chance.randrange(100)}" for _ in range(20)]
                    with suppress(TimeoutError):
                        async with asyncio.timeout(chance.choice([0.002, _PATIENCE_SECONDS])):
                            self._judge(names, await client.lookup_batch(names))

    def _judge(self, names: Sequence[str], answers: Mapping[str, BrokerAddress | PulsarError]) -> None:
        """Note an answer that leaves a topic out, or that names something other than a broker."""
        if answers.keys() != set(names):
            self._wrong.append(Finding("B1", f"a batch of {names} was answered for {sorted(answers)}"))
        for name, answer in answers.items():
            if isinstance(answer, NotFound) or (isinstance(answer, BrokerAddress) and answer.behind not in _ENDPOINTS):
                self._wrong.append(Finding("B1", f"{name} was answered with {answer!r}"))

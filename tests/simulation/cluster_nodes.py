"""The nodes of a simulated cluster, and the program of each: two ZooKeeper servers, three bookies, and brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from interpulse.broker.assembly import CannotServe
from interpulse.model.errors import PulsarError
from interpulse.storage.zookeeper.errors import ZooKeeperError
from tests.simulation import cluster
from tests.simulation.faults import Fault
from tests.simulation.nodes import Node, Program
from tests.simulation.programs import BINARY_PORT, STARTED_AGAIN_SECONDS, WEB_PORT, bind
from tests.support.scripted_zookeeper import ScriptedZooKeeper

ZOOKEEPERS: Final = ("zookeeper1", "zookeeper2")
BOOKIES: Final = ("bookie1", "bookie2", "bookie3")
BROKERS: Final = ("broker1", "broker2", "broker3")
SERVERS: Final = ",".join(f"{name}:2181" for name in ZOOKEEPERS)
SESSION_MS: Final = 4_000
ACK_QUORUM: Final = 2
PLACEMENT: Final[Mapping[str, Any]] = {
    "managed_ledger_default_ensemble_size": 3,
    "managed_ledger_default_write_quorum": 3,
    "managed_ledger_default_ack_quorum": ACK_QUORUM,
    "metadata_store_session_timeout_millis": SESSION_MS,
}
"""Settings of everything that stores entries in the cluster."""


async def set_up(node: Node) -> None:
    """Create the nodes of the cluster in ZooKeeper, and end."""
    await cluster.set_up(SERVERS, f"http://broker1:{WEB_PORT}", f"pulsar://broker1:{BINARY_PORT}")


def new_zookeeper() -> ScriptedZooKeeper:
    """Return the tree of the cluster, without servers yet."""
    zookeeper = ScriptedZooKeeper(ends_sessions=True)
    zookeeper.session_timeout_ms = SESSION_MS
    return zookeeper


def faults_of(zookeeper: ScriptedZooKeeper) -> dict[str, Callable[[Fault], None]]:
    """Return the faults of the servers, by their kinds: answers, requests or reports that are lost."""
    return {
        "answer lost": lambda fault: zookeeper.losing.update(commit=int(fault.amount)),
        "request lost": lambda fault: zookeeper.dropping.update(commit=int(fault.amount)),
        "report lost": lambda fault: setattr(zookeeper, "losing_events", int(fault.amount)),
    }


def zookeeper_server(zookeeper: ScriptedZooKeeper) -> Program:
    """Return the program of a server."""

    async def program(node: Node) -> None:
        await cluster.start_zookeeper(zookeeper, f"{node.name}:2181")
        await asyncio.get_running_loop().create_future()

    return program


async def store_entries(node: Node) -> None:
    """Be a bookie: the program of its node."""
    while True:
        try:
            await cluster.Bookie.start(node.name, f"{node.name}:3181", SERVERS, node.disk, node.worker("journal").put)
        except (ZooKeeperError, OSError):
            await asyncio.sleep(STARTED_AGAIN_SECONDS)
        else:
            await asyncio.get_running_loop().create_future()


def broker_of_cluster(settings: Mapping[str, Any]) -> Program:
    """Return the program of a broker, which is started again when it has stopped."""

    async def program(node: Node) -> None:
        while True:
            app = cluster.broker(
                f"{node.name}:{BINARY_PORT}", f"{node.name}:{WEB_PORT}", SERVERS, settings=settings, bind=bind
            )
            try:
                await app.start()
                await app.must_stop.wait()
                await app.stop()
            except (CannotServe, PulsarError):
                await asyncio.sleep(STARTED_AGAIN_SECONDS)

    return program

"""S4: three brokers share a cluster of two ZooKeeper servers and three bookies; bundles move as brokers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from interpulse.broker.assembly import CannotServe
from interpulse.model.errors import PulsarError
from interpulse.storage.zookeeper.errors import ZooKeeperError
from tests.simulation import cluster
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node, Program
from tests.simulation.programs import BINARY_PORT, WEB_PORT, bind
from tests.simulation.scenarios.scenario import Course, play_messages
from tests.simulation.scenarios.single import PRODUCERS, SUBSCRIPTIONS
from tests.simulation.workload import KEEP_ALIVE_MS, Workload
from tests.simulation.world import World
from tests.support.scripted_zookeeper import ScriptedZooKeeper, ZooKeeperServer

_FAULT_SECONDS: Final = 15.0
_ZOOKEEPERS: Final = ("zookeeper1", "zookeeper2")
_BOOKIES: Final = ("bookie1", "bookie2", "bookie3")
_BROKERS: Final = ("broker1", "broker2", "broker3")
_SERVERS: Final = ",".join(f"{name}:2181" for name in _ZOOKEEPERS)
_SESSION_MS: Final = 4_000
_AGAIN_SECONDS: Final = 1.0
"""The time after which a supervisor starts a program again that has ended."""
_SETTINGS: Final[dict[str, Any]] = {
    "broker_deduplication_enabled": True,
    "default_retention_time_in_minutes": -1,
    "default_retention_size_in_mb": -1,
    "keep_alive_interval_seconds": KEEP_ALIVE_MS // 1000,
    "managed_ledger_max_entries_per_ledger": 50,
    "managed_ledger_min_ledger_rollover_time_minutes": 0,
    "managed_ledger_default_ensemble_size": 3,
    "managed_ledger_default_write_quorum": 3,
    "managed_ledger_default_ack_quorum": 2,
    "metadata_store_session_timeout_millis": _SESSION_MS,
}
_FAILING_DISKS: Final = ("bit flips", "disk full", "reads fail", "write fails", "sync fails", "directory sync fails")


class SharedCluster:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        targets = Targets((*_BROKERS, *_BROKERS, *_BOOKIES), ("producers", "consumers"), without=_FAILING_DISKS)
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._zookeeper = ScriptedZooKeeper(ends_sessions=True)
        self._zookeeper.session_timeout_ms = _SESSION_MS
        self._listening: dict[str, ZooKeeperServer] = {}
        hosts = ",".join(f"{name}:{BINARY_PORT}" for name in _BROKERS)
        self._workload = Workload(
            world,
            f"pulsar://{hosts}",
            "persistent://public/default/t",
            producers=PRODUCERS,
            subscriptions=SUBSCRIPTIONS,
        )
        programs: dict[str, Program] = {
            **dict.fromkeys(_ZOOKEEPERS, self._serve_nodes),
            **dict.fromkeys(_BOOKIES, _store_entries),
            **dict.fromkeys(_BROKERS, _serve_topics),
            "producers": self._workload.produce,
            "consumers": self._workload.consume,
        }
        self._nodes = {name: self._course.add(name, program) for name, program in programs.items()}
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        return play_messages(
            self._course,
            self._workload,
            faults,
            restarted=[self._nodes[name] for name in (*_BOOKIES, *_BROKERS)],
        )

    async def _serve_nodes(self, node: Node) -> None:
        earlier = self._listening.pop(node.name, None)
        if earlier is not None:
            self._zookeeper.forget(earlier)
        self._listening[node.name] = await cluster.start_zookeeper(self._zookeeper, f"{node.name}:2181")
        if node.name == _ZOOKEEPERS[0] and node.life == 1:
            await cluster.set_up(_SERVERS, f"http://broker1:{WEB_PORT}", f"pulsar://broker1:{BINARY_PORT}")
        await asyncio.get_running_loop().create_future()


async def _store_entries(node: Node) -> None:
    while True:
        try:
            await cluster.Bookie.start(node.name, f"{node.name}:3181", _SERVERS, node.disk, node.worker("journal").put)
        except (ZooKeeperError, OSError):
            await asyncio.sleep(_AGAIN_SECONDS)
        else:
            await asyncio.get_running_loop().create_future()


async def _serve_topics(node: Node) -> None:
    while True:
        app = cluster.broker(
            f"{node.name}:{BINARY_PORT}", f"{node.name}:{WEB_PORT}", _SERVERS, settings=_SETTINGS, bind=bind
        )
        try:
            await app.start()
            await app.must_stop.wait()
            await app.stop()
        except (CannotServe, PulsarError):
            await asyncio.sleep(_AGAIN_SECONDS)

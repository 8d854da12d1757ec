"""S4: three brokers share a cluster of two ZooKeeper servers and three bookies; bundles move as brokers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from interpulse.broker.assembly import CannotServe
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.storage.zookeeper.errors import ZooKeeperError
from tests.simulation import cluster
from tests.simulation.administered import existing_namespace
from tests.simulation.cluster_judge import ClusterJudge
from tests.simulation.cluster_view import ClusterView
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node, Program
from tests.simulation.operator import Operator
from tests.simulation.programs import BINARY_PORT, STARTED_AGAIN_SECONDS, WEB_PORT, bind
from tests.simulation.scenarios.scenario import UNREACHABLE, Course, play_messages
from tests.simulation.scenarios.single import TOPIC, topic_workload
from tests.simulation.wiretap import Wiretap
from tests.simulation.workload import CLIENT_OPTIONS, KEEP_ALIVE_MS, until_done
from tests.simulation.world import World
from tests.support.scripted_zookeeper import ScriptedZooKeeper, ZooKeeperServer

_FAULT_SECONDS: Final = 15.0
_ZOOKEEPERS: Final = ("zookeeper1", "zookeeper2")
_BOOKIES: Final = ("bookie1", "bookie2", "bookie3")
_BROKERS: Final = ("broker1", "broker2", "broker3")
_OWNER: Final = "owner"
"""The role of the broker that owns the bundle of the topic."""
_SERVERS: Final = ",".join(f"{name}:2181" for name in _ZOOKEEPERS)
_SESSION_MS: Final = 4_000
_ACK_QUORUM: Final = 2
_TOPIC: Final = TopicName.parse(TOPIC)
_RECEIPT_SECONDS_MAX: Final = _SESSION_MS / 1000 + 10.0
"""The longest wait for a receipt after one fault."""
_CHANGING_NAMESPACES: Final = ("public/one", "public/two")
_UNLOAD_PAUSE_SECONDS: Final = 4.0
_VISIT_PAUSE_SECONDS: Final = 1.0
_SETTINGS: Final[dict[str, Any]] = {
    "broker_deduplication_enabled": True,
    "default_retention_time_in_minutes": -1,
    "default_retention_size_in_mb": -1,
    "keep_alive_interval_seconds": KEEP_ALIVE_MS // 1000,
    "managed_ledger_max_entries_per_ledger": 20,
    "managed_ledger_min_ledger_rollover_time_minutes": 0,
    "managed_ledger_default_ensemble_size": 3,
    "managed_ledger_default_write_quorum": 3,
    "managed_ledger_default_ack_quorum": _ACK_QUORUM,
    "metadata_store_session_timeout_millis": _SESSION_MS,
}
_FAILING_DISKS: Final = ("bit flips", "disk full", "reads fail", "write fails", "sync fails", "directory sync fails")


class SharedCluster:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        targets = Targets(
            (*_BROKERS, *[_OWNER] * 3, *_BOOKIES, *_ZOOKEEPERS),
            ("producers", "consumers"),
            metadata=_ZOOKEEPERS,
            without=_FAILING_DISKS,
            brokers=_BROKERS,
            owner=_OWNER,
            states=("loading", "rolling", "recovering", "fenced", "fenced", "taking over"),
        )
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._course.excused |= dict.fromkeys(
            (
                "periodic task failed, the next run follows",
                "replicated topics not read, will retry",
                "topic not closed cleanly",
                "topic fenced",
            ),
            UNREACHABLE,
        )
        self._zookeeper = ScriptedZooKeeper(ends_sessions=True)
        self._zookeeper.session_timeout_ms = _SESSION_MS
        self._listening: dict[str, ZooKeeperServer] = {}
        hosts = ",".join(f"{name}:{BINARY_PORT}" for name in _BROKERS)
        self._workload = topic_workload(world, hosts)
        programs: dict[str, Program] = {
            **dict.fromkeys(_ZOOKEEPERS, self._serve_nodes),
            **dict.fromkeys(_BOOKIES, _store_entries),
            **dict.fromkeys(_BROKERS, _serve_topics),
            "producers": self._workload.produce,
            "consumers": self._workload.consume,
            "mover": self._move_bundles,
            "visitor": self._look_in,
            "installer": _set_up,
        }
        self._nodes = {name: self._course.add(name, program) for name, program in programs.items()}
        self._operator = Operator(
            world, "operator", f"http://broker1:{WEB_PORT}", self._nodes["broker1"], pause_seconds_max=0.5
        )
        self._operator.take([existing_namespace(name) for name in _CHANGING_NAMESPACES])
        self._nodes["operator"] = self._course.add("operator", self._operator.work)
        view = self._view = ClusterView(world, self._zookeeper, _TOPIC, [self._nodes[name] for name in _BOOKIES])
        self._judge = ClusterJudge(view, _TOPIC, _ACK_QUORUM)
        self._zookeeper.on_write = self._judge.on_write
        self._course.roles[_OWNER] = lambda: owner.broker if (owner := view.owner()) is not None else _BROKERS[0]
        self._course.own_faults = {
            "answer lost": lambda fault: self._zookeeper.losing.update(commit=int(fault.amount)),
            "request lost": lambda fault: self._zookeeper.dropping.update(commit=int(fault.amount)),
            "report lost": lambda fault: setattr(self._zookeeper, "losing_events", int(fault.amount)),
        }
        Wiretap(world.network, [self._nodes[name] for name in _BROKERS], BINARY_PORT, self._judge.on_command)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        for name in (*_ZOOKEEPERS, "installer"):
            self._nodes[name].start(self._course.programs[name])
        self._course.quiet(self._nodes["installer"].main.done, "the cluster is set up")
        findings = play_messages(
            self._course,
            self._workload,
            faults,
            restarted=[self._nodes[name] for name in (*_BOOKIES, *_BROKERS)],
            in_quiet=self._look_around,
        )
        late = self._judge.late_receipts(self._course.times(), _RECEIPT_SECONDS_MAX)
        return [*self._judge.findings, *late, *self._operator.judge(self._course.excuses()), *findings]

    def _look_around(self) -> None:
        """Read what the operator changed, ask every broker for the owner, and lose a bookie for good.

        The other bookies have all entries.
        """
        self._operator.working = False
        self._course.quiet(self._nodes["operator"].main.done, "the operator ends", letter="C1")
        looking = self._course.add("looking", self._operator.look_at_all)
        looking.start(self._operator.look_at_all)
        self._course.quiet(looking.main.done, "everything that the operator changed is read", letter="T2")
        asking = self._course.add("asking", self._ask_brokers)
        asking.start(self._ask_brokers)
        self._course.quiet(asking.main.done, "every broker names the owner", letter="O3")
        self._nodes[self._course.world.stream("bookies").choice(_BOOKIES)].power_off()

    async def _ask_brokers(self, node: Node) -> None:
        for broker in _BROKERS:
            async with Client(f"pulsar://{broker}:{BINARY_PORT}", **CLIENT_OPTIONS) as client:
                named = await until_done(lambda: client.session.lookup.broker(_TOPIC))
            owner = self._view.owner()
            if owner is None or named.host != owner.broker:
                self._course.findings.append(Finding("O3", f"{broker} names {named}, the owner is {owner}"))

    async def _move_bundles(self, node: Node) -> None:
        """Unload the bundles of the namespace now and then; another broker may take them."""
        chance = self._course.world.stream("operator")
        while self._workload.sending:
            await asyncio.sleep(chance.expovariate(1 / _UNLOAD_PAUSE_SECONDS))
            async with AdminClient(f"http://{chance.choice(_BROKERS)}:{WEB_PORT}", timeout_ms=5_000) as admin:
                with suppress(PulsarError):  # a broker that is down, or loses the bundle meanwhile
                    await admin.namespaces.unload("public/default")
        await asyncio.get_running_loop().create_future()

    async def _look_in(self, node: Node) -> None:
        """Read the topic now and then through any broker, which makes one take a bundle without an owner."""
        chance = self._course.world.stream("visitor")
        while self._workload.sending:
            await asyncio.sleep(chance.expovariate(1 / _VISIT_PAUSE_SECONDS))
            async with Client(f"pulsar://{chance.choice(_BROKERS)}:{BINARY_PORT}", **CLIENT_OPTIONS) as client:
                with suppress(PulsarError):  # a broker that is down, or that is losing the bundle
                    reader = await client.create_reader(TOPIC)
                    await reader.has_message_available()
        await asyncio.get_running_loop().create_future()

    async def _serve_nodes(self, node: Node) -> None:
        earlier = self._listening.pop(node.name, None)
        if earlier is not None:
            self._zookeeper.forget(earlier)
        self._listening[node.name] = await cluster.start_zookeeper(self._zookeeper, f"{node.name}:2181")
        await asyncio.get_running_loop().create_future()


async def _set_up(node: Node) -> None:
    await cluster.set_up(_SERVERS, f"http://broker1:{WEB_PORT}", f"pulsar://broker1:{BINARY_PORT}")


async def _store_entries(node: Node) -> None:
    while True:
        try:
            await cluster.Bookie.start(node.name, f"{node.name}:3181", _SERVERS, node.disk, node.worker("journal").put)
        except (ZooKeeperError, OSError):
            await asyncio.sleep(STARTED_AGAIN_SECONDS)
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
            await asyncio.sleep(STARTED_AGAIN_SECONDS)

"""S4: three brokers share a cluster of two ZooKeeper servers and three bookies; bundles move as brokers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from tests.simulation.administered import existing_namespace
from tests.simulation.cluster_judge import ClusterJudge
from tests.simulation.cluster_nodes import (
    ACK_QUORUM,
    BOOKIES,
    BROKERS,
    PLACEMENT,
    SESSION_MS,
    ZOOKEEPERS,
    broker_of_cluster,
    faults_of,
    new_zookeeper,
    set_up,
    store_entries,
    zookeeper_server,
)
from tests.simulation.cluster_view import ClusterView
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node, Program
from tests.simulation.operator import Operator
from tests.simulation.programs import BINARY_PORT, WEB_PORT
from tests.simulation.scenarios.scenario import UNREACHABLE, Course, play_messages
from tests.simulation.scenarios.single import TOPIC, topic_workload
from tests.simulation.wiretap import Wiretap
from tests.simulation.workload import CLIENT_OPTIONS, KEEP_ALIVE_MS, until_done
from tests.simulation.world import World

_FAULT_SECONDS: Final = 15.0
_OWNER: Final = "owner"
"""The role of the broker that owns the bundle of the topic."""
_TOPIC: Final = TopicName.parse(TOPIC)
_RECEIPT_SECONDS_MAX: Final = SESSION_MS / 1000 + 10.0
"""The longest wait for a receipt after one fault."""
_CHANGING_NAMESPACES: Final = ("public/one", "public/two")
_UNLOAD_PAUSE_SECONDS: Final = 4.0
_VISIT_PAUSE_SECONDS: Final = 1.0
_SETTINGS: Final[dict[str, Any]] = {
    **PLACEMENT,
    "broker_deduplication_enabled": True,
    "default_retention_time_in_minutes": -1,
    "default_retention_size_in_mb": -1,
    "keep_alive_interval_seconds": KEEP_ALIVE_MS // 1000,
    "managed_ledger_max_entries_per_ledger": 20,
    "managed_ledger_min_ledger_rollover_time_minutes": 0,
}
_RESUMED: Final = "unfinished deletion failed"
"""The event of a broker that cannot finish what another one began."""
FAILING_DISKS: Final = ("bit flips", "disk full", "reads fail", "write fails", "sync fails", "directory sync fails")


class SharedCluster:
    """See the module, and `Scenario`."""

    def __init__(self, world: World, proxies: Mapping[str, Program] = {}, clients: Mapping[str, Program] = {}) -> None:
        """``proxies`` are nodes that all clients connect to in place of brokers, ``clients`` are further clients."""
        targets = Targets(
            (*BROKERS, *[_OWNER] * 3, *BOOKIES, *ZOOKEEPERS, *proxies),
            ("producers", "consumers"),
            metadata=ZOOKEEPERS,
            without=FAILING_DISKS,
            brokers=BROKERS,
            disks=BOOKIES,
            owner=_OWNER,
            states=("loading", "rolling", "recovering", "fenced", "fenced", "taking over"),
        )
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._course.excused |= dict.fromkeys(
            (
                "replicated topics not read, will retry",
                "topic not closed cleanly",
                "topic fenced",
                _RESUMED,
            ),
            UNREACHABLE,
        )
        self._zookeeper = new_zookeeper()
        self._entrances = tuple(proxies) or BROKERS
        hosts = ",".join(f"{name}:{BINARY_PORT}" for name in self._entrances)
        self._workload = topic_workload(world, hosts)
        programs: dict[str, Program] = {
            **dict.fromkeys(ZOOKEEPERS, zookeeper_server(self._zookeeper)),
            **dict.fromkeys(BOOKIES, store_entries),
            **dict.fromkeys(BROKERS, broker_of_cluster(_SETTINGS)),
            **proxies,
            "producers": self._workload.produce,
            "consumers": self._workload.consume,
            "mover": self._move_bundles,
            "visitor": self._look_in,
            **clients,
            "installer": set_up,
        }
        self._nodes = {name: self._course.add(name, program) for name, program in programs.items()}
        self._operator = Operator(
            world, "operator", f"http://broker1:{WEB_PORT}", self._nodes["broker1"], pause_seconds_max=0.5
        )
        self._operator.take([existing_namespace(name) for name in _CHANGING_NAMESPACES])
        self._nodes["operator"] = self._course.add("operator", self._operator.work)
        view = self._view = ClusterView(world, self._zookeeper, _TOPIC, [self._nodes[name] for name in BOOKIES])
        self._judge = ClusterJudge(view, _TOPIC, ACK_QUORUM)
        self._zookeeper.on_write = self._judge.on_write
        self._course.roles[_OWNER] = lambda: owner.broker if (owner := view.owner()) is not None else BROKERS[0]
        self._course.own_faults = faults_of(self._zookeeper)
        Wiretap(world.network, [self._nodes[name] for name in BROKERS], BINARY_PORT, self._judge.on_command)
        self.plan = self._course.plan
        self.events_of = self._workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        for name in (*ZOOKEEPERS, "installer"):
            self._nodes[name].start(self._course.programs[name])
        self._course.quiet(self._nodes["installer"].main.done, "the cluster is set up")
        findings = play_messages(
            self._course,
            self._workload,
            faults,
            restarted=[self._nodes[name] for name in (*BOOKIES, *BROKERS)],
            in_quiet=self._look_around,
        )
        late = self._judge.late_receipts(self._course.times(), _RECEIPT_SECONDS_MAX)
        findings += self._finished_deletions_reported()
        return [*self._judge.findings, *late, *self._operator.judge(self._course.excuses()), *findings]

    def _finished_deletions_reported(self) -> list[Finding]:
        """Return the failures of deletions that were done already, which no broker that is away excuses."""
        return [
            Finding("G1", f"{error.node} logged at {error.seconds:.3f}: {error.text}")
            for error in self._course.world.errors
            if error.event == _RESUMED and error.text.endswith("does not exist")
        ]

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
        self._nodes[self._course.world.stream("bookies").choice(BOOKIES)].power_off()

    async def _ask_brokers(self, node: Node) -> None:
        for broker in BROKERS:
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
            async with AdminClient(f"http://{chance.choice(self._entrances)}:{WEB_PORT}", timeout_ms=5_000) as admin:
                with suppress(PulsarError):  # a broker that is down, or loses the bundle meanwhile
                    await admin.namespaces.unload("public/default")
        await asyncio.get_running_loop().create_future()

    async def _look_in(self, node: Node) -> None:
        """Read the topic now and then, which makes a broker take a bundle without an owner."""
        chance = self._course.world.stream("visitor")
        while self._workload.sending:
            await asyncio.sleep(chance.expovariate(1 / _VISIT_PAUSE_SECONDS))
            async with Client(f"pulsar://{chance.choice(self._entrances)}:{BINARY_PORT}", **CLIENT_OPTIONS) as client:
                with suppress(PulsarError):  # a broker that is down, or that is losing the bundle
                    reader = await client.create_reader(TOPIC)
                    await reader.has_message_available()
        await asyncio.get_running_loop().create_future()

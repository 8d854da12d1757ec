"""S8, second part: the data directory of a broker is imported into a cluster, and the import dies on the way."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import IN_CLUSTER
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.names import TopicName
from interpulse.storage.logs.topic_records import TopicRecord
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.simulation import contents
from tests.simulation.administered import things_of
from tests.simulation.cluster import CLUSTER
from tests.simulation.cluster_nodes import (
    BOOKIES,
    BROKERS,
    PLACEMENT,
    SERVERS,
    ZOOKEEPERS,
    broker_of_cluster,
    faults_of,
    new_zookeeper,
    set_up,
    store_entries,
    zookeeper_server,
)
from tests.simulation.contents import Contents
from tests.simulation.faults import Fault, Targets
from tests.simulation.importing import Importing, left_behind
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node, Program
from tests.simulation.programs import BINARY_PORT, WEB_PORT
from tests.simulation.scenarios.admin import WEB_URL, prepared
from tests.simulation.scenarios.scenario import Course
from tests.simulation.scenarios.shared import FAILING_DISKS
from tests.simulation.stopping import StoppableBroker
from tests.simulation.workload import CLIENT_OPTIONS
from tests.simulation.world import World

_ALONE: Final = "broker"
_NAMESPACE: Final = "sim/imported"
_FAULT_SECONDS: Final = 8.0
_FLUSHED_SECONDS: Final = 5.0
"""The time in which the acknowledgements of a broker that is killed are stored."""
_SETTINGS: Final = {
    **PLACEMENT,
    "broker_deduplication_enabled": True,
    "broker_delete_inactive_topics_enabled": False,
    "default_retention_time_in_minutes": -1,
    "default_retention_size_in_mb": -1,
}
_CONFLICTS: Final = {
    keys.load_report("broker1:8080"): b"{}",
    keys.partitioned_topic(TopicName.parse(f"{_NAMESPACE}/partitioned-messages")): json.dumps(
        {"partitions": 9}
    ).encode(),
    keys.topic_record(TopicName.parse(f"{_NAMESPACE}/ended")): IN_CLUSTER.topic_records.encode(
        TopicRecord(other={"not": "ours"})
    ),
}
"""Nodes of the cluster for which an import is refused."""


class Imports:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._world = world
        targets = Targets((*[_ALONE] * 5, *BOOKIES, *ZOOKEEPERS), metadata=ZOOKEEPERS, without=FAILING_DISKS)
        self._course = Course(world, targets, _FAULT_SECONDS)
        self._chance = world.stream("imports")
        self._stoppable = StoppableBroker(contents.SETTINGS)
        self._contents = Contents(_NAMESPACE, world.stream("contents"))
        self._importing = Importing(self._stoppable.tree)
        self._zookeeper = new_zookeeper()
        self._course.own_faults = faults_of(self._zookeeper)
        programs: dict[str, Program] = {
            **dict.fromkeys(ZOOKEEPERS, zookeeper_server(self._zookeeper)),
            **dict.fromkeys(BOOKIES, store_entries),
            _ALONE: self._stoppable.run,
        }
        self._nodes = {name: self._course.add(name, program) for name, program in programs.items()}

    def plan(self) -> list[Fault]:
        """Draw deaths of the import, some close together, and in half of the seeds other faults too."""
        chance = self._world.stream("deaths")
        others = self._course.plan() if chance.random() < 0.5 else []
        return sorted([*_deaths(chance), *others], key=lambda fault: fault.at)

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        return []

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course, alone = self._course, self._nodes[_ALONE]
        for name in ZOOKEEPERS:
            self._nodes[name].start(course.programs[name])
        self._do("installer", set_up, "the cluster is set up")
        course.start()
        course.quiet(lambda: (_ALONE, WEB_PORT) in self._world.network.servers, "the broker serves", letter="T2")
        self._do("filler", self._fill, "the broker is filled")
        self._end_broker(alone)
        course.programs[_ALONE] = self._importing.run
        if self._chance.random() < 0.5:
            self._refuse(alone)
        alone.start(self._importing.run)
        course.faults(faults)
        if self._chance.random() < 0.2:
            self._go_back(alone)
        else:
            self._serve(alone)
        return [*course.findings, *self._contents.findings, *course.unhandled()]

    def _do(self, name: str, program: Program, when: str) -> None:
        """Run a program on a node of its own to its end."""
        node = self._course.add(name, program)
        node.start(program)
        self._course.quiet(node.main.done, when, letter="T2")

    def _end_broker(self, alone: Node) -> None:
        """End the broker in order, or with SIGKILL or without power while a client writes."""
        how = self._chance.choice(["terminate", "kill", "power off"])
        self._world.run(lambda: False, 0 if how == "terminate" else _FLUSHED_SECONDS)
        self._course.add("writer", self._write).start(self._write)
        self._world.run(lambda: False, self._chance.uniform(0.2, 1.5))
        if how == "terminate":
            alone.terminate()
            self._course.quiet(lambda: not alone.alive, "the broker stops", letter="C1")
        elif how == "kill":
            alone.kill()
        else:
            alone.power_off()
        self._contents.writing = False

    def _refuse(self, alone: Node) -> None:
        """Import into a cluster that is not fit for it, and die meanwhile: nothing may change."""
        path, value = self._chance.choice(list(_CONFLICTS.items()))
        self._do("placer", lambda node: _place(path, value), "something stands in the way")
        before = self._persistent()
        for _ in range(self._chance.randint(0, 3)):
            alone.start(self._importing.run)
            self._world.run(lambda: False, self._chance.uniform(0, 0.3))
            alone.kill()
        alone.start(self._importing.run)
        importing = self._importing
        self._course.quiet(lambda: bool(importing.refusals or importing.finished), "the import is refused", letter="T2")
        alone.kill()
        if importing.finished:
            self._course.findings.append(Finding("T2", f"the import was not refused in spite of {path}"))
        if self._persistent() != before:
            self._course.findings.append(Finding("T2", f"the import was refused for {path}, and changed the cluster"))
        self._do("remover", lambda node: _remove(path), "nothing stands in the way")

    def _go_back(self, alone: Node) -> None:
        """Give the import up, and serve from the data directory again."""
        alone.kill()
        self._course.programs[_ALONE] = self._stoppable.run
        alone.start(self._stoppable.run)
        self._do("comparer", lambda node: self._compare(_ALONE, "standalone"), "the broker is compared")

    def _serve(self, alone: Node) -> None:
        """Finish the import, repeat it, and serve from the cluster."""
        finished = self._importing.finished
        count = len(finished)
        self._course.quiet(lambda: len(finished) > count, "everything is imported", letter="L1")
        before = self._persistent()
        self._course.quiet(lambda: len(finished) > count + 1, "the import is repeated", letter="L1")
        if self._persistent() != before or len(set(finished[count:])) > 1:
            self._course.findings.append(Finding("L2", "a repeated import changed the cluster"))
        alone.kill()
        self._do("auditor", self._audit, "the ledgers of the cluster are counted")
        self._course.restart(*(self._nodes[name] for name in BOOKIES))
        for name in BROKERS[:2]:
            program = broker_of_cluster(_SETTINGS)
            self._course.add(name, program).start(program)
        self._do("comparer", lambda node: self._compare(BROKERS[0], CLUSTER), "the cluster is compared")

    def _persistent(self) -> dict[str, bytes]:
        return {path: node.value for path, node in self._zookeeper.nodes.items() if not node.owner}

    async def _fill(self, node: Node) -> None:
        topic = f"persistent://{_NAMESPACE}/messages"
        things = things_of(_NAMESPACE, topic, await prepared(_NAMESPACE, topic))
        async with _client(_ALONE) as client, AdminClient(WEB_URL) as admin:
            await self._contents.fill(client, admin, things)

    async def _audit(self, node: Node) -> None:
        left = await left_behind(self._zookeeper.nodes)
        if left:
            self._course.findings.append(Finding("T2", f"imports that were interrupted left the ledgers {left}"))

    async def _write(self, node: Node) -> None:
        async with _client(_ALONE) as client:
            await self._contents.write(client)

    async def _compare(self, host: str, cluster: str) -> None:
        async with _client(host) as client, AdminClient(f"http://{host}:{WEB_PORT}") as admin:
            await self._contents.compare(client, admin, cluster=cluster)


def _client(host: str) -> Client:
    return Client(f"pulsar://{host}:{BINARY_PORT}", **CLIENT_OPTIONS)


async def _place(path: str, value: bytes) -> None:
    nodes = await ZooKeeperClient.connect(SERVERS)
    await nodes.create_parents(path)
    await nodes.create(path, value)
    await nodes.close()


async def _remove(path: str) -> None:
    nodes = await ZooKeeperClient.connect(SERVERS)
    await nodes.delete(path)
    await nodes.close()


def _deaths(chance: random.Random) -> list[Fault]:
    """Draw deaths of the import: of its process, or of its machine."""
    pause = chance.choice([0.05, 0.2, 1.0])
    faults: list[Fault] = []
    moment = chance.expovariate(1 / pause)
    while moment < _FAULT_SECONDS / 2:
        kind = "power off" if chance.random() < 0.2 else "kill"
        faults.append(Fault(round(moment, 6), kind, _ALONE, round(chance.choice([0.01, chance.uniform(0, 0.5)]), 6)))
        moment += chance.expovariate(1 / pause)
    return faults

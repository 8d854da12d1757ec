"""S7: two operators administer a broker over HTTP, each its own namespace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import AlreadyExists
from interpulse.model.ids import MessageId
from tests.simulation.administered import things_of
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding, Interval
from tests.simulation.nodes import Node
from tests.simulation.operator import Operator
from tests.simulation.programs import BINARY_PORT, WEB_PORT, broker_alone
from tests.simulation.scenarios.scenario import Course
from tests.simulation.workload import CLIENT_OPTIONS
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

SETTINGS: Final = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
}
WEB_URL: Final = f"http://broker:{WEB_PORT}"
_TENANT: Final = "sim"
_OPERATORS: Final = ("one", "two")
_MESSAGES: Final = 12
_FAULT_SECONDS: Final = 10.0
_STILL_SECONDS: Final = 30.0
"""The time after which no request of an operator is under way any more."""
_FAILING: Final = ("kill", "power off", "stall disk", "sync fails", "write fails", "disk full")
"""Faults after which a broker may answer that it failed."""


class Administration:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._course = Course(world, Targets(servers=("broker",), clients=_OPERATORS), _FAULT_SECONDS)
        self._broker = self._course.add("broker", broker_alone(MemoryTree(), SETTINGS))
        self._operators = [Operator(world, name, WEB_URL, self._broker) for name in _OPERATORS]
        self._ready = 0
        self.plan = self._course.plan

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        return []

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course, world = self._course, self._course.world
        self._broker.start(course.programs["broker"])
        course.quiet(lambda: ("broker", WEB_PORT) in world.network.servers, "the broker serves", letter="T2")
        nodes = [self._add(name, operator) for name, operator in zip(_OPERATORS, self._operators, strict=True)]
        course.quiet(lambda: self._ready == len(nodes), "the operators have prepared their namespaces", letter="T2")
        course.faults(faults)
        for operator in self._operators:
            operator.working = False
        course.quiet(lambda: all(node.main.done() for node in nodes), "the operators end", letter="C1")
        world.run(lambda: False, _STILL_SECONDS)
        self._look("before")
        course.restart(self._broker)
        self._look("after")
        judged = [finding for operator in self._operators for finding in operator.judge(self._excuses(faults))]
        return course.findings + judged + course.unhandled()

    def _add(self, name: str, operator: Operator) -> Node:
        async def program(node: Node) -> None:
            namespace = f"{_TENANT}/{name}"
            topic = f"persistent://{namespace}/messages"
            operator.take(things_of(namespace, topic, await prepared(namespace, topic)))
            self._ready += 1
            await operator.work(node)

        node = self._course.add(name, program)
        node.start(program)
        return node

    def _look(self, when: str) -> None:
        readers = []
        for number, operator in enumerate(self._operators):
            reader = self._course.add(f"{when}-{number}", operator.look_at_all)
            reader.start(operator.look_at_all)
            readers.append(reader)
        self._course.quiet(
            lambda: all(reader.main.done() for reader in readers), f"everything is read {when} the restart", letter="T2"
        )

    def _excuses(self, faults: Sequence[Fault]) -> list[Interval]:
        return self._course.excuses([fault for fault in faults if fault.kind in _FAILING])


async def prepared(namespace: str, topic: str) -> list[MessageId]:
    """Create a namespace whose topic has some messages, and return their ids."""
    async with AdminClient(WEB_URL) as admin:
        with suppress(AlreadyExists):
            await admin.tenants.create(_TENANT, TenantInfo(allowed_clusters=("standalone",)))
        await admin.namespaces.create(namespace)
    async with Client(f"pulsar://broker:{BINARY_PORT}", **CLIENT_OPTIONS) as client:
        producer = await client.create_producer(topic, batching_enabled=False)
        return [await producer.send(b"%d" % number) for number in range(_MESSAGES)]

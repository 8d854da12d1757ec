"""S6: two clusters that replicate to each other. Drivers and executors of both directions end at any step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import permutations
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ClientConfig
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.messages import OutgoingMessage
from interpulse.client.session import Session
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AlreadyExists, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.copy import source_positions
from interpulse.spark.writing.broker_target import last_position
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding, Sent
from tests.simulation.lanes.executors import EXECUTOR_STEPS, Executors, execute
from tests.simulation.lanes.judge import StoredEntry, judge_lane, judge_round_trips
from tests.simulation.lanes.query import DRIVER_STEPS, CopyQuery, Direction
from tests.simulation.nodes import Node
from tests.simulation.programs import BINARY_PORT, WEB_PORT, broker_alone
from tests.simulation.scenarios.scenario import Course
from tests.simulation.scenarios.single import SETTINGS
from tests.simulation.workload import CLIENT_OPTIONS, Workload, until_done
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

_FAULT_SECONDS: Final = 8.0
_STILL_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.2
_NAMESPACE: Final = "geo/lanes"
_CLUSTERS: Final = ("a", "b")
_TOPICS: Final = (f"persistent://{_NAMESPACE}/batched", f"persistent://{_NAMESPACE}/single")
_EXECUTORS: Final = ("executor1", "executor2")
_LARGE: Final = 4_000
_LIMIT: Final = 3_000
_LIMIT_PAUSE_SECONDS: Final = 4.0


class Lanes:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._chance = world.stream("lanes")
        drivers = {f"driver-{source}-{target}": (source, target) for source, target in permutations(_CLUSTERS, 2)}
        clients = tuple(f"producers-{cluster}" for cluster in _CLUSTERS)
        targets = Targets(
            (*(_broker(cluster) for cluster in _CLUSTERS), *drivers, *_EXECUTORS),
            clients,
            steps=dict.fromkeys(drivers, DRIVER_STEPS) | dict.fromkeys(_EXECUTORS, EXECUTOR_STEPS),
        )
        course = self._course = Course(world, targets, _FAULT_SECONDS)
        self._limits = self._chance.random() < 0.3
        """True if an operator lowers the largest message of a target now and then, so that it refuses some entries."""
        self._workloads = {
            (cluster, topic): _workload(world, cluster, topic, self._outgoing)
            for cluster in _CLUSTERS
            for topic in _TOPICS
        }
        for (_, topic), workload in self._workloads.items():
            workload.history.sent = self._workloads[_CLUSTERS[0], topic].history.sent  # each topic holds those of all
        self._brokers = [
            course.add(_broker(cluster), broker_alone(MemoryTree(), {**SETTINGS, "clusterName": cluster}))
            for cluster in _CLUSTERS
        ]
        executors = Executors([course.add(name, execute) for name in _EXECUTORS], self._chance)
        isolate = self._chance.random() < 0.5
        self._queries: list[CopyQuery] = []
        self._drivers: list[Node] = []
        for name, (source, target) in drivers.items():
            direction = Direction(source, _url(source), target, _url(target), _TOPICS)
            query = CopyQuery(direction, executors, self._chance, isolate=isolate)
            self._queries.append(query)
            self._drivers.append(course.add(name, query.run))
        for cluster, name in zip(_CLUSTERS, clients, strict=True):
            course.add(name, self._producing(cluster))
        if self._limits:
            course.add("operator", self._change_limits)
        self.stored: dict[tuple[str, str], list[StoredEntry]] = {}
        self.plan = course.plan

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        """Return what happened to the message of the first finding, in its own cluster."""
        return [line for workload in self._workloads.values() for line in workload.history.events_of(findings)]

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course = self._course
        for broker in self._brokers:
            broker.start(course.programs[broker.name])
        self._visit("installer", _install, "the clusters are set up")
        course.start()
        course.faults(faults)
        for workload in self._workloads.values():
            workload.sending = False
        course.quiet(lambda: all(each.all_sent for each in self._workloads.values()), "everything is sent")
        self._replicated("after the faults")
        course.world.run(lambda: False, _STILL_SECONDS)
        course.restart(*self._brokers, *self._drivers)
        self._replicated("after the last restart")
        course.world.run(lambda: False, _STILL_SECONDS)
        self._visit("reader", self._read, "all topics are read", letter="L7")
        return self._judge()

    def _visit(
        self, name: str, program: Callable[[Node], Coroutine[Any, Any, None]], what: str, *, letter: str = "S1"
    ) -> None:
        node = self._course.add(name, program)
        node.start(program)
        self._course.quiet(node.main.done, what, letter=letter)

    def _replicated(self, when: str) -> None:
        """Wait until every lane has read what its source holds now."""
        ends: dict[tuple[str, str], Position] = {}

        async def look(node: Node) -> None:
            for cluster in _CLUSTERS:
                session = Session(ClientConfig(_url(cluster), **CLIENT_OPTIONS))
                for topic in _TOPICS:
                    ends[cluster, topic] = await until_done(partial(last_position, session, TopicName.parse(topic)))
                await session.close()

        self._visit(f"look {when}", look, f"the ends of the topics are known {when}")
        waiting = [(query, topic) for query in self._queries for topic in _TOPICS]

        async def wait(node: Node) -> None:
            while waiting:
                waiting[:] = [
                    (query, topic)
                    for query, topic in waiting
                    if query.copied(topic) < ends[query.direction.source, topic] and not self._may_stop(query, topic)
                ]
                await asyncio.sleep(_LOOK_SECONDS)

        self._visit(f"wait {when}", wait, f"everything is replicated {when}", letter="R1")
        self._course.findings += [
            Finding("R1", f"{query.direction.name} {topic} stopped {when}: {query.stopped(topic)}")
            for query, topic in waiting
        ]

    def _may_stop(self, query: CopyQuery, topic: str) -> bool:
        """Return True if a lane stopped because the target refused an entry and stored later ones."""
        return self._limits and "does not hold them" in query.stopped(topic)

    def _judge(self) -> list[Finding]:
        findings = self._course.findings + self._course.unhandled()
        for workload in self._workloads.values():
            findings += workload.history.judge(self._course.excuses())
        for query in self._queries:
            source, target = query.direction.source, query.direction.target
            for topic in _TOPICS if self.stored else ():
                findings += judge_lane(
                    f"{query.direction.name} {topic}",
                    source,
                    self.stored[source, topic],
                    self.stored[target, topic],
                    upto=query.copied(topic),
                )
        for (cluster, _), stored in self.stored.items():
            findings += judge_round_trips(cluster, stored)
        return findings

    def _producing(self, cluster: str) -> Callable[[Node], Coroutine[Any, Any, None]]:
        async def program(node: Node) -> None:
            await asyncio.gather(*(self._workloads[cluster, topic].produce(node) for topic in _TOPICS))

        return program

    async def _read(self, node: Node) -> None:
        for (cluster, topic), workload in self._workloads.items():
            await workload.read(node)
            self.stored[cluster, topic] = await _entries(cluster, topic)

    def _outgoing(self, sent: Sent) -> OutgoingMessage:
        large = self._limits and sent.producer.startswith("a") and self._chance.random() < 0.1
        return OutgoingMessage(sent.payload, properties={"pad": "x" * _LARGE} if large else {})

    async def _change_limits(self, node: Node) -> None:
        """Lower the largest message of a topic of the second cluster now and then, and raise it again."""
        async with AdminClient(_web(_CLUSTERS[1]), timeout_ms=5_000) as admin:
            while any(workload.sending for workload in self._workloads.values()):
                topic = self._chance.choice(_TOPICS)
                await asyncio.sleep(self._chance.expovariate(1 / _LIMIT_PAUSE_SECONDS))
                with suppress(PulsarError):
                    await admin.topic_policies.set(topic, "max_message_size", _LIMIT)
                await asyncio.sleep(self._chance.uniform(0.1, 2))
                await until_done(partial(admin.topic_policies.remove, topic, "max_message_size"))
        await asyncio.get_running_loop().create_future()


def _broker(cluster: str) -> str:
    return f"broker-{cluster}"


def _url(cluster: str) -> str:
    return f"pulsar://{_broker(cluster)}:{BINARY_PORT}"


def _web(cluster: str) -> str:
    return f"http://{_broker(cluster)}:{WEB_PORT}"


def _workload(world: World, cluster: str, topic: str, outgoing: Callable[[Sent], OutgoingMessage]) -> Workload:
    producers = {f"{cluster}.{number}": {"batching_enabled": topic.endswith("batched")} for number in range(2)}
    return Workload(world, _url(cluster), topic, producers, {}, outgoing=outgoing)


async def _install(node: Node) -> None:
    """Let the clusters know each other, and create the topics that they replicate."""
    for cluster in _CLUSTERS:
        async with AdminClient(_web(cluster)) as admin:
            for other in _CLUSTERS:
                addresses = ClusterData(_web(other), broker_service_url=_url(other))
                await _created(partial(admin.clusters.create, other, addresses))
            tenant = TenantInfo(allowed_clusters=_CLUSTERS)
            await _created(partial(admin.tenants.create, _NAMESPACE.partition("/")[0], tenant))
            await _created(partial(admin.namespaces.create, _NAMESPACE, clusters=_CLUSTERS))
            for topic in _TOPICS:
                await _created(partial(admin.topics.create, topic))


async def _created(attempt: Callable[[], Awaitable[object]]) -> None:
    async def once() -> None:
        with suppress(AlreadyExists):
            await attempt()

    await until_done(once)


async def _entries(cluster: str, topic: str) -> list[StoredEntry]:
    """Return the entries of a topic, from its first to its last one."""
    session = Session(ClientConfig(_url(cluster), **CLIENT_OPTIONS))
    try:
        name = TopicName.parse(topic)
        upto = await last_position(session, name)
        async with EntryReader(session, name, after=EARLIEST, upto=upto) as reader:
            await reader.open()
            return [
                StoredEntry(
                    entry.position,
                    bytes(entry.parsed.payload),
                    entry.parsed.metadata.replicated_from,
                    next(reversed(source_positions(entry.parsed.metadata)), None),
                )
                async for entry in reader
            ]
    finally:
        await session.close()

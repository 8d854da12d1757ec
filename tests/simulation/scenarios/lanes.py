"""S6: two clusters that replicate to each other. Drivers and executors of both directions end at any step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import permutations
from typing import Any, Final

from interpulse.broker.live.topic.topic import Topic
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ClientConfig
from interpulse.client.messages import OutgoingMessage
from interpulse.client.session import Session
from interpulse.model.errors import PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.writing.broker_target import last_position
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding, Sent
from tests.simulation.lanes.clusters import NAMESPACE, broker_of, install, service_url, stored_entries, web_url
from tests.simulation.lanes.executors import EXECUTOR_STEPS, Executors, execute
from tests.simulation.lanes.judge import StoredEntry, judge_lane, judge_origins
from tests.simulation.lanes.query import DRIVER_STEPS, CopyQuery, Direction
from tests.simulation.nodes import Node
from tests.simulation.programs import ServingBroker
from tests.simulation.scenarios.scenario import Course
from tests.simulation.scenarios.single import SETTINGS
from tests.simulation.workload import CLIENT_OPTIONS, Workload, until_done
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

_STILL_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.2
TOPICS: Final = (f"persistent://{NAMESPACE}/batched", f"persistent://{NAMESPACE}/single")
_EXECUTORS: Final = ("executor1", "executor2")
_LARGE: Final = 4_000
_LIMIT: Final = 3_000
_RUN_AHEAD_MS: Final = (0, 1_000, 3_000)
_LIMIT_PAUSE_SECONDS: Final = 4.0
_FORGET: Final = "forget names"
_IDLE_SECONDS_MAX: Final = 2.0
"""The longest wait of a broker that forgets names for a moment without a task."""
_IDLE_LOOK_SECONDS: Final = 0.005
_LATEST_MS: Final = 2**62


class Lanes:
    """See the module, and `Scenario`."""

    def __init__(
        self,
        world: World,
        *,
        clusters: Sequence[str] = ("a", "b"),
        replicating: Mapping[str, Sequence[str]] | None = None,
        producers: int = 2,
        fault_seconds: float = 8.0,
    ) -> None:
        """``replicating`` has the clusters of each topic, by default all. In each it has so many ``producers``."""
        self._chance = world.stream("lanes")
        self._clusters = clusters
        self._replicating = replicating or dict.fromkeys(TOPICS, clusters)
        self._fault_seconds = fault_seconds
        drivers = {f"driver-{source}-{target}": (source, target) for source, target in permutations(clusters, 2)}
        clients = tuple(f"producers-{cluster}" for cluster in clusters)
        targets = Targets(
            (*map(broker_of, clusters), *drivers, *_EXECUTORS),
            clients,
            steps=dict.fromkeys(drivers, DRIVER_STEPS) | dict.fromkeys(_EXECUTORS, EXECUTOR_STEPS),
        )
        course = self._course = Course(world, targets, fault_seconds)
        course.own_faults = {_FORGET: self._forget}
        self._limits = self._chance.random() < 0.3
        """True if an operator lowers the largest message of a target now and then, so that it refuses some entries."""
        self._names = tuple(f"{cluster}.{number}" for cluster in clusters for number in range(producers))
        self._workloads = {(cluster, topic): self._workload(cluster, topic) for cluster in clusters for topic in TOPICS}
        for (_, topic), workload in self._workloads.items():
            workload.history.sent = self._workloads[clusters[0], topic].history.sent  # each topic holds those of all
        self._serving = {
            cluster: ServingBroker(MemoryTree(), {**SETTINGS, "clusterName": cluster}) for cluster in clusters
        }
        self._brokers = {cluster: course.add(broker_of(cluster), each.run) for cluster, each in self._serving.items()}
        self._ends: dict[tuple[str, str], Position] = dict.fromkeys(self._workloads, EARLIEST)
        """The last position that each topic holds now."""
        for cluster, broker in self._brokers.items():
            broker.watchers.append(partial(self._look_at, cluster))
        self._executors = Executors([course.add(name, execute) for name in _EXECUTORS], self._chance)
        isolate = self._chance.random() < 0.5
        run_ahead_ms = world.stream("run-ahead").choice(_RUN_AHEAD_MS)
        self.queries: dict[str, CopyQuery] = {}
        """The queries by the names of their drivers."""
        self._drivers: list[Node] = []
        for name, (source, target) in drivers.items():
            topics = [topic for topic, among in self._replicating.items() if {source, target} <= {*among}]
            direction = Direction(source, service_url(source), target, service_url(target), topics)
            query = self.queries[name] = CopyQuery(
                direction,
                self._executors,
                self._chance,
                isolate=isolate,
                run_ahead_ms=run_ahead_ms,
                target_end=lambda topic, target=target: self._ends[target, topic],  # type: ignore[misc]
            )
            self._drivers.append(course.add(name, query.run))
        for cluster, name in zip(clusters, clients, strict=True):
            course.add(name, self._producing(cluster))
        if self._limits:
            course.add("operator", self._change_limits)
        self.stored: dict[tuple[str, str], list[StoredEntry]] = {}

    def plan(self) -> list[Fault]:
        """Draw faults, and moments at which brokers forget lanes, often while a driver is away that must know them."""
        return sorted([*self._course.plan(), *self._forgettings()], key=lambda fault: fault.at)

    def _forgettings(self) -> Iterator[Fault]:
        chance = self._course.world.stream("forgetting")
        for _ in range(chance.choice([0, 0, 1, 3])):
            moment = round(chance.uniform(0.5, self._fault_seconds), 6)
            driver, query = chance.choice([*self.queries.items()])
            if chance.random() < 0.6:
                step, downtime = chance.choice(DRIVER_STEPS), round(chance.uniform(0.5, 2), 6)
                yield Fault(moment, "end at step", driver, downtime, step)
            forgotten_at = round(moment + chance.uniform(0.05, 0.5), 6)
            yield Fault(forgotten_at, _FORGET, broker_of(query.direction.target), _IDLE_SECONDS_MAX)

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        """Return what happened to the message of the first finding, in its own cluster."""
        return [line for workload in self._workloads.values() for line in workload.history.events_of(findings)]

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course = self._course
        for broker in self._brokers.values():
            broker.start(course.programs[broker.name])
        self._visit("installer", self._install, "the clusters are set up")
        course.start()
        course.faults(faults)
        for query in self.queries.values():
            query.unready.clear()
        for workload in self._workloads.values():
            workload.sending = False
        course.quiet(lambda: all(each.all_sent for each in self._workloads.values()), "everything is sent")
        self._replicated("after the faults")
        course.world.run(lambda: False, _STILL_SECONDS)
        course.restart(*self._brokers.values(), *self._drivers)
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
            for cluster in self._clusters:
                session = Session(ClientConfig(service_url(cluster), **CLIENT_OPTIONS))
                for topic in TOPICS:
                    ends[cluster, topic] = await until_done(partial(last_position, session, TopicName.parse(topic)))
                await session.close()

        self._visit(f"look {when}", look, f"the ends of the topics are known {when}")
        waiting = [(query, topic) for query in self.queries.values() for topic in query.direction.topics]

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
        for query in self.queries.values():
            source, target = query.direction.source, query.direction.target
            for topic in query.direction.topics if self.stored else ():
                findings += judge_lane(
                    f"{query.direction.name} {topic}",
                    (source, target),
                    self.stored[source, topic],
                    self.stored[target, topic],
                    upto=query.copied(topic),
                    acknowledged=query.acknowledged[topic],
                )
        for (cluster, _), stored in self.stored.items():
            findings += judge_origins(cluster, stored)
        return findings

    def _producing(self, cluster: str) -> Callable[[Node], Coroutine[Any, Any, None]]:
        async def program(node: Node) -> None:
            await asyncio.gather(*(self._workloads[cluster, topic].produce(node) for topic in TOPICS))

        return program

    async def _read(self, node: Node) -> None:
        for (cluster, topic), workload in self._workloads.items():
            await workload.read(node)
            self.stored[cluster, topic] = await stored_entries(cluster, topic)

    def _workload(self, cluster: str, topic: str) -> Workload:
        options = {"batching_enabled": topic.endswith("batched")}
        names = dict.fromkeys((name for name in self._names if name.startswith(cluster)), options)
        return Workload(self._course.world, service_url(cluster), topic, names, {}, outgoing=self.outgoing)

    def outgoing(self, sent: Sent) -> OutgoingMessage:
        """Return the message to send."""
        large = self._limits and sent.producer.startswith("a") and self._chance.random() < 0.1
        return OutgoingMessage(sent.payload, properties={"pad": "x" * _LARGE} if large else {})

    def _look_at(self, cluster: str, broker: Node) -> None:
        """Note how far the topics of a cluster go."""
        app = self._serving[cluster].app
        if app is None:
            return
        for topic in TOPICS:
            loaded = app.registry.get(TopicName.parse(topic))
            if isinstance(loaded, Topic):
                self._ends[cluster, topic] = loaded.positions.durable

    def _forget(self, fault: Fault) -> None:
        """Let a broker forget lanes, as it does when no producer had their names for hours: not during a task."""
        world, cluster = self._course.world, fault.node.removeprefix(broker_of(""))
        broker, until = self._brokers[cluster], world.now + fault.seconds
        drivers = [each for each in self._drivers if self.queries[each.name].direction.target == cluster]

        def look() -> None:
            if broker.alive and self._executors.are_idle(drivers):
                broker.loop.call_soon(self._forget_lanes, cluster)
            elif world.now < until:
                world.after(_IDLE_LOOK_SECONDS, look)

        look()

    def _forget_lanes(self, cluster: str) -> None:
        app = self._serving[cluster].app
        for topic in app.registry.topics() if app is not None else ():
            if isinstance(topic, Topic):
                topic.sequences.forget_inactive(_LATEST_MS, {*topic.producers.by_name, *self._names})

    async def _install(self, node: Node) -> None:
        await install(self._clusters, self._replicating)

    async def _change_limits(self, node: Node) -> None:
        """Lower the largest message of a topic of the second cluster now and then, and raise it again."""
        async with AdminClient(web_url(self._clusters[1]), timeout_ms=5_000) as admin:
            while any(workload.sending for workload in self._workloads.values()):
                topic = self._chance.choice(TOPICS)
                await asyncio.sleep(self._chance.expovariate(1 / _LIMIT_PAUSE_SECONDS))
                with suppress(PulsarError):
                    await admin.topic_policies.set(topic, "max_message_size", _LIMIT)
                await asyncio.sleep(self._chance.uniform(0.1, 2))
                await until_done(partial(admin.topic_policies.remove, topic, "max_message_size"))
        await asyncio.get_running_loop().create_future()

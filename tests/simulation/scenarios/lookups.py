"""S7, second part: clients look up topics, many at a time and one by one, while an operator changes what is there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from interpulse.client.client import Client
from interpulse.client.config import BrokerAddress
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.names import TopicName
from tests.simulation.administered import existing_namespace, partitioned_topic
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.nodes import Node
from tests.simulation.operator import CLOSED_SECONDS, Operator, left_of_client
from tests.simulation.programs import BINARY_PORT, WEB_PORT
from tests.simulation.scenarios.admin import SETTINGS, WEB_URL, prepared
from tests.simulation.scenarios.scenario import Course
from tests.simulation.stopping import StoppableBroker
from tests.simulation.workload import CLIENT_OPTIONS
from tests.simulation.world import World

_FIXED: Final = "sim/fixed"
_NAMESPACES: Final = tuple(f"sim/changing-{number}" for number in range(3))
_TOPICS: Final = tuple(f"persistent://{_FIXED}/partitioned-{number}" for number in range(3))
_ADDRESS: Final = BrokerAddress("broker", BINARY_PORT)
_URLS: Final = (f"pulsar://broker:{BINARY_PORT}", WEB_URL)
_LOOKUP_MS: Final = 3_000
_BURST: Final = 40
"""Batches that are under way when a client goes away."""
_FAULT_SECONDS: Final = 8.0
_STILL_SECONDS: Final = 30.0


class Lookups:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        self._course = Course(world, Targets(servers=("broker",), clients=("operator", "asking")), _FAULT_SECONDS)
        self._stoppable = StoppableBroker(SETTINGS)
        self._broker = self._course.add("broker", self._stoppable.run)
        self._operator = Operator(world, "operator", WEB_URL, self._broker)
        self._chance = world.stream("lookups")
        self._asking = True
        self._ready = False
        self.plan = self._course.plan

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        return []

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course, world = self._course, self._course.world
        self._broker.start(self._stoppable.run)
        course.programs["broker"] = self._stoppable.run
        course.quiet(lambda: ("broker", WEB_PORT) in world.network.servers, "the broker serves", letter="B1")
        operator, asking = course.add("operator", self._operate), course.add("asking", self._ask)
        operator.start(self._operate)
        course.quiet(lambda: self._ready, "the operator has prepared a namespace", letter="B1")
        asking.start(self._ask)
        course.faults(faults)
        self._operator.working = self._asking = False
        course.quiet(lambda: operator.main.done() and asking.main.done(), "all programs end", letter="C1")
        world.run(lambda: False, _STILL_SECONDS)
        return [*course.findings, *self._leaked(), *self._operator.judge(course.excuses()), *course.unhandled()]

    def _leaked(self) -> list[Finding]:
        app = self._stoppable.app
        if app is None:
            return [Finding("B1", "the broker does not serve")]
        taken = app.parts.topics.permits.taken
        return [Finding("B1", f"{taken} permits are taken, although there is no lookup")] if taken else []

    async def _operate(self, node: Node) -> None:
        await prepared(_FIXED, f"persistent://{_FIXED}/messages")
        things = [*map(existing_namespace, _NAMESPACES), *map(partitioned_topic, _TOPICS)]
        self._operator.take(things)
        self._ready = True
        await self._operator.work(node)

    async def _ask(self, node: Node) -> None:
        """Ask with one client after the other. Some go away while their questions are under way."""
        while self._asking:
            client = Client(self._chance.choice(_URLS), lookup_timeout_ms=_LOOKUP_MS, **CLIENT_OPTIONS)
            try:
                for _ in range(self._chance.randint(1, 8)):
                    await asyncio.sleep(self._chance.uniform(0, 0.05))
                    question = self._chance.choice([self._look_up_many, self._look_up_one, self._count_partitions])
                    await question(client)
                if self._chance.random() < 0.5:
                    await self._burst(client)
            finally:
                await client.close()
            if self._chance.random() < 0.2:
                await asyncio.sleep(CLOSED_SECONDS)
                self._course.findings += left_of_client(node)

    async def _burst(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self._chance.uniform(0, 0.01)):
                await asyncio.gather(*(client.lookup_batch(_names(self._chance)) for _ in range(_BURST)))
        except TimeoutError:
            pass

    async def _look_up_many(self, client: Client) -> None:
        names, begin = _names(self._chance), self._now
        answers = await client.lookup_batch(names)
        if answers.keys() != set(names):
            self._fault(f"a batch of {names} was answered for {sorted(answers)}")
        for name in names:
            self._judge(name, answers.get(name), begin)

    async def _look_up_one(self, client: Client) -> None:
        name, begin = self._chance.choice(_names(self._chance)), self._now
        try:
            answer: BrokerAddress | PulsarError = await client.session.lookup.broker(TopicName.parse(name))
        except PulsarError as error:
            answer = error
        self._judge(name, answer, begin)

    async def _count_partitions(self, client: Client) -> None:
        topic, begin = self._chance.choice(_TOPICS), self._now
        try:
            count = len(await client.get_partitions_for_topic(topic, create=False))
        except NotFound:
            self._expect(topic, None, begin)
        except PulsarError:
            return
        else:
            self._expect(topic, count, begin)

    def _judge(self, name: str, answer: BrokerAddress | PulsarError | None, begin: float) -> None:
        namespace = str(TopicName.parse(name).namespace_name)
        if isinstance(answer, BrokerAddress):
            if answer != _ADDRESS:
                self._fault(f"{name} is served by {answer}, the only broker is {_ADDRESS}")
            self._expect(namespace, True, begin)
        elif isinstance(answer, NotFound):
            self._expect(namespace, None, begin)

    def _expect(self, name: str, value: object, begin: float) -> None:
        possible = {True} if name == _FIXED else self._operator.possible(name).between(begin, self._now)
        if value not in possible:
            self._fault(f"{name} was answered as {value!r}, since {begin:.3f} it was one of {possible}")

    def _fault(self, text: str) -> None:
        self._course.findings.append(Finding("B1", f"{self._now:.3f} {text}"))

    @property
    def _now(self) -> float:
        return self._course.world.seconds


def _names(chance: random.Random) -> list[str]:
    """Draw topics of all namespaces, which need not exist."""
    namespaces = [_FIXED, *_NAMESPACES]
    return [f"persistent://{namespace}/t-{chance.randrange(20)}" for namespace in namespaces]

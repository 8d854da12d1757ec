"""S3: topics come and go. Three clients create, open, expand and delete them; a model judges all answers (T1, T2)."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.producing.send_queue import ProducerRequest, SendQueue
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.storage.api import Put
from interpulse.storage.logs.topic_records import JSON_RECORDS
from tests.simulation import lifecycle_model as model
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding
from tests.simulation.lifecycle_model import Answer, AutoCreation, Call, Operation, State
from tests.simulation.nodes import Node, Program
from tests.simulation.programs import BINARY_PORT, WEB_PORT, broker_alone
from tests.simulation.scenarios.scenario import Course
from tests.simulation.workload import CLIENT_OPTIONS, KEEP_ALIVE_MS
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

_FAULT_SECONDS: Final = 10.0
_CLIENTS: Final = ("first", "second", "third")
_NAMES: Final = ("a", "b", "c")
_PARTITIONS_MAX: Final = 3
_COMMIT_SECONDS_MAX: Final = (0.003, 0.3)
"""Longest times of most commits, of which a seed draws one: slow ones leave others time between read and write."""
_AGAIN_SECONDS: Final = 0.1
_ANSWER_SECONDS_MAX: Final = 120.0
"""The time after which no broker acts on a request any more: longer than any link or disk stalls."""
_RULES: Final[Sequence[tuple[model.Rule, int]]] = (
    (model.ask_partitions, 5),
    (model.open_topic, 5),
    (model.create_topic, 3),
    (model.create_partitioned, 3),
    (model.expand, 3),
    (model.restore, 3),
    (model.delete_topic, 4),
    (model.delete_partitioned, 3),
)
"""Operations, with their weights."""
_REPAIRS: Final[Sequence[tuple[model.Rule, int]]] = (
    (model.create_partitioned, 1),
    (model.expand, 1),
    (model.restore, 4),
    (model.delete_topic, 6),
)
"""Operations of one topic over slow commits, whose partitions are deleted and restored all the time."""


class Lifecycle:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        chance = world.stream("workload")
        self._world = world
        self._auto_creation = AutoCreation(chance.random() < 0.6, chance.choice([0, 0, 2]))
        contended = chance.random() < 0.3
        self._rules = _REPAIRS if contended else _RULES
        self._names = _NAMES[:1] if contended else _NAMES
        self._begun_as = dict(_orphans(chance, self._names)) if chance.random() < 0.5 else {}
        self._history: list[Operation] = []
        self._asking = True
        self._running = len(_CLIENTS) + 1
        self._course = Course(world, Targets(servers=("broker",), clients=_CLIENTS), _FAULT_SECONDS)
        kind = "partitioned" if self._auto_creation.partitions else "non-partitioned"
        settings = {
            "allowAutoTopicCreation": str(self._auto_creation.allowed).lower(),
            "allowAutoTopicCreationType": kind,
            "defaultNumPartitions": self._auto_creation.partitions or 1,
            "keepAliveIntervalSeconds": KEEP_ALIVE_MS // 1000,
        }
        self._broker = self._course.add("broker", broker_alone(_tree_with(self._begun_as), settings))
        self._broker.job_seconds_max["metadata"] = 0.3 if contended else chance.choice(_COMMIT_SECONDS_MAX)
        for name in _CLIENTS:
            self._course.add(name, self._client(name))
        self._course.add("watcher", self._watch)
        self.plan = self._course.plan

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course = self._course
        course.start()
        course.faults(faults)
        self._asking = False
        course.quiet(lambda: not self._running, "every request is answered after the faults", letter="C1")
        course.restart(self._broker)
        auditor = course.add("auditor", self._audit)
        auditor.start(self._audit)
        course.quiet(auditor.main.done, "all topics are asked for after the last restart", letter="T1")
        verdicts = model.judge(self._history, self._auto_creation, self._begun_as)
        return course.findings + [Finding("T1", verdict) for verdict in verdicts] + course.unhandled()

    def events_of(self, findings: Sequence[Finding]) -> list[str]:
        """Return the operations on the topic that the first finding names, those with an answer."""
        named = next((name for name in self._names for each in findings if f"/{name}" in each.text), None)
        return [str(each) for each in self._history if named and each.call.name.base.local_name == named]

    # programs

    def _client(self, name: str) -> Program:
        async def program(node: Node) -> None:
            chance = self._world.stream(f"workload/{name}")
            async with _Asking(self._world, self._history, name, self._broker) as asking:
                while self._asking:
                    await asyncio.sleep(chance.expovariate(1 / 0.15))
                    await asking.ask(_drawn_call(chance, self._rules, self._names))
            self._running -= 1
            await asyncio.get_running_loop().create_future()

        return program

    async def _watch(self, node: Node) -> None:
        """Ask for one topic or partition after the other, without creating it: the answers date the changes."""
        chance = self._world.stream("workload/watcher")
        async with _Asking(self._world, self._history, "watcher", self._broker) as asking:
            while self._asking:
                await asyncio.sleep(chance.expovariate(1 / 0.05))
                index = chance.randrange(-1, _PARTITIONS_MAX)
                await asking.ask(Call(model.ask_partitions, _topic(chance.choice(self._names), index), create=False))
        self._running -= 1
        await asyncio.get_running_loop().create_future()

    async def _audit(self, node: Node) -> None:
        """Ask for every topic and partition without creating it."""
        async with _Asking(self._world, self._history, "auditor", self._broker) as asking:
            for name in self._names:
                for index in range(-1, _PARTITIONS_MAX + 1):
                    call = Call(model.ask_partitions, _topic(name, index), create=False)
                    while await asking.ask(call) is Answer.LOST:  # noqa: ASYNC110 - the last restart is not over
                        await asyncio.sleep(_AGAIN_SECONDS)


class _Asking:
    """The requests of one client, each with a line in the history."""

    def __init__(self, world: World, history: list[Operation], client: str, broker: Node) -> None:
        self._world, self._history, self._client, self._broker = world, history, client, broker
        self._clients = Client(f"pulsar://broker:{BINARY_PORT}", **CLIENT_OPTIONS)
        self._admin = AdminClient(f"http://broker:{WEB_PORT}", timeout_ms=10_000)

    async def __aenter__(self) -> _Asking:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._clients.close()
        await self._admin.close()

    async def ask(self, call: Call) -> Answer | int:
        """Send the request, and note its answer."""
        start = self._world.seconds
        answer: Answer | int
        try:
            answer = await self._requests[call.rule](self, call)
        except PulsarError as error:
            answer = Answer.of(error)
        end = self._world.seconds
        if answer is not Answer.LOST:
            self._history.append(Operation(self._client, call, answer, start, end))
        if call.rule is model.open_topic:
            self._note_lost(call, start, sent=end)  # attempts, whose answers the client hides
        elif answer is Answer.LOST:
            self._note_lost(call, start, sent=start)
        return answer

    def _note_lost(self, call: Call, start: float, *, sent: float) -> None:
        """Note a request that may still be done until the broker dies; ``sent`` is the last moment of sending it."""
        dies = next((moment for moment in self._broker.deaths if moment > sent), math.inf)
        end = min(dies, sent + _ANSWER_SECONDS_MAX)
        self._history.append(Operation(self._client, call, Answer.LOST, start, end))

    async def _ask_partitions(self, call: Call) -> int:
        return (await self._admin.topics.partitioned_metadata(call.name, create=call.create)).partitions

    async def _open_topic(self, call: Call) -> Answer:
        queue = SendQueue(self._clients.session, call.name, ProducerRequest())
        await queue.open()
        await queue.close()
        return Answer.DONE

    async def _create_topic(self, call: Call) -> Answer:
        return await _done(self._admin.topics.create(call.name))

    async def _create_partitioned(self, call: Call) -> Answer:
        return await _done(self._admin.topics.create_partitioned(call.name, call.count))

    async def _expand(self, call: Call) -> Answer:
        return await _done(self._admin.topics.expand(call.name, call.count, force=call.force))

    async def _restore(self, call: Call) -> Answer:
        return await _done(self._admin.topics.create_missed_partitions(call.name))

    async def _delete_topic(self, call: Call) -> Answer:
        return await _done(self._admin.topics.delete(call.name, force=call.force))

    async def _delete_partitioned(self, call: Call) -> Answer:
        return await _done(self._admin.topics.delete_partitioned(call.name, force=call.force))

    _requests: Final[dict[model.Rule, Callable[[_Asking, Call], Awaitable[Answer | int]]]] = {
        model.ask_partitions: _ask_partitions,
        model.open_topic: _open_topic,
        model.create_topic: _create_topic,
        model.create_partitioned: _create_partitioned,
        model.expand: _expand,
        model.restore: _restore,
        model.delete_topic: _delete_topic,
        model.delete_partitioned: _delete_partitioned,
    }


async def _done(request: Awaitable[None]) -> Answer:
    await request
    return Answer.DONE


def _orphans(chance: random.Random, names: Sequence[str]) -> Iterator[tuple[TopicName, State]]:
    """Yield topics of which only partitions are left, as after a loss of the partition metadata."""
    for name in names:
        partitions = [index for index in range(_PARTITIONS_MAX) if chance.random() < 0.5]
        yield _topic(name, -1), State(stored=frozenset(partitions))


def _tree_with(topics: Mapping[TopicName, State]) -> MemoryTree:
    """Return metadata with the records of these stored topics."""
    tree = MemoryTree()
    records = [
        keys.topic_record(name.partition(index)) for name, state in topics.items() for index in sorted(state.stored)
    ]
    tree.commit([Put(key, JSON_RECORDS.amended(None)) for key in records], {}, tree.new_session())
    return tree


def _drawn_call(chance: random.Random, rules: Sequence[tuple[model.Rule, int]], names: Sequence[str]) -> Call:
    rule = chance.choices([rule for rule, _ in rules], [weight for _, weight in rules])[0]
    whole = rule in (model.create_partitioned, model.expand, model.restore, model.delete_partitioned)
    index = -1 if whole or chance.random() < 0.5 else chance.randrange(_PARTITIONS_MAX + 1)
    return Call(
        rule,
        _topic(chance.choice(names), index),
        count=chance.randint(1, _PARTITIONS_MAX) if whole else 0,
        create=chance.random() < 0.5 or rule is not model.ask_partitions,
        force=chance.random() < 0.3,
    )


def _topic(name: str, index: int) -> TopicName:
    whole = TopicName.parse(f"persistent://public/default/{name}")
    return whole if index < 0 else whole.partition(index)

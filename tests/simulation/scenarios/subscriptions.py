"""S2: one broker, and all types of subscriptions, whose consumers come and go.

A seed draws which subscriptions there are, how their applications treat messages, and which of these are on: batches,
delays, compaction, retention, quotas and limits of unacknowledged messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from interpulse.client.messages import Message, OutgoingMessage
from interpulse.model.ids import MessageId
from tests.simulation.faults import Fault, Targets
from tests.simulation.judge import Finding, Sent
from tests.simulation.programs import BINARY_PORT, broker_alone
from tests.simulation.scenarios import single
from tests.simulation.scenarios.scenario import Course
from tests.simulation.subscribers import LATE_SECONDS, Habits, Subscribers, read_all
from tests.simulation.subscription_judge import Consumption, Letter, Wall, key_of
from tests.simulation.workload import Workload
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

_URL: Final = f"pulsar://broker:{BINARY_PORT}"
_TOPIC: Final = "persistent://public/default/t"
_FAULT_SECONDS: Final = 10.0
_STILL_SECONDS: Final = LATE_SECONDS + 1
"""The time before and after the last restart, in which every acknowledgement becomes firm."""
_HARMLESS: Final = ("jump", "skew")
"""Faults that cost no acknowledgement."""
_AHEAD_SECONDS: Final = 3 * 3600.0
"""The step of the broker's clock after the faults, by which every delay is over."""


@dataclass(frozen=True, slots=True)
class Features:
    """What is on in one seed."""

    habits: dict[str, Habits]
    """The subscriptions, by name."""
    batches: bool
    delays: bool
    seeks: bool
    compaction: bool
    retention: bool
    """True: what every subscription has acknowledged is removed."""
    quota: bool
    unacknowledged_limits: bool

    def settings(self) -> dict[str, object]:
        """Return the settings of the broker."""
        settings: dict[str, object] = {**single.SETTINGS, "delayedDeliveryTickTimeMillis": 100}
        if self.compaction:
            settings |= {
                "brokerServiceCompactionThresholdInBytes": 2_000,
                "brokerServiceCompactionMonitorIntervalInSeconds": 2,
            }
        if self.retention:
            settings |= {
                "defaultRetentionTimeInMinutes": 0,
                "defaultRetentionSizeInMB": 0,
                "retentionCheckIntervalInSeconds": 2,
            }
        if self.quota:
            settings |= {"backlogQuotaDefaultLimitBytes": 4_000, "backlogQuotaCheckIntervalInSeconds": 1}
        if self.unacknowledged_limits:
            settings |= {"maxUnackedMessagesPerConsumer": 15, "maxUnackedMessagesPerSubscription": 25}
        return settings


def features(chance: random.Random) -> Features:
    """Draw what is on."""

    def share(most: float) -> float:
        return chance.choice([0.0, chance.uniform(0, most)])

    def habits(kind: str, **more: Any) -> Habits:
        held, indexes = share(0.15), chance.random() < 0.5
        return Habits(kind, **{"nacked": share(0.3), "held": held, "batch_indexes": indexes, **more})

    drawn = {
        "keys": habits("key-shared"),
        "failover": habits("failover", cumulative=share(1)),
        "shared": habits("shared"),
        "letters": habits("shared", nacked=0.0, redeliveries_max=chance.randint(1, 3)),
    }
    drawn = {name: drawn[name] for name in sorted(chance.sample(sorted(drawn), chance.choice([1, 2])))}
    return Features(
        habits=drawn,
        batches=chance.random() < 0.5,
        delays=chance.random() < 0.3,
        seeks=chance.random() < 0.3,
        compaction=chance.random() < 0.3,
        retention=chance.random() < 0.3,
        quota="letters" not in drawn and chance.random() < 0.2,  # nothing reads the letters, so it would hold them
        unacknowledged_limits=chance.random() < 0.2,
    )


class Subscriptions:
    """See the module, and `Scenario`."""

    def __init__(self, world: World) -> None:
        on = self._features = features(world.stream("features"))
        clients = ("producers", "left", "right", *(("seeker",) if on.seeks else ()))
        course = Course(
            world, Targets(("broker", "broker", "left"), clients, without=("bit flips", "drift")), _FAULT_SECONDS
        )
        producers = {"single": {"batching_enabled": False}} | ({"batched": {}} if on.batches else {})
        workload = Workload(world, _URL, _TOPIC, producers, {}, outgoing=self._outgoing)
        workload.history.subscriptions = tuple(on.habits)
        workload.history.ordered = {name for name, habits in on.habits.items() if habits.kind == "failover"}
        self._consumption = Consumption(
            workload.history,
            {name: habits.kind for name, habits in on.habits.items()},
            {name: habits.redeliveries_max for name, habits in on.habits.items() if habits.redeliveries_max},
            trimmed=on.retention,
        )
        self._subscribers = Subscribers(
            world, _URL, _TOPIC, on.habits, self._consumption, holding=not (on.quota or on.unacknowledged_limits)
        )
        self._course, self._workload = course, workload
        self._delays = world.stream("delays")
        self._broker = course.add("broker", broker_alone(MemoryTree(), on.settings()))
        course.add("producers", workload.produce)
        course.add("left", self._subscribers.consume)
        course.add("right", self._subscribers.consume)
        if on.seeks:
            course.add("seeker", self._subscribers.seek)
        self.plan = course.plan
        self.events_of = workload.history.events_of

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        course, world = self._course, self._course.world
        course.start()
        begin = world.seconds
        course.faults(faults)
        self._workload.sending = self._subscribers.coming_and_going = False
        if self._features.delays:
            self._broker.skew += _AHEAD_SECONDS
        walls = self._walls(begin, world.seconds, faults)
        course.quiet(self._sometimes(self._finished), "every message is finished after the faults")
        world.run(lambda: False, _STILL_SECONDS)
        course.restart(self._broker)
        world.run(lambda: False, _STILL_SECONDS)
        self._subscribers.holding = False
        course.quiet(self._sometimes(self._finished), "every message is finished after the last restart")
        self._read_stored()
        excuses = course.excuses([fault for fault in faults if fault.kind not in _HARMLESS])
        letters = [letter for name in self._consumption.redeliveries_max for letter in self._letters_of(name)]
        return [
            *course.findings,
            *self._workload.history.judge(excuses),
            *self._consumption.judge(excuses, walls, letters),
            *(self._compacted() if self._features.compaction else ()),
            *course.unhandled(),
        ]

    def _outgoing(self, sent: Sent) -> OutgoingMessage:
        delay_ms = self._delays.randint(1, 4_000) if self._features.delays and self._delays.random() < 0.2 else None
        return OutgoingMessage(sent.payload, key_of(sent.payload), deliver_after_ms=delay_ms)

    def _finished(self) -> bool:
        """Return True once everything is finished but what applications may hold."""
        subscribers = self._subscribers
        return self._workload.all_sent and all(
            subscribers.holding and subscribers.held[work] > 0 for work in self._consumption.open_work()
        )

    def _sometimes(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """Ask this not more often than twice in a second of the world: the answer is expensive."""
        world, due = self._course.world, 0.0

        def ask() -> bool:
            nonlocal due
            if world.seconds < due:
                return False
            due = world.seconds + 0.5
            return condition()

        return ask

    def _walls(self, begin: float, end: float, faults: Sequence[Fault]) -> list[Wall]:
        """Return the clock of the broker over time."""
        world = self._course.world
        ahead = world.wall_ns() / 1e9 - world.seconds
        steps = [
            (begin + fault.at, fault.amount) for fault in faults if fault.kind in _HARMLESS and fault.node == "broker"
        ]
        steps = [(0.0, 0.0), *steps, (end, self._broker.skew)]
        ends = [moment for moment, _ in steps[1:]] + [float("inf")]
        return [Wall(moment, until, ahead + skew) for (moment, skew), until in zip(steps, ends, strict=True)]

    # --- what is stored at the end

    def _read(self, topic: str, **options: Any) -> list[Message]:
        read: list[Message] = []
        program = lambda node: read_all(_URL, topic, read, **options)  # noqa: E731
        reader = self._course.add(f"reader of {topic} {options}", program)
        reader.start(program)
        self._course.quiet(reader.main.done, f"{topic} is read from its beginning to its end", letter="L7")
        return read

    def _letters_of(self, subscription: str) -> list[Letter]:
        return [Letter(subscription, letter.content or b"") for letter in self._read(f"{_TOPIC}-{subscription}-DLQ")]

    def _read_stored(self) -> None:
        """Read the topic. Where nothing is retained, what every application has finished counts as stored."""
        stored = [(message.id, message.content or b"") for message in self._read(_TOPIC)]
        removed: list[tuple[MessageId, bytes]] = []
        if self._features.retention:
            unfinished = {payload for _, payload in self._consumption.open_work()}
            delivered = {each.id: each.payload for each in self._consumption.received if each.payload not in unfinished}
            first = stored[0][0] if stored else max(delivered, default=MessageId(0, 0))
            removed = sorted((id_, payload) for id_, payload in delivered.items() if id_ < first or not stored)
        self._workload.history.stored += removed + stored

    def _compacted(self) -> list[Finding]:
        """Read the compacted topic: the newest message of every key is there, and nothing that is not stored."""
        stored = self._workload.history.stored
        contents = dict(stored)
        newest = {key_of(payload): (id_, payload) for id_, payload in stored}
        read = [(message.id, message.content or b"") for message in self._read(_TOPIC, read_compacted=True)]
        missing = [entry for entry in newest.values() if entry not in read]
        strange = [(id_, payload) for id_, payload in read if contents.get(id_) != payload]
        return [
            *(
                Finding("L1", f"{payload!r}, stored as {id_}, is gone by compaction", payload)
                for id_, payload in missing
            ),
            *(Finding("L5", f"{payload!r} is compacted as {id_}", payload) for id_, payload in strange),
            *([] if read == sorted(read) else [Finding("L3", "the compacted topic is not in the order of the log")]),
        ]

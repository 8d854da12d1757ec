"""Two jobs, one in each direction, exchange the acknowledgements of a subscription on two clusters in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.consuming.copied_entries import CopiedEntry
from interpulse.model.errors import Conflict
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import Acknowledgements, News, Span, Translation, joined
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.job.subscriptions.copy_map import CopyMap
from interpulse.spark.job.subscriptions.exchange import BEHIND, SYNCED, Side, TopicExchange
from interpulse.spark.job.subscriptions.reverse_copies import ReverseCopies
from interpulse.spark.job.subscriptions.site import Site, SubscriptionState

TOPIC = TopicName.parse("persistent://public/default/orders")
NAME = "billing"
_ROUNDS_MAX = 6


class Stored(NamedTuple):
    """An entry of a log: the cluster on which it was published, and its position there."""

    position: Position
    origin: str
    source: Position


class Cluster:
    """A log of one topic, and the acknowledgements of one subscription. Its ledgers have three entries."""

    keeps_resets = True

    def __init__(self, name: str, first_ledger: int, *, subscribed: bool = True) -> None:
        self.cluster = name
        self.log: list[Stored] = []
        self.acknowledged: set[Position] = set()
        self.resets = 0
        self.subscribed = subscribed
        self.calls = 0
        self._first_ledger = first_ledger

    def append(self, copy: Stored | None = None) -> Stored:
        number = len(self.log)
        position = Position(self._first_ledger + number // 3, number % 3)
        stored = Stored(position, self.cluster, position) if copy is None else copy._replace(position=position)
        self.log.append(stored)
        return stored

    def reset_to(self, number: int) -> None:
        """Let the entries from this number on wait again, as an operator does."""
        self.acknowledged = {entry.position for entry in self.log[:number]}
        self.resets += 1

    @property
    def mark_delete(self) -> Position:
        reached = Position(self._first_ledger, -1)
        for entry in self.log:
            if entry.position not in self.acknowledged:
                return reached
            reached = entry.position
        return reached

    def states(self, topic: TopicName) -> Mapping[str, SubscriptionState]:
        if not self.subscribed:
            return {}
        mark_delete = self.mark_delete
        beyond = joined(Span(each, each) for each in self.acknowledged if each > mark_delete)
        return {NAME: SubscriptionState(Acknowledgements(mark_delete, tuple(beyond)), self.resets)}

    async def create(self, topic: TopicName, subscription: str, properties: Mapping[str, str]) -> None:
        self.subscribed = True

    async def acknowledge(self, topic: TopicName, subscription: str, news: News, *, resets: int) -> int:
        self.calls += 1
        if resets != self.resets:
            raise Conflict("another reset came between")
        entries = {entry.position for entry in self.log if any(a <= entry.position <= b for a, b in news.spans)}
        new = entries - self.acknowledged
        self.acknowledged |= new
        return len(new)

    async def reset(self, topic: TopicName, subscription: str, upto: Position, *, before: int, resets: int) -> None:
        self.calls += 1
        if before != self.resets:
            raise Conflict("another reset came between")
        self.acknowledged = {entry.position for entry in self.log if entry.position <= upto}
        self.resets = resets

    def follow(self, topics: Collection[TopicName]) -> None: ...
    def problem(self, topic: TopicName) -> str | None:
        return None

    def take_changed(self) -> set[str]:
        return set()

    def forget(self, topic: TopicName, subscription: str) -> None: ...
    async def close(self) -> None: ...


class Copies:
    """The map of one direction, which knows every copy."""

    def __init__(self) -> None:
        self.runs = PositionRuns()
        self.to_target: Translation = Translation(self.runs.to_target, self.runs.target_of)
        self.to_source: Translation = Translation(self.runs.to_source, self.runs.source_of)

    def covers(self, lowest: object) -> bool:
        return True

    def forget(self, lowest: object) -> None: ...
    def clear(self) -> None: ...

    @property
    def last_source(self) -> Position:
        return EARLIEST if self.runs.last is None else self.runs.last.source_end


class Reverse:
    """The copies on the source of what was published on the target."""

    def __init__(self, source: Cluster, target: str) -> None:
        self._source = source
        self._target = target

    def _copies(self) -> list[CopiedEntry]:
        log = self._source.log
        return [CopiedEntry(each.position, each.source, each.origin, "") for each in log if each.origin == self._target]

    async def first_behind(self, position: Position) -> CopiedEntry | None:
        return next((copy for copy in self._copies() if copy.there > position), None)

    async def first_of_those_behind(self, position: Position) -> CopiedEntry | None:
        return next((copy for copy in self._copies() if copy.source > position), None)


class Job:
    """One direction: copies entries in order, and exchanges acknowledgements."""

    def __init__(self, source: Cluster, target: Cluster) -> None:
        self.source, self.target = source, target
        self.copies = Copies()
        self.events: list[dict[str, Any]] = []
        self._read = 0
        self.exchange = TopicExchange(
            Side(cast(Site, source), TOPIC),
            Side(cast(Site, target), TOPIC),
            cast(CopyMap, self.copies),
            cast(ReverseCopies, Reverse(source, target.cluster)),
            self.copied_upto,
            lambda event, **details: self.events.append(details),
        )

    def copied_upto(self) -> Position:
        return self.source.log[self._read - 1].position if self._read else EARLIEST

    def copy(self, count: int) -> None:
        for entry in self.source.log[self._read : self._read + count]:
            self._read += 1
            if entry.origin != self.target.cluster:
                stored = self.target.append(entry._replace(source=entry.position))
                self.copies.runs.add(Run(entry.position, stored.position, 1))

    async def run(self) -> None:
        await self.exchange.run()


class World:
    """Both clusters and both jobs."""

    def __init__(self, *, subscribed: bool = True) -> None:
        self.east, self.west = Cluster("east", 20), Cluster("west", 3, subscribed=subscribed)
        self.clusters = {"east": self.east, "west": self.west}
        self.jobs = {"east": Job(self.east, self.west), "west": Job(self.west, self.east)}

    async def settle(self) -> None:
        """Copy everything, and exchange until nothing is left to say."""
        for job in self.jobs.values():
            job.copy(1000)
        for _ in range(_ROUNDS_MAX):
            before = [len(job.events) for job in self.jobs.values()]
            for job in self.jobs.values():
                await job.run()
                assert job.exchange.standing is None or job.exchange.standing.reason is None
            if before == [len(job.events) for job in self.jobs.values()]:
                return
        raise AssertionError("the jobs do not come to rest")

    def waiting(self, cluster: str) -> set[tuple[str, Position]]:
        """Return the messages that a subscription waits for, by the cluster and position of publishing."""
        where = self.clusters[cluster]
        return {(each.origin, each.source) for each in where.log if each.position not in where.acknowledged}


SITES = st.sampled_from(["east", "west"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), SITES, st.integers(1, 4)),
        st.tuples(st.just("copy"), SITES, st.integers(1, 3)),
        st.tuples(st.just("acknowledge"), SITES, st.integers(0, 30)),
        st.tuples(st.just("exchange"), SITES, st.just(0)),
    ),
    max_size=40,
)


async def played(steps: list[tuple[str, str, int]]) -> tuple[World, set[tuple[str, Position]]]:
    """Play steps. Return the world, and the messages that were acknowledged somewhere."""
    world, acknowledged = World(), set()
    for what, where, number in steps:
        cluster, job = world.clusters[where], world.jobs[where]
        if what == "publish":
            for _ in range(number):
                cluster.append()
        elif what == "copy":
            job.copy(number)
        elif what == "exchange":
            await job.run()
        elif cluster.log:
            entry = cluster.log[number % len(cluster.log)]
            cluster.acknowledged.add(entry.position)
            acknowledged.add((entry.origin, entry.source))
    return world, acknowledged


@given(STEPS)
def test_what_is_acknowledged_anywhere_is_acknowledged_everywhere_and_nothing_else(
    steps: list[tuple[str, str, int]],
) -> None:
    async def check() -> None:
        world, acknowledged = await played(steps)
        await world.settle()
        everything = {(each.origin, each.source) for each in world.east.log}
        assert world.waiting("east") == world.waiting("west") == everything - acknowledged

    asyncio.run(check())


@given(STEPS, SITES, st.integers(0, 40))
def test_a_reset_is_carried_once_and_nothing_that_waits_again_is_passed(
    steps: list[tuple[str, str, int]], where: str, number: int
) -> None:
    async def check() -> None:
        world, _ = await played(steps)
        await world.settle()
        cluster = world.clusters[where]
        before = world.waiting(where)
        cluster.reset_to(min(number, len(cluster.log)))
        again = world.waiting(where)
        await world.settle()
        assert again <= world.waiting("east") == world.waiting("west")
        assert before & again == before - {
            (each.origin, each.source) for each in cluster.log[: min(number, len(cluster.log))]
        }
        assert world.east.resets == world.west.resets == 1
        calls = world.east.calls + world.west.calls
        await world.settle()
        assert world.east.calls + world.west.calls == calls, "nothing oscillates"

    asyncio.run(check())


async def test_a_subscription_is_created_in_front_of_everything_and_waits_for_copies() -> None:
    world = World(subscribed=False)
    job = world.jobs["east"]
    for _ in range(6):
        world.east.append()
    world.east.acknowledged = {entry.position for entry in world.east.log[:3]}
    job.copy(2)
    await job.run()
    assert world.west.subscribed
    await job.run()
    assert world.waiting("west") == set()
    standing = job.exchange.standing
    assert standing is not None
    assert (standing.state, standing.pending) == (BEHIND, 1)
    job.copy(4)
    await job.run()
    assert len(world.waiting("west")) == 3
    assert job.exchange.standing is not None
    assert job.exchange.standing.state == SYNCED
    assert [event["acknowledged"] for event in job.events] == [2, 1]


@pytest.mark.parametrize("reset", ["east", "west"])
@pytest.mark.parametrize("first", ["east", "west"])
@pytest.mark.parametrize("copied_first", [True, False])
async def test_a_reset_reaches_the_messages_of_both_clusters(reset: str, first: str, copied_first: bool) -> None:
    world = World()
    for number, cluster in enumerate(["east", "west"] if first == "east" else ["west", "east"]):
        world.clusters[cluster].append()
        if copied_first and number == 0:
            world.jobs[cluster].copy(1)
    for job in world.jobs.values():
        job.copy(2)
    for where in world.clusters.values():
        where.acknowledged = {entry.position for entry in where.log}
    world.clusters[reset].reset_to(0)
    await world.settle()
    assert len(world.waiting("east")) == len(world.waiting("west")) == 2

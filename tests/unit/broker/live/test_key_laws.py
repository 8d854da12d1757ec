"""The laws of Key_Shared, whatever its consumers do.

1. One key is never unacknowledged at two consumers at once.
2. The first deliveries of a key are in the order of the log.
3. An entry is with one consumer at a time, and nothing that was acknowledged comes again.
4. Nothing is forgotten: when all consumers take what comes, everything is acknowledged in the end.

A random walk publishes, joins, leaves, acknowledges, gives back, stops reading and restarts the broker; the laws are
looked at in the moment of each delivery. With a delivery in any order allowed, the first two do not hold.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery, KeyRange, KeySharing, SubscribeRequest
from interpulse.broker.live.dispatch import replay_reads, sticky_keys
from interpulse.broker.live.dispatch import shared as shared_module
from interpulse.model.ids import Position

STEPS = 100
KEYS = 8


class World:
    """One subscription, its consumers, and what must be true of them."""

    def __init__(self, bench: Any, seed: int, *, sticky: bool = False, ordered: bool = True) -> None:
        self.bench, self.chance = bench, random.Random(seed)
        self.sticky, self.ordered = sticky, ordered
        self.members: list[Member] = []
        self.key_of: dict[Position, str] = {}
        self.acknowledged: set[Position] = set()
        self.delivered: dict[str, list[Position]] = defaultdict(list)
        """Per key: what was delivered at least once, in that order."""
        self.joined = 0

    async def load(self) -> None:
        """Also after a restart: what is not acknowledged is delivered for the first time again."""
        self.topic = await self.bench.topic()
        self.producer, _ = await self.bench.producer(self.topic)
        self.members = []
        self.delivered.clear()

    def check_delivery(self, taker: Member, delivery: Delivery) -> None:
        position, key = delivery.position, self.key_of[delivery.position]
        assert position not in self.acknowledged
        for other in self.members:
            if other is taker:
                continue
            assert position not in other.consumer.pending
            if self.ordered:
                assert key not in {self.key_of[each] for each in other.consumer.pending}
        if position not in self.delivered[key]:
            if self.ordered:
                assert all(each < position for each in self.delivered[key])
            self.delivered[key].append(position)

    async def publish(self) -> None:
        for _ in range(self.chance.randint(1, 25)):
            key = f"k{self.chance.randrange(KEYS)}"
            count = self.chance.choice([1, 1, 1, 3])
            metadata: dict[str, Any] = {"num_messages_in_batch": count} if count > 1 else {}
            # The ordering key goes before the partition key, which says something else here.
            metadata |= {"ordering_key": key.encode(), "partition_key": str(self.chance.random())}
            self.producer.publish([1], [self.bench.entry(1, **metadata)], num_messages=count)
            self.key_of[self.topic.log.last_appended] = key

    async def enter(self) -> None:
        taken = {each.part for each in self.members}
        free = [part for part in range(4) if part not in taken]
        if free:
            self.joined += 1
            member = Member(self, free[0])
            sharing = KeySharing((_quarter(free[0]),) if self.sticky else (), not self.ordered)
            request = SubscribeRequest(self.joined, "s", self.bench.KEY_SHARED, f"c{self.joined}", key_sharing=sharing)
            member.consumer = await self.topic.subscribe(request, member)
            self.members.append(member)
            member.consumer.flow(self.chance.choice([0, 5, 100]))

    async def leave(self) -> None:
        if self.members:
            self.members.pop(self.chance.randrange(len(self.members))).consumer.close()

    async def flow(self) -> None:
        for member in self.members:
            member.consumer.flow(self.chance.randint(0, 15))

    async def acknowledge(self) -> None:
        for member in self.members:
            positions = member.some()
            self.acknowledged.update(positions)
            if self.chance.random() < 0.5:
                member.consumer.acknowledge(*positions)
                continue
            for position in positions:
                member.consumer.acknowledge(position)

    async def acknowledge_in_part(self) -> None:
        for member in self.members:
            for position in member.some():
                if member.consumer.pending[position] == 3:
                    member.consumer.acknowledge(position, ack_set=[0b101])

    async def give_back(self) -> None:
        for member in self.members:
            member.consumer.redeliver(member.some() or [Position(0, 0)])

    async def give_everything_back(self) -> None:
        if self.members:
            self.chance.choice(self.members).consumer.redeliver()

    async def stop_or_go_on_reading(self) -> None:
        if self.members:
            member = self.chance.choice(self.members)
            member.writable = not member.writable
            if member.writable:
                member.consumer.resume()

    async def restart(self) -> None:
        if self.chance.random() < 0.3:
            await self.bench.restart()
            await self.load()

    async def step(self) -> None:
        often = [self.publish, self.flow, self.acknowledge] * 3
        seldom = [self.enter, self.leave, self.give_back, self.give_everything_back, self.restart]
        await self.chance.choice([*often, *seldom, self.enter, self.acknowledge_in_part, self.stop_or_go_on_reading])()
        await self.bench.settle()

    async def finish(self) -> None:
        while len(self.members) < 4:
            await self.enter()
        for _ in range(60):
            for member in self.members:
                member.writable = True
                member.consumer.flow(100)
                for position in list(member.consumer.pending):
                    member.consumer.acknowledge(position)
                    self.acknowledged.add(position)
            await self.bench.settle()
        assert self.acknowledged == set(self.key_of)
        stats = self.topic.stats()["subscriptions"]["s"]
        assert (stats["msgBacklog"], stats["msgInReplay"], stats["drainingHashesCount"]) == (0, 0, 0)


class Member:
    """One consumer and its sink."""

    consumer: Any = None
    writable = True

    def __init__(self, world: World, part: int) -> None:
        self.world, self.part = world, part

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        assert self.writable
        for delivery in batch:
            self.world.check_delivery(self, delivery)

    def some(self) -> list[Position]:
        pending = sorted(self.consumer.pending)
        return self.world.chance.sample(pending, len(pending) // 2)

    def consumer_closed(self, consumer_id: int) -> None: ...

    def active_changed(self, consumer_id: int, active: bool) -> None: ...

    def end_of_topic(self, consumer_id: int) -> None: ...

    async def is_alive(self) -> bool:
        return True


def _quarter(part: int) -> KeyRange:
    return KeyRange(part * 16384, part * 16384 + 16383)


async def walk(world: World) -> None:
    await world.load()
    await world.topic.create_subscription("s")
    for _ in range(STEPS):
        await world.step()
    await world.finish()


@pytest.mark.parametrize("seed", range(6))
async def test_laws_hold_when_consumers_share_all_keys(bench: Any, seed: int) -> None:
    await walk(World(bench, seed))


@pytest.mark.parametrize("seed", range(2))
async def test_laws_hold_when_consumers_have_ranges_of_their_own(bench: Any, seed: int) -> None:
    await walk(World(bench, 100 + seed, sticky=True))


@pytest.mark.parametrize("seed", range(2))
async def test_nothing_is_lost_when_any_order_is_allowed(bench: Any, seed: int) -> None:
    await walk(World(bench, 200 + seed, ordered=False))


@pytest.mark.parametrize("seed", range(2))
async def test_laws_hold_when_little_is_kept(bench: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "REPLAYS_MAX", 10)
    monkeypatch.setattr(shared_module, "READ_ENTRIES_MAX", 4)
    monkeypatch.setattr(replay_reads, "READ_BYTES_MAX", 200)
    monkeypatch.setattr(replay_reads, "KEPT_BYTES_MAX", 300)
    monkeypatch.setattr(sticky_keys, "PAGES_MAX", 0)
    bench.read_bytes_max = 100
    await bench.restart()
    await walk(World(bench, 300 + seed))

"""Who gets which key, which keys wait, and what statistics say of it."""

from __future__ import annotations

import random
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery, KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.dispatch import entry_feed, sticky_keys
from interpulse.broker.live.dispatch import shared as shared_module
from interpulse.broker.live.dispatch.key_selector import KeySelector
from interpulse.model.ids import Position

MAKE = Callable[..., bytes]


class KeyConsumer:
    def __init__(self, name: str, *ranges: tuple[int, int], permits: int = 100) -> None:
        self.name, self.permits = name, permits
        self.pending: dict[Position, int] = {}
        sharing = KeySharing(tuple(KeyRange(*each) for each in ranges))
        self.request = SubscribeRequest(1, "s", SubType.KEY_SHARED, name, key_sharing=sharing)


def key_consumer(name: str, *arguments: Any, **options: Any) -> Any:
    return KeyConsumer(name, *arguments, **options)


@pytest.fixture
def entry(make_entry: MAKE) -> Callable[[int, str], Delivery]:
    return lambda number, key: Delivery(Position(1, number), make_entry(number, partition_key=key))


def sent(result: Any) -> Any:
    """The consumers hold what they got."""
    for consumer, part in result.assignments:
        consumer.pending.update((each.position, each.message_count) for each in part)
    return result


def selected(result: Any) -> dict[str, list[int]]:
    sent(result)
    return {consumer.name: [each.position.entry for each in part] for consumer, part in result.assignments}


def joined(*consumers: Any, ordered: bool = True) -> KeySelector:
    selector = KeySelector(ordered=ordered)
    for consumer in consumers:
        selector.joined(consumer)
    return selector


# The slot of "key1" is 293, that of "key2" 14772.


def test_new_entries_wait_behind_those_that_wait_for_their_consumer_already(entry: Any) -> None:
    consumer = key_consumer("a", permits=1)
    selector = joined(consumer)
    first = selector.select([entry(0, "key1"), entry(1, "key1"), entry(2, "key2")], [consumer])
    assert (selected(first), [each.position.entry for each in first.held]) == ({"a": [0]}, [1, 2])
    consumer.permits = 5
    assert selected(selector.select([entry(3, "key1"), entry(4, "other")], [consumer])) == {}
    assert selector.next_replays([consumer], 10) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    waiting = [entry(1, "key1"), entry(2, "key2"), entry(3, "key1"), entry(4, "other")]
    assert (selected(selector.select_replays(waiting, [consumer])), selector.waiting) == ({"a": [1, 2, 3, 4]}, 0)
    assert selected(selector.select([entry(5, "key1")], [consumer])) == {"a": [5]}


def test_key_drains_before_its_new_owner_gets_it_and_statistics_tell(entry: Any) -> None:
    low, high = key_consumer("low", (0, 299)), key_consumer("high", (300, 65535))
    selector = joined(low, high)
    sent(selector.select([entry(0, "key1"), entry(1, "key1"), entry(2, "key2")], [low, high]))
    selector.left(low)
    heir = key_consumer("heir", (0, 299))
    selector.joined(heir)
    assert selected(selector.select([entry(3, "key1"), entry(4, "key2")], [heir, high])) == {"high": [4]}
    assert selector.stats()["drainingHashesCount"] == 1
    assert selector.stats()["drainingHashesUnackedMessages"] == 2
    assert selector.next_replays([heir, high], 10) == []
    assert not selector.acknowledged(Position(1, 0), held=True)
    assert selector.acknowledged(Position(1, 1), held=True)
    assert selector.next_replays([heir, high], 10) == [(1, 3)]
    assert selected(selector.select_replays([entry(3, "key1")], [heir, high])) == {"heir": [3]}


def test_draining_is_shown_of_the_consumer_that_holds_the_key(entry: Any) -> None:
    consumers = [key_consumer(name) for name in "abcdefgh"]
    selector = joined(consumers[0])
    sent(selector.select([entry(0, "key1")], consumers[:1]))
    for other in consumers[1:]:
        selector.joined(other)
    sent(selector.select([entry(1, "key1")], consumers))
    shown = selector.consumer_stats(consumers[0])
    assert shown["drainingHashes"] == [{"hash": 293, "unackMsgs": 1, "blockedAttempts": 1}]
    assert (shown["drainingHashesCount"], shown["drainingHashesUnackedMessages"]) == (1, 1)
    selector.acknowledged(Position(1, 0), held=True)
    after = selector.consumer_stats(consumers[0])
    assert (after["drainingHashes"], after["drainingHashesClearedTotal"]) == ([], 1)
    assert selector.stats()["drainingHashesClearedTotal"] == 1


def test_ranges_of_all_consumers_cover_every_slot_once() -> None:
    consumers = [key_consumer(name) for name in ("a", "b", "c")]
    selector = joined(*consumers)
    ranges = sorted(each for one in consumers for each in selector.consumer_stats(one)["keyHashRangeArrays"])
    assert ranges[0][0] == 1
    assert ranges[-1][1] == 65535
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))


def test_ranges_of_a_sticky_consumer_are_those_it_asked_for() -> None:
    consumer = key_consumer("a", (0, 99), (200, 299))
    selector = joined(consumer)
    assert selector.consumer_stats(consumer)["keyHashRangeArrays"] == [[0, 99], [200, 299]]
    assert selector.stats()["keySharedMode"] == "STICKY"


def test_any_order_allowed_then_a_key_goes_to_its_new_owner_at_once(entry: Any) -> None:
    low = key_consumer("low", (0, 299))
    selector = joined(low, ordered=False)
    sent(selector.select([entry(0, "key1")], [low]))
    selector.left(low)
    heir = key_consumer("heir", (0, 299))
    selector.joined(heir)
    assert selected(selector.select([entry(1, "key1")], [heir])) == {"heir": [1]}
    assert selector.stats()["allowOutOfOrderDelivery"] is True


def test_replays_that_were_not_read_find_their_consumer(entry: Any) -> None:
    low, high = key_consumer("low", (0, 299)), key_consumer("high", (300, 65535), permits=0)
    selector = joined(low, high)
    selector.await_turn([Position(1, 5), Position(1, 4)])
    assert selector.next_replays([low], 10) == [(1, 4), (1, 5)]
    result = selector.select_replays([entry(4, "key2"), entry(5, "key1")], [low])
    assert (selected(result), [each.position.entry for each in result.held]) == ({"low": [5]}, [4])
    assert selector.waiting == 1
    assert selector.next_replays([low], 10) == []
    high.permits = 1
    assert selector.next_replays([low, high], 10) == [(1, 4)]


def test_replays_that_were_skipped_are_forgotten(entry: Any) -> None:
    consumer = key_consumer("a", permits=0)
    selector = joined(consumer)
    sent(selector.select([entry(0, "key1"), entry(1, "key2"), entry(2, "key1")], []))
    selector.await_turn([Position(0, 9)])
    selector.forget_upto(Position(1, 1))
    assert selector.waiting == 1
    consumer.permits = 10
    assert selector.next_replays([consumer], 10) == [(1, 2)]


def test_replays_that_are_acknowledged_while_they_wait_then_new_ones_of_their_consumer_wait_no_more(entry: Any) -> None:
    consumer = key_consumer("a", permits=0)
    selector = joined(consumer)
    sent(selector.select([*(entry(number, "key1") for number in range(3)), entry(3, "key2")], []))
    consumer.permits = 10
    for number, left in ((1, 3), (0, 2), (2, 1)):
        assert not selector.acknowledged(Position(1, number), held=False)
        assert selector.waiting == left
    assert selected(selector.select([entry(4, "key1"), entry(5, "key2")], [consumer])) == {}
    assert selector.next_replays([consumer], 10) == [(1, 3), (1, 4), (1, 5)]
    for number in (3, 4, 5):
        assert not selector.acknowledged(Position(1, number), held=False)
    assert selected(selector.select([entry(6, "key1"), entry(7, "key2")], [consumer])) == {"a": [6, 7]}


def test_consumer_that_left_is_not_kept_by_what_it_gave_back(entry: Any) -> None:
    consumer = key_consumer("a")
    selector = joined(consumer)
    sent(selector.select([entry(0, "key1"), entry(1, "key2")], [consumer]))
    selector.left(consumer)
    selector.give_back([Position(1, 0), Position(1, 1)])
    left = weakref.ref(consumer)
    del consumer
    assert (left(), selector.waiting) == (None, 2)


def halves(*, permits: int = 100) -> tuple[Any, Any]:
    """Consumers of the slots of "key1" and of "key2"."""
    return key_consumer("low", (0, 299), permits=permits), key_consumer("high", (300, 65535), permits=permits)


def at(*numbers: int) -> list[Position]:
    return [Position(1, number) for number in numbers]


def test_new_selector_when_asked_then_nothing_waits() -> None:
    assert joined().waiting == 0


def test_next_replays_are_those_of_every_ready_consumer_as_far_as_its_permits_go(entry: Any) -> None:
    low, high = halves()
    selector = joined(low, high)
    sent(selector.select([entry(0, "key1"), entry(1, "key2"), entry(2, "key1"), entry(3, "key2")], []))
    selector.await_turn(at(4))
    low.permits = high.permits = 1
    assert selector.next_replays([low, high], 10) == at(0, 1, 4)
    assert selector.next_replays([low, high], 2) == at(0, 1)
    assert selector.next_replays([high], 10) == at(1, 4)


def test_replay_that_was_not_read_when_acknowledged_then_it_waits_no_more() -> None:
    consumer = key_consumer("a")
    selector = joined(consumer)
    selector.await_turn(at(4, 5))
    assert selector.acknowledged(Position(1, 4), held=False) is False
    assert (selector.waiting, selector.next_replays([consumer], 10)) == (1, at(5))


def test_as_many_entries_are_read_as_the_ready_consumers_have_a_share_in() -> None:
    a, b, c = (key_consumer(name, permits=permits) for name, permits in (("a", 10), ("b", 5), ("c", 0)))
    selector = joined(a, b, c)
    assert selector.entries_wanted([a]) == 30
    assert selector.entries_wanted([a, b]) == 22
    selector.left(c)
    assert selector.entries_wanted([a, b]) == 15


def test_however_many_entries_were_seen_then_the_slots_of_those_held_and_waiting_are_known(
    entry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sticky_keys, "PAGES_MAX", 0)
    low, high = halves()
    selector = joined(low, high)
    sent(selector.select([entry(0, "key1")], [low]))
    sent(selector.select([entry(1000, "key2")], [low]))
    for number in range(2000, 9000, 1000):
        sent(selector.select([entry(number, "key1")], [low]))
        del low.pending[Position(1, number)]
        assert not selector.acknowledged(Position(1, number), held=True)
    selector.left(low)
    assert selector.stats()["drainingHashesUnackedMessages"] == 1
    selector.give_back(at(0))
    selector.joined(low)
    assert selector.next_replays([low, high], 10) == at(0, 1000)
    assert selector.next_replays([high], 10) == at(1000)


@pytest.fixture
def draining(entry: Any) -> Any:
    """The slots of "key1" and "key3" drain: their holder has one entry of each, and another consumer came."""
    holder, heir = key_consumer("holder", (0, 65535)), key_consumer("heir", (0, 65535))
    selector = joined(holder)
    sent(selector.select([entry(0, "key1"), entry(1, "key3")], [holder]))
    selector.left(holder)
    selector.joined(heir)
    return selector, holder, heir


def test_replays_that_were_not_read_wait_while_their_keys_drain(entry: Any, draining: Any) -> None:
    selector, _, heir = draining
    selector.await_turn(at(2, 3))
    result = selector.select_replays([entry(2, "key1"), entry(3, "key2")], [heir])
    assert (selected(result), [each.position.entry for each in result.held]) == ({"heir": [3]}, [2])
    assert (selector.waiting, selector.next_replays([heir], 10)) == (1, [])
    assert selector.acknowledged(Position(1, 0), held=True) is True
    assert selector.next_replays([heir], 10) == at(2)


def test_entry_that_waits_for_its_key_to_drain_when_acknowledged_then_it_waits_no_more(
    entry: Any, draining: Any
) -> None:
    selector, _, heir = draining
    sent(selector.select([entry(2, "key1")], [heir]))
    assert selector.waiting == 1
    selector.acknowledged(Position(1, 2), held=False)
    assert selector.waiting == 0
    assert selector.acknowledged(Position(1, 0), held=True) is False
    assert selector.next_replays([heir], 10) == []


def test_keys_that_drain_together_then_one_that_waits_is_enough_to_go_on(entry: Any, draining: Any) -> None:
    selector, _, heir = draining
    sent(selector.select([entry(2, "key1")], [heir]))
    assert selector.acknowledged_all(at(0, 1)) is True
    assert selector.next_replays([heir], 10) == at(2)


def test_statistics_of_draining_keys_count_attempts_over_every_change(entry: Any) -> None:
    holder, others = key_consumer("h"), [key_consumer(name) for name in "abcdefgh"]
    selector = joined(holder)
    # The slots of "key1" and "key3" are 293 and 60248; both go to other consumers.
    sent(selector.select([entry(0, "key3"), entry(1, "key1")], [holder]))
    for other in others:
        selector.joined(other)
    everyone = [holder, *others]
    sent(selector.select([entry(2, "key1")], everyone))
    selector.acknowledged(Position(1, 2), held=False)
    sent(selector.select([entry(3, "key1"), entry(4, "key1")], everyone))
    selector.joined(key_consumer("late"))
    shown = selector.consumer_stats(holder)
    assert [(each["hash"], each["blockedAttempts"]) for each in shown["drainingHashes"]] == [(293, 2), (60248, 0)]
    selector.acknowledged_all(at(0, 1))
    assert selector.consumer_stats(holder)["drainingHashesClearedTotal"] == 2
    selector.left(holder)
    assert selector.stats()["drainingHashesClearedTotal"] == 0


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
    monkeypatch.setattr(entry_feed, "READ_BYTES_MAX", 200)
    monkeypatch.setattr(entry_feed, "KEPT_BYTES_MAX", 300)
    monkeypatch.setattr(sticky_keys, "PAGES_MAX", 0)
    bench.read_bytes_max = 100
    await bench.restart()
    await walk(World(bench, 300 + seed))

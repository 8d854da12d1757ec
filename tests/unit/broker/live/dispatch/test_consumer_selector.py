"""Which consumer of a Shared or Key_Shared subscription gets what."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery, KeyRange, KeySharing
from interpulse.broker.live.dispatch import consumer_selector
from interpulse.broker.live.dispatch.consumer_selector import Replays, RoundRobinSelector
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.model.errors import ConsumerAssignError, ConsumerBusy
from interpulse.model.ids import LATEST, Position


def positions(*entries: int) -> list[Position]:
    return [Position(1, entry) for entry in entries]


def test_whatever_is_done_then_it_is_a_sorted_set() -> None:
    chance = random.Random(1)
    replays, expected = Replays(), set[Position]()
    for _ in range(2_000):
        [position] = positions(chance.randrange(40))
        match chance.randrange(6):
            case 0 | 1:
                replays.add(position)
                expected.add(position)
            case 2:
                assert replays.discard(position) == (position in expected)
                expected.discard(position)
            case 3:
                first = chance.choice([40, position.entry])
                new = [each for each in positions(*range(first, 44, 2)) if each not in expected]
                replays.add_all(new)
                expected.update(new)
            case 4:
                gone = positions(*sorted(chance.sample(range(44), chance.randrange(6))))
                replays.discard_all(gone)
                expected -= set(gone)
            case 5:
                start = chance.randrange(len(expected) + 1)
                gone = sorted(expected)[start : start + 3]
                replays.discard_all(gone)
                expected -= set(gone)
        assert list(replays) == sorted(expected)
        assert len(replays) == len(expected)
        assert (position in replays) == (position in expected)


def test_first_ones_stay_and_popped_ones_go() -> None:
    replays = Replays(positions(3, 1, 2))
    assert replays.first(2) == positions(1, 2)
    assert replays.pop_upto(Position(1, 2)) == positions(1, 2)
    assert list(replays) == positions(3)


async def test_chunks_of_one_message_go_to_one_consumer(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    _, a = await join(topic, "a", 20)
    _, b = await join(topic, "b", 20)
    producer, _ = await bench.producer(topic)
    for number in range(24):
        uuid, chunk = f"u{number % 2}", number // 2 % 4
        entry = bench.entry(number, uuid=uuid, num_chunks_from_msg=4, chunk_id=chunk)
        producer.publish([number], [entry], is_chunk=True)
        await bench.settle()
    first, second = a.numbers(), b.numbers()
    assert sorted(first + second) == list(range(24))
    assert first
    assert second
    for message in ([group * 8 + parity + 2 * step for step in range(4)] for group in range(3) for parity in (0, 1)):
        assert set(message) <= set(first) or set(message) <= set(second)


async def test_chunks_wait_for_the_consumer_that_has_the_first_ones_and_others_go_on(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumers = {name: await join(topic, name, 100) for name in "ab"}
    producer, _ = await bench.producer(topic)

    async def publish(number: int, chunk: int) -> None:
        producer.publish(
            [number], [bench.entry(number, uuid="u", num_chunks_from_msg=4, chunk_id=chunk)], is_chunk=True
        )
        await bench.settle()

    await publish(0, 0)
    owner, other = sorted(consumers.values(), key=lambda each: not each[1].deliveries)
    owner[1].writable = False
    await publish(1, 1)
    await bench.publish(topic, 9)
    await publish(2, 2)
    assert (owner[1].numbers(), other[1].numbers()) == ([0], [9])
    assert topic.stats()["subscriptions"]["s"]["msgInReplay"] == 2
    owner[1].writable = True
    owner[0].resume()
    await publish(3, 3)
    assert (owner[1].numbers(), other[1].numbers()) == ([1, 2, 3], [])


async def test_chunks_that_wait_for_a_consumer_go_to_another_when_it_leaves(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await join(topic, "a", 100)
    producer, _ = await bench.producer(topic)
    for number in range(3):
        sink.writable = number == 0
        producer.publish(
            [number], [bench.entry(number, uuid="u", num_chunks_from_msg=3, chunk_id=number)], is_chunk=True
        )
        await bench.settle()
    _, heir = await join(topic, "b", 100)
    assert heir.numbers() == []
    consumer.close()
    assert heir.numbers() == [0, 1, 2]


class TestKeyShared:
    async def publish(self, bench: Any, topic: Any, *keys: str) -> None:
        producer, _ = await bench.producer(topic, producer_id=77, name=f"producer-{topic.entries_added}")
        for key in keys:
            number = topic.entries_added
            producer.publish([number], [bench.entry(number, partition_key=key)])
        await bench.settle()
        producer.close()

    async def test_each_key_goes_to_one_consumer_in_order(self, bench: Any, join: Any) -> None:
        topic = await bench.topic()
        sinks = [(await join(topic, name, sub_type=bench.KEY_SHARED))[1] for name in "ab"]
        keys = [f"key-{number % 10}" for number in range(100)]
        await self.publish(bench, topic, *keys)
        got = [sink.numbers() for sink in sinks]
        assert all(got)
        assert sorted(got[0] + got[1]) == list(range(100))
        assert not {keys[number] for number in got[0]} & {keys[number] for number in got[1]}
        assert all(numbers == sorted(numbers) for numbers in got)

    async def test_key_with_unacknowledged_entries_stays_when_a_consumer_joins(self, bench: Any, join: Any) -> None:
        topic = await bench.topic()
        keys = [f"key-{number}" for number in range(40)]
        first, old = await join(topic, "a", sub_type=bench.KEY_SHARED)
        await self.publish(bench, topic, *keys)
        held = old.take()
        second, new = await join(topic, "b", sub_type=bench.KEY_SHARED)
        await self.publish(bench, topic, *keys)
        assert new.numbers() == []
        kept = [number - 40 for number in old.numbers()]
        assert 0 < len(kept) < 40
        for delivery in held:
            first.acknowledge(delivery.position)
        assert sorted([*kept, *(number - 40 for number in new.numbers())]) == list(range(40))
        second.close()

    async def test_sticky_ranges(self, bench: Any, join: Any) -> None:
        topic = await bench.topic()
        sharing = [KeySharing((KeyRange(0, 299),)), KeySharing((KeyRange(300, 65535),))]
        _, low = await join(topic, "a", sub_type=bench.KEY_SHARED, key_sharing=sharing[0])
        with pytest.raises(ConsumerAssignError):
            await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing[0])
        _, high = await join(topic, "c", sub_type=bench.KEY_SHARED, key_sharing=sharing[1])
        await self.publish(bench, topic, "key1", "key2", "key1")  # slots 293 and 14772
        assert (low.numbers(), high.numbers()) == ([0, 2], [1])

    @pytest.mark.parametrize("alive", [True, False])
    async def test_range_of_a_consumer_whose_client_is_gone_is_free(self, bench: Any, join: Any, alive: bool) -> None:
        topic = await bench.topic()
        sharing = KeySharing((KeyRange(0, 299),))
        _, sink = await join(topic, "a", sub_type=bench.KEY_SHARED, key_sharing=sharing)
        sink.alive = alive
        if alive:
            with pytest.raises(ConsumerAssignError, match="Range conflict with consumer a"):
                await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing)
        else:
            await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing)

    async def test_keys_without_a_consumer_wait(self, bench: Any, join: Any) -> None:
        topic = await bench.topic()
        sharing = KeySharing((KeyRange(0, 299),))
        _, low = await join(topic, "a", sub_type=bench.KEY_SHARED, key_sharing=sharing)
        await self.publish(bench, topic, "key2", "key1")
        assert low.numbers() == [1]
        others = KeySharing((KeyRange(300, 65535),))
        _, rest = await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=others)
        assert rest.numbers() == [0]

    @pytest.mark.parametrize(
        ("sharing", "words"),
        [
            (KeySharing(), "key_shared mode of 'STICKY' is different than .* key_shared mode 'AUTO_SPLIT'"),
            (KeySharing((KeyRange(300, 400),), True), "does not allow out of order delivery while"),
        ],
    )
    async def test_consumer_with_another_policy_is_refused_while_others_are_connected(
        self, bench: Any, join: Any, sharing: KeySharing, words: str
    ) -> None:
        topic = await bench.topic()
        first = KeySharing((KeyRange(0, 299),))
        low, _ = await join(topic, "a", sub_type=bench.KEY_SHARED, key_sharing=first)
        with pytest.raises(ConsumerBusy, match=words):
            await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing)
        low.close()
        await join(topic, "b", sub_type=bench.KEY_SHARED, key_sharing=sharing)


CHUNK = Callable[..., Delivery]


class RoundRobinConsumer:
    def __init__(self, name: str, permits: int = 100) -> None:
        self.name, self.permits, self.priority_level = name, permits, 0


def round_robin_consumer(name: str, *arguments: Any, **options: Any) -> Any:
    return RoundRobinConsumer(name, *arguments, **options)


@pytest.fixture
def selector() -> Any:
    cache = EntryMetadataCache(LATEST)
    return RoundRobinSelector(lambda: cache)


@pytest.fixture
def chunk(make_entry: Callable[..., bytes]) -> CHUNK:
    def chunk(number: int, uuid: str, chunk_id: int, of: int = 9) -> Delivery:
        return Delivery(Position(1, number), make_entry(number, uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=of))

    return chunk


@pytest.fixture
def plain(make_entry: Callable[..., bytes]) -> Callable[[int], Delivery]:
    return lambda number: Delivery(Position(1, number), make_entry(number))


def numbers(result: Any) -> tuple[dict[str, list[int]], list[int]]:
    parts = {consumer.name: [each.position.entry for each in part] for consumer, part in result.assignments}
    return parts, [each.position.entry for each in result.held]


def test_as_many_entries_are_read_as_consumers_have_permits_for(selector: RoundRobinSelector) -> None:
    assert selector.entries_wanted([round_robin_consumer("a", 3), round_robin_consumer("b", 4)]) == 7


def waiting(selector: RoundRobinSelector, *consumers: Any, entries_max: int = 10) -> list[int]:
    return [each.entry for each in selector.next_replays(consumers, entries_max)]


def test_chunks_when_their_owner_lacks_permits_then_they_wait_for_it_and_others_go_on(
    selector: Any, chunk: CHUNK, plain: Any
) -> None:
    a, b = round_robin_consumer("a", 2), round_robin_consumer("b", 3)
    batch = [chunk(0, "u", 0), chunk(1, "v", 0), *(chunk(2 + each, "u", 1 + each) for each in range(3)), plain(5)]
    parts, held = numbers(selector.select(batch, [a, b]))
    assert (parts, held) == ({"a": [0, 2], "b": [1, 5]}, [3, 4])
    assert selector.waiting == 2
    assert waiting(selector, b) == []
    assert waiting(selector, a, b) == [3, 4]
    a.permits = 1
    assert waiting(selector, a) == [3]
    a.permits = 5
    assert waiting(selector, a, entries_max=1) == [3]
    assert numbers(selector.select_replays([chunk(3, "u", 2), chunk(4, "u", 3)], [a, b])) == ({"a": [3, 4]}, [])
    assert selector.waiting == 0


def test_chunks_when_an_earlier_one_of_their_message_waits_then_they_wait_behind_it(
    selector: Any, chunk: CHUNK
) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    a.permits = 5
    assert numbers(selector.select([chunk(2, "u", 2), chunk(3, "v", 0)], [a, b])) == ({"b": [3]}, [2])
    assert waiting(selector, a) == [1, 2]


@pytest.mark.parametrize("gone", ["acknowledged", "forgotten"])
def test_chunk_that_waited_and_is_not_needed_any_more_then_later_ones_do_not_wait_for_it(
    selector: Any, chunk: CHUNK, gone: str
) -> None:
    a = round_robin_consumer("a", 1)
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1), chunk(2, "u", 2)], [a])
    for number in (1, 2):
        if gone == "acknowledged":
            assert not selector.acknowledged(Position(1, number), held=False)
        else:
            selector.forget_upto(Position(1, number))
        assert selector.waiting == 2 - number
    a.permits = 5
    assert numbers(selector.select([chunk(3, "u", 3)], [a])) == ({"a": [3]}, [])


def test_chunk_that_is_with_a_consumer_when_acknowledged_then_replays_stay(selector: Any, chunk: CHUNK) -> None:
    a = round_robin_consumer("a", 1)
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.acknowledged(Position(1, 1), held=True)
    assert waiting(selector, a) == [1]


def test_message_when_its_last_chunk_is_sent_then_its_consumer_is_forgotten(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    assert numbers(selector.select([chunk(0, "u", 0, 2), chunk(1, "u", 1, 2)], [a])) == ({"a": [0, 1]}, [])
    assert numbers(selector.select([chunk(2, "u", 0, 2)], [b])) == ({"b": [2]}, []), "the producer sends it again"


def test_messages_that_never_end_when_they_are_too_many_then_the_oldest_is_forgotten(
    selector: Any, chunk: CHUNK, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_selector, "_UNFINISHED_CHUNKS_MAX", 2)
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "v", 0)], [a])
    assert numbers(selector.select([chunk(2, "u", 1)], [b])) == ({}, [2]), "two are remembered"
    selector.acknowledged(Position(1, 2), held=False)
    selector.select([chunk(3, "w", 0)], [a])
    assert numbers(selector.select([chunk(4, "u", 1), chunk(5, "w", 1)], [b])) == ({"b": [4]}, [5])


def test_entries_behind_the_last_permit_are_left_for_the_next_time(selector: Any, chunk: CHUNK, plain: Any) -> None:
    a = round_robin_consumer("a", 1)
    selected = selector.select([chunk(0, "u", 0), plain(1), plain(2)], [a])
    assert (numbers(selected), selected.entry_count) == (({"a": [0]}, []), 1)


def test_consumer_that_left_then_its_chunks_go_to_another(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.left(a)
    selector.give_back([Position(1, 0)])
    assert waiting(selector, b) == [0, 1]
    assert numbers(selector.select_replays([chunk(0, "u", 0), chunk(1, "u", 1)], [b])) == ({"b": [0, 1]}, [])
    assert numbers(selector.select([chunk(2, "u", 2)], [a, b])) == ({"b": [2]}, [])


def test_reset_when_done_then_nothing_waits_and_no_chunk_has_an_owner(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [a])
    selector.reset()
    assert selector.waiting == 0
    assert numbers(selector.select([chunk(0, "u", 0), chunk(1, "u", 1)], [b])) == ({"b": [0, 1]}, [])


def test_last_chunk_when_it_alone_is_sent_again_then_any_consumer_gets_it(selector: Any, chunk: CHUNK) -> None:
    a, b = round_robin_consumer("a"), round_robin_consumer("b")
    selector.select([chunk(0, "u", 0, 2), chunk(1, "u", 1, 2)], [a])
    selector.give_back([Position(1, 1)])
    assert numbers(selector.select_replays([chunk(1, "u", 1, 2)], [b])) == ({"b": [1]}, [])


def test_replays_go_to_consumers_in_turn_as_far_as_permits_go(selector: Any, plain: Any) -> None:
    a, b = round_robin_consumer("a", 1), round_robin_consumer("b", 1)
    selector.give_back([Position(1, number) for number in range(5)])
    assert waiting(selector, a, b) == [0, 1]
    assert numbers(selector.select_replays([plain(0)], [a, b])) == ({"a": [0]}, [])
    assert numbers(selector.select_replays([plain(1)], [a, b])) == ({"b": [1]}, [])
    assert waiting(selector, a) == [2]

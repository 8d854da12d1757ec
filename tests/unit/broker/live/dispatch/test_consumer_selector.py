"""Which consumer of a Shared or Key_Shared subscription gets what."""

from __future__ import annotations

import random
from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing
from interpulse.broker.live.dispatch.consumer_selector import Replays
from interpulse.model.errors import ConsumerAssignError, ConsumerBusy
from interpulse.model.ids import Position


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

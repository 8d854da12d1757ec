"""Deliveries keep to the dispatch rates of topic and subscription; time passes only as far as a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery, SubType, TopicSettings
from interpulse.broker.live.dispatch.dispatch_limits import ENTRIES_MAX, DispatchLimit, RateLimit, TokenBucket
from interpulse.model.ids import Position
from interpulse.model.policies.policy_records import DispatchRate

NOW = 1_000


@pytest.mark.parametrize(
    ("rate", "period", "spent", "passed_ms", "available", "wait_ms"),
    [
        pytest.param(10, 1, 0, 0, 10, 0, id="full at first"),
        pytest.param(10, 1, 9, 0, 1, 0, id="one below the limit"),
        pytest.param(10, 1, 10, 0, 0, 100, id="at the limit"),
        pytest.param(10, 1, 11, 0, -1, 200, id="one beyond"),
        pytest.param(10, 1, 10, 99, 0, 1, id="a moment before the next token"),
        pytest.param(10, 1, 10, 100, 1, 0, id="the next token"),
        pytest.param(10, 1, 30, 1000, -10, 1100, id="debts are waited off"),
        pytest.param(10, 1, 5, 60_000, 10, 0, id="no more than one period's worth"),
        pytest.param(3, 1, 3, 333, 0, 1, id="a third of a second is not quite enough"),
        pytest.param(3, 1, 3, 334, 1, 0, id="but this is"),
        pytest.param(10, 60, 10, 6_000, 1, 0, id="a long period"),
        pytest.param(2_000, 1, 2_000, 1, 2, 0, id="several tokens per millisecond"),
    ],
)
def test_bucket(rate: int, period: int, spent: int, passed_ms: int, available: int, wait_ms: int) -> None:
    bucket = TokenBucket(rate, period, NOW)
    bucket.spend(spent, NOW)
    assert (bucket.available(NOW + passed_ms), bucket.wait_ms(NOW + passed_ms)) == (available, wait_ms)


def test_bucket_when_the_clock_is_set_back_gives_nothing_away_and_goes_on() -> None:
    bucket = TokenBucket(10, 1, NOW)
    bucket.spend(10, NOW)
    assert bucket.available(NOW - 500) == 0
    assert bucket.available(NOW - 400) == 1


def test_bucket_never_loses_a_part_of_a_token() -> None:
    bucket = TokenBucket(3, 1, NOW)
    bucket.spend(3, NOW)
    taken = 0
    for millisecond in range(1, 10_001):
        while bucket.available(NOW + millisecond) > 0:
            bucket.spend(1, NOW + millisecond)
            taken += 1
    assert taken == 30


def test_bucket_with_another_rate_keeps_what_is_there_within_the_new_bound() -> None:
    bucket = TokenBucket(10, 1, NOW)
    bucket.set_rate(4, NOW)
    assert bucket.available(NOW) == 4
    bucket.spend(4, NOW)
    bucket.set_rate(100, NOW)
    assert bucket.available(NOW + 50) == 5


def deliveries(*sizes: tuple[int, int]) -> list[Delivery]:
    """(messages, bytes) of each."""
    return [Delivery(Position(0, n), b"x" * size, 0, (), messages) for n, (messages, size) in enumerate(sizes)]


@pytest.mark.parametrize(
    ("messages", "size", "batch", "admitted", "room"),
    [
        pytest.param(-1, -1, [(1, 1)] * 5, 5, ENTRIES_MAX, id="no limit"),
        pytest.param(0, 0, [(1, 1)] * 5, 5, ENTRIES_MAX, id="0 is no limit"),
        pytest.param(3, -1, [(1, 1)] * 5, 3, 3, id="messages"),
        pytest.param(3, -1, [(1, 1)] * 3, 3, 3, id="as many messages as there may be"),
        pytest.param(3, -1, [(2, 1)] * 5, 2, 3, id="the last entry may overdraw"),
        pytest.param(-1, 10, [(1, 4)] * 5, 3, ENTRIES_MAX, id="bytes"),
        pytest.param(100, 8, [(1, 4)] * 5, 2, 100, id="the scarcer counts"),
    ],
)
def test_limit_admits(messages: int, size: int, batch: Any, admitted: int, room: int) -> None:
    limit = RateLimit(messages, size, 1, NOW)
    assert (limit.admitted(deliveries(*batch), NOW), limit.room(NOW)) == (admitted, room)


def test_limit_waits_for_the_scarcer_of_both() -> None:
    limit = RateLimit(10, 100, 1, NOW)
    limit.spend(10, 250, NOW)
    assert limit.wait_ms(NOW) == 1510
    assert limit.short_of(NOW) == (True, True)
    assert limit.short_of(NOW + 200) == (False, True)
    assert (limit.room(NOW + 1509), limit.room(NOW + 1510)) == (0, 10)


def test_limit_with_other_rates_goes_on_counting() -> None:
    limit = RateLimit(10, 100, 1, NOW)
    limit.spend(10, 100, NOW)
    limit.set_rates(20, 200, NOW)
    assert limit.wait_ms(NOW) == 50


EVERY_TYPE = pytest.mark.parametrize("sub_type", list(SubType))


class Alarms:
    """What was to be called later, and when; `pass_ms` lets the time pass."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def call_later(self, wait_ms: int, call: Callable[[], None]) -> None:
        self.waiting.append((self._clock.time_ms + wait_ms, call))

    def pass_ms(self, ms: int) -> None:
        end = self._clock.time_ms + ms
        while due := sorted((each for each in self.waiting if each[0] <= end), key=lambda each: each[0]):
            self.waiting.remove(due[0])
            self._clock.time_ms = due[0][0]
            due[0][1]()
        self._clock.time_ms = end


@pytest.fixture
def alarms(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Alarms:
    alarms = Alarms(bench.clock)
    monkeypatch.setattr(bench.registry, "call_later", alarms.call_later)
    return alarms


@EVERY_TYPE
@pytest.mark.parametrize("field", ["dispatch_rate", "subscription_dispatch_rate"])
async def test_messages_per_second(bench: Any, join: Any, alarms: Alarms, sub_type: SubType, field: str) -> None:
    bench.settings = TopicSettings(**dict[str, Any]({field: DispatchRate(10, -1)}))
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(30))
    _, sink = await join(topic, sub_type=sub_type)
    assert sink.numbers() == list(range(10))
    assert len(alarms.waiting) == 1
    alarms.pass_ms(99)
    assert sink.numbers() == []
    alarms.pass_ms(1)
    assert sink.numbers() == [10]
    alarms.pass_ms(1000)
    assert sink.numbers() == list(range(11, 21))
    alarms.pass_ms(5000)
    assert sink.numbers() == list(range(21, 30))
    assert alarms.waiting == []


@EVERY_TYPE
async def test_what_is_published_while_consumers_wait_keeps_to_the_rate(
    bench: Any, join: Any, alarms: Alarms, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(2, -1))
    topic = await bench.topic()
    _, sink = await join(topic, sub_type=sub_type)
    for number in range(6):
        await bench.publish(topic, number)
    assert sink.numbers() == [0, 1]
    alarms.pass_ms(1000)
    assert sink.numbers() == [2, 3]
    assert len(alarms.waiting) == 1


async def test_subscriptions_share_the_rate_of_their_topic_and_have_each_their_own(bench: Any, alarms: Alarms) -> None:
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(10, -1), subscription_dispatch_rate=DispatchRate(6, -1))
    topic = await bench.topic()
    _, of_a = await bench.consumer(topic, "a")
    _, of_b = await bench.consumer(topic, "b", consumer_id=2)
    await bench.publish(topic, *range(30))
    assert (len(of_a.take()), len(of_b.take())) == (6, 4)
    alarms.pass_ms(1000)
    assert len(of_a.take()) + len(of_b.take()) == 10
    throttled = topic.stats()["subscriptions"]["b"]
    assert throttled["dispatchThrottledMsgEventsByTopicLimit"] > 0
    assert throttled["dispatchThrottledBytesEventsByTopicLimit"] == 0
    assert topic.stats()["subscriptions"]["a"]["dispatchThrottledMsgEventsBySubscriptionLimit"] > 0


@EVERY_TYPE
async def test_subscriptions_take_turns_at_the_rate_of_their_topic(
    bench: Any, alarms: Alarms, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(100, -1))
    topic = await bench.topic()
    for name in "abc":
        await topic.create_subscription(name)
    await bench.publish(topic, *range(2000))
    sinks = [(await bench.consumer(topic, name, sub_type=sub_type))[1] for name in "abc"]
    for sink in sinks:
        sink.take()
    alarms.pass_ms(6000)
    counts = [len(sink.take()) for sink in sinks]
    assert min(counts) > 180, counts
    assert 590 <= sum(counts) <= 600, counts


@EVERY_TYPE
async def test_subscription_that_wants_nothing_any_more_keeps_no_other_waiting(
    bench: Any, alarms: Alarms, sub_type: SubType
) -> None:
    bench.settings = TopicSettings(
        dispatch_rate=DispatchRate(10, -1), subscription_dispatch_rate=DispatchRate(1, -1, period_seconds=60)
    )
    topic = await bench.topic()
    for name in "abc":
        await topic.create_subscription(name)
    await bench.publish(topic, *range(30))
    await bench.consumer(topic, "a", sub_type=sub_type)
    gone, _ = await bench.consumer(topic, "b", sub_type=sub_type)
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(10, -1))
    await bench.registry.policies_changed()
    gone.close()
    _, sink = await bench.consumer(topic, "c", sub_type=sub_type)
    alarms.pass_ms(30_000)
    assert len(sink.take()) == 30


async def test_bytes_and_a_longer_period(bench: Any, join: Any, alarms: Alarms) -> None:
    size = len(bench.entry(1))
    bench.settings = TopicSettings(subscription_dispatch_rate=DispatchRate(-1, 2 * size, period_seconds=10))
    topic = await bench.topic()
    _, sink = await join(topic)
    await bench.publish(topic, 1, 1, 1, 1)
    sent = len(sink.take())
    alarms.pass_ms(10_000)
    assert (sent, len(sink.take())) == (2, 2)


async def test_batches_count_their_messages(bench: Any, join: Any, alarms: Alarms) -> None:
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(4, -1))
    topic = await bench.topic()
    _, sink = await join(topic)
    producer, _ = await bench.producer(topic)
    for number in range(4):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    assert len(sink.take()) == 2
    alarms.pass_ms(749)
    assert sink.take() == []
    alarms.pass_ms(1)
    assert len(sink.take()) == 1


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
async def test_what_is_sent_again_keeps_to_the_rate(bench: Any, join: Any, alarms: Alarms, sub_type: SubType) -> None:
    bench.settings = TopicSettings(dispatch_rate=DispatchRate(4, -1))
    topic = await bench.topic()
    consumer, sink = await join(topic, sub_type=sub_type)
    await bench.publish(topic, *range(4))
    assert sink.numbers() == [0, 1, 2, 3]
    consumer.redeliver()
    assert sink.numbers() == []
    alarms.pass_ms(500)
    assert sink.numbers() == [0, 1]


@pytest.mark.parametrize("policy", ["dispatch_rate", "subscription_dispatch_rate"])
async def test_rate_above_that_of_the_producers(bench: Any, alarms: Alarms, policy: str) -> None:
    rate: Any = {policy: DispatchRate(1, -1, relative_to_publish_rate=True)}
    bench.settings = TopicSettings(**rate)
    topic = await bench.topic()
    _, sink = await bench.consumer(topic)
    producer, _ = await bench.producer(topic)
    for number in range(50):
        producer.publish([number], [bench.entry(number)])
    await bench.settle()
    assert sink.numbers() == [0]
    topic.tick(10.0)  # 5 messages per second were published
    alarms.pass_ms(1000)
    assert len(sink.take()) == 6


def test_rate_above_that_of_the_producers_counts_messages_and_bytes_of_its_period() -> None:
    limit = DispatchLimit(DispatchRate(2, 100, period_seconds=10, relative_to_publish_rate=True), now_ms=0)
    assert limit.limit.room(0) == 2
    limit.follow(publish_messages=5.0, publish_bytes=7.0, now_ms=0)
    assert limit.limit.room(10_000) == 52
    batch = [Delivery(Position(1, number), bytes(10)) for number in range(50)]
    assert limit.limit.admitted(batch, 10_000) == 17, "100 bytes and 7 of each second, the last entry overdraws"


async def test_change_counts_at_once(bench: Any, join: Any, alarms: Alarms) -> None:
    topic = await bench.topic()
    _, sink = await join(topic)
    await topic.apply(TopicSettings(dispatch_rate=DispatchRate(1, -1)))
    await bench.publish(topic, *range(6))
    assert sink.numbers() == [0]
    await topic.apply(TopicSettings(dispatch_rate=DispatchRate(2, -1)))
    assert sink.numbers() == [1, 2]
    await topic.apply(TopicSettings())
    assert sink.numbers() == [3, 4, 5]


async def test_rate_that_stays_goes_on_counting_when_other_settings_change(
    bench: Any, join: Any, alarms: Alarms
) -> None:
    rates: dict[str, Any] = {"dispatch_rate": DispatchRate(2, -1), "subscription_dispatch_rate": DispatchRate(3, -1)}
    bench.settings = TopicSettings(**rates)
    topic = await bench.topic()
    _, sink = await join(topic)
    await bench.publish(topic, *range(6))
    assert sink.numbers() == [0, 1]
    before = topic.subscription("s").throttled
    assert before["dispatchThrottledMsgEventsByTopicLimit"] > 0
    await topic.apply(TopicSettings(max_producers=7, **rates))
    assert sink.numbers() == []
    assert topic.subscription("s").throttled["dispatchThrottledMsgEventsByTopicLimit"] > 0
    assert len(alarms.waiting) == 1


@EVERY_TYPE
async def test_replication_is_not_held_back(bench: Any, alarms: Alarms, sub_type: SubType) -> None:
    bench.settings = TopicSettings(
        dispatch_rate=DispatchRate(1, -1),
        subscription_dispatch_rate=DispatchRate(1, -1),
        max_unacked_per_subscription=1,
    )
    topic = await bench.topic()
    await topic.create_subscription("pulsar.repl.west")
    _, sink = await bench.consumer(topic, "pulsar.repl.west", sub_type=sub_type)
    for number in range(6):
        await bench.publish(topic, number)
    assert sink.numbers() == [0, 1, 2, 3, 4, 5]


async def test_topic_without_rates_has_no_gate(bench: Any, join: Any) -> None:
    topic = await bench.topic()
    await join(topic)
    assert topic.subscription("s").dispatch.gate is None
    assert topic.publishing.publish_limits is None

"""Messages that are not delivered before their time."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing, SubType, TopicSettings
from interpulse.broker.live.dispatch import delayed_entries as delayed_module
from interpulse.broker.live.dispatch import shared
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries, check_delay, deliver_at_of
from interpulse.broker.live.registry import backlog_operations
from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.ids import MessageId, Position
from interpulse.model.policies.policy_records import DelayedDelivery
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, with_broker_metadata

TICK_MS = 1000


class FakeTimer:
    """A loop whose timers go off when a test says so."""

    def __init__(self) -> None:
        self.now = 10_000
        self.seconds: list[float] = []
        self.pending: list[Callable[[], None]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> FakeTimer:
        self.seconds.append(seconds)
        self.pending = [call]
        return self

    def cancel(self) -> None:
        self.pending = []

    def fire(self, now: int) -> None:
        self.now = now
        [call] = self.pending
        self.pending = []
        call()


@pytest.fixture
def timer() -> FakeTimer:
    return FakeTimer()


def entries(timer: FakeTimer, woken: Callable[[], None] = lambda: None) -> DelayedEntries:
    return DelayedEntries(TICK_MS, lambda: timer.now, timer.call_later, woken)  # type: ignore[arg-type]


class TestDelayedEntries:
    def test_entries_are_due_at_their_time_and_not_before(self, timer: FakeTimer) -> None:
        waiting = entries(timer)
        waiting.add(Position(5, 2), 10_500)
        waiting.add(Position(5, 1), 10_501)
        assert waiting.due(10) == []
        timer.now = 10_500
        assert waiting.due(10) == [Position(5, 2)]
        timer.now = 99_999
        assert waiting.due(0) == []
        assert waiting.due(10) == [Position(5, 1)]
        assert len(waiting) == 0

    def test_owner_is_called_when_the_first_is_due_and_not_twice_in_a_tick(self, timer: FakeTimer) -> None:
        woken: list[int] = []
        waiting = entries(timer, lambda: woken.append(len(waiting.due(10))))
        for time_ms, seconds in ((12_000, [2.0]), (11_000, [2.0, 1.0]), (11_001, [2.0, 1.0]), (11_500, [2.0, 1.0])):
            waiting.add(Position(1, time_ms), time_ms)
            assert timer.seconds == seconds
        timer.fire(11_000)
        assert timer.seconds[-1] == 1.0  # the next look is a tick later, not a millisecond
        timer.fire(12_000)
        assert woken == [1, 3]
        assert timer.pending == []

    def test_owner_that_asks_too_early_is_called_at_the_same_time(self, timer: FakeTimer) -> None:
        waiting = entries(timer)
        waiting.add(Position(1, 1), 12_000)
        assert (waiting.due(10), timer.seconds, len(timer.pending)) == ([], [2.0], 1)

    def test_entry_whose_time_has_passed_is_due_at_once(self, timer: FakeTimer) -> None:
        entries(timer).add(Position(1, 1), 9_000)
        assert timer.seconds == [0.0]

    def test_far_times_are_slept_for_in_pieces(self, timer: FakeTimer) -> None:
        woken: list[int] = []
        waiting = entries(timer, lambda: woken.append(1))
        waiting.add(Position(1, 1), 10_000 + 100_000)
        timer.fire(70_000)
        assert timer.seconds == [60.0, 40.0]
        timer.fire(110_000)
        assert woken == [1]

    def test_what_an_operator_skipped_is_forgotten(self, timer: FakeTimer) -> None:
        waiting = entries(timer)
        for entry in range(4):
            waiting.add(Position(1, entry), 20_000 - entry)
        waiting.forget_upto(Position(1, 1))
        assert waiting.take_all() == [(Position(1, 3), 19_997), (Position(1, 2), 19_998)]
        assert timer.pending == []

    def test_ten_thousand_cost_less_than_a_megabyte(self, timer: FakeTimer) -> None:
        waiting = entries(timer)
        tracemalloc.start()
        for entry in range(10_000):
            waiting.add(Position(2**40, entry), 10**13 + entry * 7919 % 10_000)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size < 800_000
        assert 0.5 < waiting.memory_bytes / size < 2


class TestDeliverAt:
    @pytest.mark.parametrize("at", [1, 127, 128, 1_795_341_810_000])
    def test_time_is_read(self, make_entry: Callable[..., bytes], at: int) -> None:
        assert deliver_at_of(make_entry(1, deliver_at_time=at)) == at

    def test_time_is_read_behind_long_metadata(self, make_entry: Callable[..., bytes]) -> None:
        assert deliver_at_of(make_entry(1, partition_key="k" * 70_000, deliver_at_time=7)) == 7

    def test_other_bytes_are_not_mistaken_for_it(self, make_entry: Callable[..., bytes]) -> None:
        assert deliver_at_of(make_entry(1)) == 0
        assert deliver_at_of(make_entry(1, partition_key="\x00", ordering_key=b"\x98\x01\x07")) == 0
        assert deliver_at_of(b"\x0e\x01nonsense") == 0
        assert deliver_at_of(b"\x0e\x02nonsense") == 0

    def test_time_is_read_behind_what_the_broker_put_in_front(self, make_entry: Callable[..., bytes]) -> None:
        entry = make_entry(1, deliver_at_time=7)
        assert deliver_at_of(with_broker_metadata(pb.BrokerEntryMetadata(broker_timestamp=1), entry)) == 7

    def test_time_is_read_where_a_client_puts_it_first(self) -> None:
        metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString()
        assert deliver_at_of(build_entry(b"\x98\x01\x07" + metadata, b"")) == 7

    def test_too_long_a_delay_is_refused_by_name(self, make_entry: Callable[..., bytes]) -> None:
        check_delay(make_entry(1, publish_time=1_001, deliver_at_time=6_001), 5_000)
        check_delay(make_entry(1), 5_000)
        with pytest.raises(NotAllowed, match="Exceeds max allowed delivery delay of 5000 milliseconds"):
            check_delay(make_entry(1, publish_time=1_000, deliver_at_time=6_001), 5_000)


@pytest.fixture
async def topic(bench: Any) -> Any:
    bench.settings = TopicSettings(delayed_delivery=DelayedDelivery(tick_millis=TICK_MS))
    return await bench.topic()


async def publish_delayed(bench: Any, topic: Any, *delays: int | None, **metadata: Any) -> None:
    """One entry per delay from now, None = it asks for nothing; numbered from the first entry of the topic on."""
    producer, _ = await bench.producer(topic, f"p{topic.entries_added}", producer_id=77)
    for delay in delays:
        when = {} if delay is None else {"deliver_at_time": bench.clock.time_ms + delay}
        number = topic.entries_added
        producer.publish([number], [bench.entry(number, **when, **metadata)])
    await bench.settle()
    producer.close()


async def wait(bench: Any, topic: Any, milliseconds: int) -> None:
    """As if the timer had gone off."""
    bench.clock.time_ms += milliseconds
    for subscription in topic.subscriptions.values():
        subscription.pump()
    await bench.settle()


def shown(topic: Any, *fields: str) -> tuple[Any, ...]:
    stats = topic.stats()["subscriptions"]["s"]
    return tuple(stats[each] for each in fields)


@pytest.mark.parametrize("kind", ["SHARED", "KEY_SHARED"])
async def test_delayed_entries_come_at_their_time_and_hold_up_no_other(
    bench: Any, join: Any, topic: Any, kind: str
) -> None:
    _, sink = await join(topic, sub_type=getattr(bench, kind))
    await publish_delayed(bench, topic, None, 3000, 0, 2000, -5, partition_key="k")
    assert sink.numbers() == [0, 2, 4]
    assert shown(topic, "msgDelayed", "msgBacklog", "msgBacklogNoDelayed", "unackedMessages") == (2, 5, 3, 3)
    measured = topic.measure().subscriptions["s"]
    assert (measured.delayed, measured.delayed_bytes, measured.replaying) == (2, 120, 0)
    await wait(bench, topic, 1999)
    assert sink.numbers() == []
    await wait(bench, topic, 1)
    assert sink.numbers() == [3]
    await wait(bench, topic, 5000)
    assert sink.numbers() == [1]
    assert shown(topic, "msgDelayed", "msgBacklogNoDelayed", "msgInReplay") == (0, 5, 0)


@pytest.mark.parametrize("permits", [1, 2, 3])
async def test_entries_behind_delayed_ones_are_handed_out_by_permits_and_none_is_lost(
    bench: Any, join: Any, topic: Any, permits: int
) -> None:
    consumer, sink = await join(topic, permits=permits)
    await publish_delayed(bench, topic, None, 3000, None, 3000, None)
    assert sink.numbers() == [0, 2, 4][:permits]
    consumer.flow(10)
    assert sink.numbers() == [0, 2, 4][permits:]
    assert shown(topic, "msgDelayed") == (2,)
    await wait(bench, topic, 3000)
    assert sink.numbers() == [1, 3]


async def test_timer_delivers_without_being_asked(bench: Any, join: Any, topic: Any) -> None:
    _, sink = await join(topic)
    await publish_delayed(bench, topic, 15)
    assert sink.deliveries == []
    delivered = asyncio.Event()
    sink.deliver = lambda *_: delivered.set()
    bench.clock.time_ms += 15
    await asyncio.wait_for(delivered.wait(), 5)


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "FAILOVER"])
async def test_types_with_one_active_consumer_deliver_at_once(bench: Any, join: Any, topic: Any, kind: str) -> None:
    _, sink = await join(topic, sub_type=SubType[kind])
    await publish_delayed(bench, topic, 3000, None)
    assert sink.numbers() == [0, 1]


async def test_delays_survive_a_restart(bench: Any, join: Any, topic: Any) -> None:
    consumer, sink = await join(topic)
    await publish_delayed(bench, topic, 3000, None, 4000)
    consumer.acknowledge(sink.take()[0].position)
    await bench.restart()
    topic = await bench.topic()
    _, sink = await join(topic)
    assert shown(topic, "msgDelayed", "msgBacklog") == (2, 2)
    await wait(bench, topic, 3500)
    assert sink.numbers() == [0]
    await wait(bench, topic, 500)
    assert sink.numbers() == [2]


async def test_delay_outlives_its_consumers_and_ends_with_another_type(bench: Any, join: Any, topic: Any) -> None:
    consumer, _ = await join(topic)
    await publish_delayed(bench, topic, 3000)
    consumer.close()
    assert shown(topic, "msgDelayed", "msgInReplay") == (1, 0)
    consumer, sink = await join(topic, "b")
    assert (sink.numbers(), shown(topic, "msgDelayed")) == ([], (1,))
    consumer.close()
    consumer, sink = await join(topic, "c", sub_type=bench.FAILOVER)
    assert (sink.numbers(), shown(topic, "msgDelayed")) == ([0], (0,))


async def test_redelivery_of_what_was_due_does_not_wait_again(bench: Any, join: Any, topic: Any) -> None:
    consumer, sink = await join(topic)
    await publish_delayed(bench, topic, 3000)
    await wait(bench, topic, 3000)
    consumer.redeliver([sink.take()[0].position])
    assert [each.redelivery_count for each in sink.take()] == [1]


async def test_acknowledged_while_it_waits_then_not_delivered(bench: Any, join: Any, topic: Any) -> None:
    consumer, sink = await join(topic)
    await publish_delayed(bench, topic, 3000, 3000)
    consumer.acknowledge(Position(topic.positions.durable.ledger, 0))
    await wait(bench, topic, 3000)
    assert sink.numbers() == [1]


async def test_seek_lets_them_wait_again_only_until_their_time(bench: Any, join: Any, topic: Any) -> None:
    consumer, sink = await join(topic)
    await publish_delayed(bench, topic, None, 3000, 6000)
    await wait(bench, topic, 3000)
    assert sink.numbers() == [0, 1]
    await consumer.seek(MessageId(-1, -1))
    _, sink = await join(topic, "b")
    assert sink.numbers() == [0, 1]
    assert shown(topic, "msgDelayed") == (1,)


async def test_skipped_and_expired_entries_wait_no_more(bench: Any, join: Any, topic: Any) -> None:
    _, sink = await join(topic)
    await publish_delayed(bench, topic, 3000, 3000, 3000)
    backlog_operations.skip(topic, "s", 1)
    assert shown(topic, "msgDelayed") == (2,)
    await backlog_operations.expire(topic, "s", 0)
    assert shown(topic, "msgDelayed", "msgBacklog") == (0, 0)
    await wait(bench, topic, 3000)
    assert sink.numbers() == []


async def test_policy_that_is_switched_off_lets_everything_go(bench: Any, join: Any, topic: Any) -> None:
    _, sink = await join(topic)
    await publish_delayed(bench, topic, 3000, None)
    assert sink.numbers() == [1]
    await topic.apply(TopicSettings(delayed_delivery=DelayedDelivery(active=False)))
    await bench.settle()
    assert sink.numbers() == [0]
    await publish_delayed(bench, topic, 3000)
    assert sink.numbers() == [2]


async def test_policy_is_in_force_though_another_one_that_came_with_it_cannot_be(
    bench: Any, join: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise MetadataError("no disk")

    _, sink = await join(topic)
    await publish_delayed(bench, topic, 3000)
    monkeypatch.setattr(topic.sequences, "begin", fail)
    settings = TopicSettings(delayed_delivery=DelayedDelivery(active=False), deduplication_enabled=True)
    for _ in range(2):
        with pytest.raises(MetadataError):
            await topic.apply(settings)
    await bench.settle()
    assert sink.numbers() == [0]


async def test_policy_with_another_tick_keeps_what_waits(bench: Any, join: Any, topic: Any) -> None:
    _, sink = await join(topic)
    await publish_delayed(bench, topic, 3000)
    await topic.apply(TopicSettings(delayed_delivery=DelayedDelivery(tick_millis=50)))
    assert (sink.numbers(), shown(topic, "msgDelayed")) == ([], (1,))
    await wait(bench, topic, 3000)
    assert sink.numbers() == [0]


async def test_when_too_many_wait_then_reading_pauses_until_some_are_due(
    bench: Any, join: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_module, "DELAYED_MAX", 2)
    _, sink = await join(topic)
    await publish_delayed(bench, topic, 3000, 3000)
    await publish_delayed(bench, topic, None)
    assert sink.numbers() == []
    await wait(bench, topic, 3000)
    assert sorted(sink.numbers()) == [0, 1, 2]


async def test_many_due_at_once_are_read_from_the_log_and_all_delivered(bench: Any, join: Any, topic: Any) -> None:
    await topic.create_subscription("s")
    await publish_delayed(bench, topic, *([3000] * 3000))
    await bench.restart()
    topic = await bench.topic()
    _, sink = await join(topic, permits=5000)
    assert shown(topic, "msgDelayed") == (3000,)
    await wait(bench, topic, 3000)
    for _ in range(20):
        await bench.settle()
    assert sink.numbers() == list(range(3000))


async def test_many_due_at_once_then_no_more_wait_to_be_sent_than_there_is_room_for(
    bench: Any, join: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "REPLAYS_MAX", 3)
    consumer, sink = await join(topic, permits=8)
    await publish_delayed(bench, topic, *[3000] * 8)
    consumer.flow(-7)
    await wait(bench, topic, 3000)
    assert (sink.numbers(), *shown(topic, "msgInReplay", "msgDelayed")) == ([0], 2, 5)
    for number in range(1, 8):
        consumer.flow(1)
        await bench.settle()
        waiting = (min(2, 7 - number), max(0, 5 - number))
        assert (sink.numbers(), *shown(topic, "msgInReplay", "msgDelayed")) == ([number], *waiting)


async def test_delays_count_for_unacknowledged_limits_only_when_delivered(bench: Any, join: Any, topic: Any) -> None:
    consumer, _ = await join(topic)
    await publish_delayed(bench, topic, 3000)
    assert consumer.unacknowledged == 0
    await wait(bench, topic, 3000)
    assert consumer.unacknowledged == 1


async def test_too_long_a_delay_is_refused_when_published_and_nothing_is_stored(bench: Any) -> None:
    bench.settings = TopicSettings(delayed_delivery=DelayedDelivery(max_delay_millis=5_000))
    topic = await bench.topic()
    producer, sink = await bench.producer(topic)
    for number, deliver_at in enumerate((6_000, 6_001)):
        producer.publish([number], [bench.entry(number, publish_time=1_000, deliver_at_time=deliver_at)])
    await bench.settle()
    assert [receipt[0] for receipt in sink.received] == [0]
    [(sequence_id, error)] = sink.failures
    assert (sequence_id, str(error)) == (1, "Exceeds max allowed delivery delay of 5000 milliseconds")
    await topic.apply(TopicSettings(delayed_delivery=DelayedDelivery(active=False, max_delay_millis=5_000)))
    producer.publish([2], [bench.entry(2, publish_time=1_000, deliver_at_time=6_001)])
    await bench.settle()
    assert [receipt[0] for receipt in sink.received] == [0, 2]


async def test_time_that_comes_while_entries_are_handed_out_loses_none(bench: Any, join: Any, topic: Any) -> None:
    _, sink = await join(topic)
    now_ms = bench.clock.time_ms
    topic.subscription("s").dispatch._now_ms = lambda: now_ms  # and all others see the next millisecond
    bench.clock.time_ms += 1
    await publish_delayed(bench, topic, 0)
    await wait(bench, topic, 1)
    assert sink.numbers() == [0]


async def test_redelivery_counts_of_what_was_skipped_are_forgotten(bench: Any, join: Any, topic: Any) -> None:
    consumer, _ = await join(topic)
    await publish_delayed(bench, topic, None, None)
    consumer.redeliver()
    backlog_operations.clear(topic, "s")
    assert topic.subscription("s").dispatch._redeliveries == {}


async def test_long_backlog_of_delayed_entries_leaves_others_their_turn(
    bench: Any, join: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "PUT_ASIDE_AT_ONCE", 10)
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    delayed = {"deliver_at_time": bench.clock.time_ms + 5000}
    for number in range(95):
        producer.publish([number], [bench.entry(number, **({} if number in (2, 94) else delayed))])
    await bench.settle()
    consumer, sink = await join(topic, permits=0)
    counts = []
    consumer.flow(4)
    while len(sink.deliveries) < 2:
        counts.append(topic.stats()["subscriptions"]["s"]["msgDelayed"])
        await asyncio.sleep(0)
    # Four entries are looked at, and one of them goes; then three at a time, for the permits left, ten or more a turn.
    assert list(dict.fromkeys(counts)) == [12, 24, 36, 48, 60, 72, 84]
    assert sink.numbers() == [2, 94]


async def test_due_entries_of_a_consumer_without_permits_are_read_once(bench: Any, join: Any, topic: Any) -> None:
    ranges = {"a": KeyRange(0, 299), "b": KeyRange(300, 65535)}
    sharing = {name: KeySharing((each,)) for name, each in ranges.items()}
    kind = bench.KEY_SHARED
    slow, of_slow = await join(topic, "a", 0, sub_type=kind, key_sharing=sharing["a"])
    _, of_b = await join(topic, "b", sub_type=kind, key_sharing=sharing["b"])
    limiter = bench.registry.read_buffer_limiter
    sizes = []
    for number in (0, 2):
        await publish_delayed(bench, topic, 1000, partition_key="key1")  # of a
        await publish_delayed(bench, topic, 1000, partition_key="key2")
        await wait(bench, topic, 1000)
        assert of_b.numbers() == [number + 1]
        sizes.append(limiter.bytes_held)
    read_cached, log_reads = topic.log.read_cached, []

    def note_and_read(start: Position, **limits: int) -> Any:
        log_reads.append(start)
        return read_cached(start, **limits)

    topic.log.read_cached = note_and_read
    slow.flow(2)
    delivered = of_slow.deliveries
    assert (of_slow.numbers(), log_reads) == ([0, 2], [Position(1, 4)])
    assert [*sizes, limiter.bytes_held] == [len(delivered[0].entry), sum(len(each.entry) for each in delivered), 0]


async def test_skipping_what_waits_makes_room_for_what_is_behind_it(
    bench: Any, join: Any, topic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_module, "DELAYED_MAX", 5)
    _, sink = await join(topic)
    producer, _ = await bench.producer(topic)
    for number in range(5):
        producer.publish([number], [bench.entry(number, deliver_at_time=bench.clock.time_ms + 5000)])
    await bench.settle()
    full_upto = topic.positions.durable
    await bench.publish(topic, 5, 6)
    assert sink.numbers() == []
    topic.subscription("s").skip_to(full_upto)
    assert sink.numbers() == [5, 6]

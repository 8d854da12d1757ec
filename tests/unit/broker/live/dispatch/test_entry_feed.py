"""Reading what is not in memory; the rest of the feed shows in the tests of subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

import pytest

from interpulse.broker.live import entry_metadata
from interpulse.broker.live.api import Delivery, SubType
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch import entry_feed
from interpulse.broker.live.dispatch.entry_feed import ReplayReads
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.shared_reads import ReadBufferLimiter
from interpulse.model.errors import PersistenceError, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import LogEntry, NotReadableNow
from tests.support.waiting import eventually


async def test_backlog_is_read_in_pieces_as_permits_come(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(50))
    await bench.restart()
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, permits=3)
    got = sink.numbers()
    assert got == [0, 1, 2]
    while len(got) < 50:
        consumer.flow(4)
        await bench.settle()
        got += sink.numbers()
    assert got == list(range(50))
    await bench.publish(topic, 50)
    assert sink.numbers() == [50]


async def test_backlog_of_batches_when_permits_are_few_then_no_more_of_them_are_looked_at(
    bench: Any, monkeypatch: Any
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    for number in range(40):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
    await bench.restart()
    topic = await bench.topic()
    looked_at: list[Position] = []
    get = EntryMetadataCache.get

    def counted(cache: EntryMetadataCache, position: Position, entry: bytes) -> Any:
        looked_at.append(position)
        return get(cache, position, entry)

    monkeypatch.setattr(EntryMetadataCache, "get", counted)
    consumer, sink = await bench.consumer(topic, permits=20)
    got = sink.numbers()
    while len(got) < 40:
        consumer.flow(20)
        await bench.settle()
        got += sink.numbers()
    assert got == list(range(40))
    assert len(looked_at) <= 2 * 40  # each of them, and the one behind those that are sent


async def test_backlog_when_it_is_read_then_its_entries_are_looked_at_together(bench: Any, monkeypatch: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    producer, _ = await bench.producer(topic)
    for number in range(40):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=10)], num_messages=10)
    await bench.restart()
    topic = await bench.topic()

    def alone(entry: bytes) -> Any:
        raise AssertionError("an entry is looked at by itself")

    monkeypatch.setattr(entry_metadata, "entry_metadata_of", alone)
    _, sink = await bench.consumer(topic, permits=400)
    assert sink.numbers() == list(range(40))


async def test_read_begun_before_a_seek_is_not_delivered(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    consumer, old_sink = await bench.consumer(topic, permits=0)
    consumer.flow(100)
    await consumer.seek(MessageId(1, 3))
    _, sink = await bench.consumer(topic)
    assert old_sink.numbers() == []
    assert sink.numbers() == [3, 4]


async def test_read_that_fails_then_the_topic_is_loaded_again(bench: Any, monkeypatch: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()

    damage = PersistenceError("damaged")

    async def fail(*_: Any, **__: Any) -> None:
        raise damage

    monkeypatch.setattr(topic.log, "read", fail)
    read_failed, told = topic.read_failed, []

    def note(error: PulsarError) -> None:
        told.append(error)
        read_failed(error)

    monkeypatch.setattr(topic, "read_failed", note)
    _, sink = await bench.consumer(topic)
    assert (sink.closed, told) == ([1], [damage])
    assert await bench.topic() is not topic


@pytest.mark.parametrize("sub_type", [SubType.EXCLUSIVE, SubType.SHARED])
async def test_entries_that_cannot_be_read_now_then_are_delivered_later(
    bench: Any, monkeypatch: Any, sub_type: SubType
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    may_read, told = asyncio.Event(), list[Any]()
    read = topic.log.read

    async def read_later(*arguments: Any, **limits: Any) -> Any:
        if not may_read.is_set():
            raise NotReadableNow("bookies do not answer")
        return await read(*arguments, **limits)

    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    monkeypatch.setattr(topic.log, "read", read_later)
    monkeypatch.setattr(topic, "read_failed", told.append)
    consumer, sink = await bench.consumer(topic, sub_type=sub_type)
    consumer.flow(1)
    await bench.settle()
    assert sink.numbers() == []
    may_read.set()
    await bench.settle()
    assert (sink.numbers(), told) == ([0, 1, 2, 3, 4], [])


async def test_read_that_waits_when_the_subscription_is_moved_then_ends_with_nothing(
    bench: Any, monkeypatch: Any
) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, *range(5))
    await bench.restart()
    topic = await bench.topic()
    read = topic.log.read

    async def first_is_away(start: Position, **limits: Any) -> Any:
        if start.entry < 3:
            raise NotReadableNow("bookies do not answer")
        return await read(start, **limits)

    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    monkeypatch.setattr(topic.log, "read", first_is_away)
    consumer, old_sink = await bench.consumer(topic)
    await consumer.seek(MessageId(1, 3))
    _, sink = await bench.consumer(topic)
    await bench.settle()
    assert old_sink.numbers() == []
    assert sink.numbers() == [3, 4]


async def test_entries_acknowledged_before_a_restart_are_left_out(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    producer, _ = await bench.producer(topic)
    for number in range(6):
        producer.publish([number], [bench.entry(number, num_messages_in_batch=3)], num_messages=3)
    await bench.settle()
    positions = [each.position for each in sink.take()]
    for index in (1, 2, 5):
        consumer.acknowledge(positions[index])
    consumer.acknowledge(positions[3], ack_set=[0b110])
    await bench.restart()
    _, sink = await bench.consumer(await bench.topic(), permits=100)
    deliveries = sink.deliveries
    assert sink.numbers() == [0, 3, 4]
    shown = [(each.redelivery_count, each.ack_set, each.message_count) for each in deliveries]
    assert shown == [(0, (), 3), (0, (0b110,), 2), (0, (), 3)]


async def test_last_message_when_everything_was_trimmed_is_none(bench: Any) -> None:
    topic = await bench.topic()
    await bench.publish(topic, 1)
    await bench.restart()
    topic = await bench.topic()
    assert (await topic.last_message()).position == (1, 0)
    await backlog_operations.maintain(topic)
    assert (await topic.last_message()).position == EARLIEST


@pytest.fixture
async def last_acknowledged(bench: Any) -> Any:
    """A topic that was loaded again: a batch of three, a message, and one that is acknowledged already."""
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic, sub_type=bench.SHARED)
    producer, _ = await bench.producer(topic)
    producer.publish([0], [bench.entry(0, num_messages_in_batch=3)], num_messages=3)
    for number in (1, 2):
        producer.publish([number], [bench.entry(number)])
    await bench.settle()
    consumer.acknowledge(sink.take()[2].position)
    await bench.restart()
    return await bench.topic()


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_permits_that_end_before_an_entry_that_is_left_out_then_nothing_before_it_is_lost(
    bench: Any, last_acknowledged: Any, sub_type: SubType
) -> None:
    consumer, sink = await bench.consumer(last_acknowledged, sub_type=sub_type, permits=3)
    assert sink.numbers() == [0]
    consumer.flow(3)
    assert sink.numbers() == [1]


async def test_topic_whose_last_entry_is_left_out_then_its_end_is_told_with_the_last_delivery(
    bench: Any, last_acknowledged: Any
) -> None:
    await last_acknowledged.terminate()
    _, sink = await bench.consumer(last_acknowledged, sub_type=bench.SHARED, permits=4)
    assert (sink.numbers(), sink.ended) == ([0, 1], 1)


async def test_feeds_that_begin_and_end_leave_others_their_room_and_give_theirs_back(bench: Any) -> None:
    topic = await bench.topic()
    for name in "abc":
        await topic.create_subscription(name)
    await bench.publish(topic, *range(20))
    await bench.restart()
    topic, limiter = await bench.topic(), bench.registry.read_buffer_limiter
    members = [await bench.consumer(topic, name, permits=1) for name in "ab"]
    held = limiter.bytes_held
    assert held > 0
    for _ in range(2):
        consumer, _ = await bench.consumer(topic, "c", permits=0)
        consumer.close()
        assert limiter.bytes_held == held
    for consumer, sink in members:
        consumer.flow(19)
        assert sink.numbers() == list(range(20))
    assert limiter.bytes_held == topic.reads.kept_bytes


async def test_feed_whose_room_was_needed_then_it_reads_what_is_wanted_until_it_begins_again(bench: Any) -> None:
    other = TopicName.parse("persistent://public/default/other")
    for name in (None, other):
        topic = await bench.topic(*filter(None, [name]))
        await topic.create_subscription("s")
        await bench.publish(topic, *range(20))
    bench.read_bytes_max = 1
    await bench.restart()
    topic = await bench.topic()
    read, asked = topic.log.read, []

    async def note_and_read(start: Position, **limits: int) -> Any:
        asked.append((start.entry, limits["entries_max"]))
        return await read(start, **limits)

    topic.log.read = note_and_read
    consumer, sink = await bench.consumer(topic, permits=1)
    await bench.consumer(await bench.topic(other), permits=1)
    for _ in range(2):
        consumer.flow(2)
        await bench.settle()
    assert sink.numbers() == [0, 1, 2, 3, 4]
    consumer.redeliver()
    consumer.flow(1)
    await bench.settle()
    assert sink.numbers() == [0]
    assert asked == [(0, 1000), (1, 2), (3, 2), (0, 1000)]


async def test_read_that_ends_after_a_seek_then_nothing_of_it_is_delivered(bench: Any) -> None:
    topic = await bench.topic()
    consumer, sink = await bench.consumer(topic)
    await bench.publish(topic, *range(5))
    consumer.acknowledge_cumulative(sink.take()[2].position)
    await bench.restart()
    topic = await bench.topic()
    read, may_read = topic.log.read, asyncio.Event()

    async def wait_and_read(start: Position, **limits: int) -> Any:
        await may_read.wait()
        return await read(start, **limits)

    topic.log.read = wait_and_read
    consumer, _ = await bench.consumer(topic)
    await consumer.seek(MessageId(-1, -1))
    _, sink = await bench.consumer(topic)
    assert sink.numbers() == []
    may_read.set()
    await bench.settle()
    assert sink.numbers() == [0, 1, 2, 3, 4]


async def test_ordinary_entry_when_delivered_then_nothing_is_said_of_it(bench: Any) -> None:
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0)
    _, sink = await bench.consumer(topic)
    assert sink.deliveries == [Delivery(Position(1, 0), bench.entry(0, producer="filler"), 0, (), 1)]


async def test_new_subscription_leaves_alone_what_others_hold(bench: Any) -> None:
    class Other:
        def let_go(self, number: int) -> None:
            raise AssertionError(number)

    topic, limiter, other = await bench.topic(), bench.registry.read_buffer_limiter, Other()
    for _ in range(3):
        limiter.hold(10, other.let_go)
    held = limiter.bytes_held
    await bench.consumer(topic)
    assert limiter.bytes_held == held


def at(entry: int) -> Position:
    return Position(1, entry)


def payload(entry: int) -> bytes:
    return b"%010d" % entry


class FakeLog:
    """Every entry from ``first`` on is in memory, unless it is on disk; it is its own source, too."""

    def __init__(self) -> None:
        self.log = self.reads = self
        self.limiter = ReadBufferLimiter(1000)
        self.first = 0
        self.entries_max = 1000
        self.asked: list[tuple[int, int]] = []
        self.gone: set[Position] = set()
        self.in_memory = True
        self.begun: list[Coroutine[Any, Any, None]] = []
        """Reads that a test ends by awaiting them."""
        self.read_from_disk: list[tuple[int, int]] = []
        """First entry, and bytes at most."""
        self.failure: PulsarError | None = None
        self.failed: list[PulsarError] = []

    def _found(self, start: Position, entries_max: int) -> list[LogEntry]:
        found = range(max(start.entry, self.first), start.entry + min(entries_max, self.entries_max))
        return [LogEntry(at(each), payload(each)) for each in found]

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        if not self.in_memory:
            return None
        self.asked.append((start.entry, entries_max))
        return self._found(start, entries_max)

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        self.read_from_disk.append((start.entry, bytes_max))
        if self.failure is not None:
            raise self.failure
        return self._found(start, entries_max)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.begun.append(work)

    def read_failed(self, error: PulsarError) -> None:
        self.failed.append(error)

    def on_gone(self, positions: Iterable[Position]) -> None:
        self.gone.update(positions)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


def new_reads(log: Any) -> ReplayReads:
    def deliveries(positions: Sequence[Position], entries: Sequence[bytes]) -> list[Delivery]:
        return list(map(Delivery, positions, entries))

    return ReplayReads(log, Cursor(log, EARLIEST), deliveries, log.on_gone, lambda: None)


@pytest.fixture
def reads(log: Any) -> ReplayReads:
    return new_reads(log)


def held(*entries: int) -> list[Delivery]:
    return [Delivery(at(each), payload(each)) for each in entries]


def taken(reads: ReplayReads, *entries: int) -> list[int]:
    found = reads.take([at(each) for each in entries])
    assert all(each.entry == payload(each.position.entry) for each in found)
    return [each.position.entry for each in found]


def fetched(reads: ReplayReads, *entries: int) -> list[int]:
    """As `taken`; all of it goes back."""
    found = taken(reads, *entries)
    reads.keep(held(*found))
    return found


def test_what_was_kept_is_not_read_again(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(2, 4, 7))
    assert fetched(reads, 2, 4, 7) == [2, 4, 7]
    assert log.asked == []
    assert fetched(reads, 2, 3, 4, 90) == [2, 3, 4, 90]
    assert log.asked == [(3, 1), (90, 1)]


def test_what_was_taken_is_kept_no_more(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(2, 4, 7))
    assert (taken(reads, 2, 7), log.limiter.bytes_held, log.asked) == ([2, 7], 10, [])
    assert (taken(reads, 2, 4), log.limiter.bytes_held, log.asked) == ([2, 4], 0, [(2, 1)])


def test_entry_that_is_not_in_memory_then_what_is_kept_behind_it_stays(reads: ReplayReads, log: FakeLog) -> None:
    log.in_memory = False
    reads.keep(held(2, 4, 7))
    assert (taken(reads, 2, 3, 4, 7), log.limiter.bytes_held, log.begun) == ([2], 20, [])
    assert (taken(reads, 4, 7), log.limiter.bytes_held) == ([4, 7], 0)


def test_more_than_there_is_room_for_then_the_oldest_are_read_again(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_feed, "KEPT_BYTES_MAX", 30)
    reads.keep(held(0, 1, 2, 3))
    assert log.limiter.bytes_held == 30
    reads.take_out([at(2)])
    reads.take_out([at(2)])
    reads.keep(held(4))
    assert fetched(reads, 0, 1, 3, 4) == [0, 1, 3, 4]
    assert log.asked == [(0, 1)]


def test_what_was_forgotten_is_read_again(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(0, 1, 2))
    reads.forget_upto(at(1))
    assert fetched(reads, 1, 2) == [1, 2]
    reads.forget_all()
    assert fetched(reads, 2) == [2]
    assert log.asked == [(1, 1), (2, 1)]


def test_what_the_log_has_dropped_is_told(reads: ReplayReads, log: FakeLog) -> None:
    log.first = 5
    assert fetched(reads, 3, 4, 5) == [5]
    assert log.gone == {at(3), at(4)}
    assert fetched(reads, 1, 2) == []
    assert log.gone == {at(1), at(2), at(3), at(4)}


@pytest.mark.parametrize(
    ("wanted", "looks"),
    [
        ((0, 1, 2), [(0, 3)]),
        ((0, 32), [(0, 33)]),
        ((0, 33), [(0, 1), (33, 1)]),
        ((100, 102, 200), [(100, 3), (200, 1)]),
    ],
    ids=["one behind the other", "close together", "further apart", "late in the log"],
)
def test_replays_close_together_are_one_look_into_the_log(
    reads: ReplayReads, log: FakeLog, wanted: tuple[int, ...], looks: list[tuple[int, int]]
) -> None:
    assert fetched(reads, *wanted) == [*wanted]
    assert log.asked == looks


@pytest.mark.parametrize(
    ("bytes_max", "read"), [(20, [(0, 20), (40, 10)]), (21, [(0, 21), (40, 11), (80, 1)])], ids=["two fill it", "three"]
)
async def test_read_from_disk_takes_as_many_runs_as_its_bytes_allow(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch, bytes_max: int, read: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(entry_feed, "READ_BYTES_MAX", bytes_max)
    log.in_memory = False
    assert fetched(reads, 0, 40, 80) == []
    assert reads.reading
    [begun] = log.begun
    await begun
    assert (reads.reading, log.read_from_disk) == (False, read)
    assert fetched(reads, *(start for start, _ in read)) == [start for start, _ in read]
    assert len(log.begun) == 1


async def test_read_from_disk_begun_before_all_was_forgotten_then_nothing_of_it_is_kept(
    reads: ReplayReads, log: FakeLog
) -> None:
    log.in_memory = False
    for number in range(2):
        fetched(reads, number)
        reads.forget_all()
        await log.begun[number]
        assert log.limiter.bytes_held == 0
    fetched(reads, 0)
    await log.begun[2]
    assert (fetched(reads, 0), log.limiter.bytes_held) == ([0], 10)


async def test_read_from_disk_that_fails_then_the_topic_hears_why(reads: ReplayReads, log: FakeLog) -> None:
    log.in_memory, log.failure = False, PersistenceError("damaged")
    fetched(reads, 0)
    await log.begun[0]
    assert (log.failed, reads.reading) == ([log.failure], False)


async def test_replays_that_cannot_be_read_now_then_are_read_later_and_once(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    log.in_memory, log.failure = False, NotReadableNow("bookies do not answer")
    assert fetched(reads, 0, 2) == []
    reading = asyncio.create_task(log.begun[0])
    await eventually(lambda: len(log.read_from_disk) > 2)
    assert reads.reading
    log.failure = None
    await reading
    assert fetched(reads, 0, 2) == [0, 2]
    assert (log.failed, log.gone, len(log.begun)) == ([], set(), 1)


async def test_replays_that_are_forgotten_while_they_cannot_be_read_then_are_not_waited_for(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_feed, "AGAIN_S", 0.0)
    log.in_memory, log.failure = False, NotReadableNow("bookies do not answer")
    fetched(reads, 0, 500)
    reading = asyncio.create_task(log.begun[0])
    await eventually(lambda: bool(log.read_from_disk))
    reads.forget_all()
    await reading
    assert (reads.reading, log.failed, log.gone) == (False, [], set())
    assert {first for first, _ in log.read_from_disk} == {0}


def test_what_is_kept_takes_room_until_it_is_forgotten(reads: ReplayReads, log: FakeLog) -> None:
    steps = [
        lambda: reads.keep(held(0, 1, 2)),
        lambda: fetched(reads, 2, 3),
        lambda: reads.take_out([at(3)]),
        lambda: reads.forget_upto(at(1)),
        lambda: reads.keep(held(4)),
        lambda: reads.keep([]),
        reads.forget_all,
        lambda: reads.keep(held(5)),
        lambda: reads.take_out([at(5)]),
    ]
    taken = []
    for step in steps:
        step()
        taken.append(log.limiter.bytes_held)
    assert taken == [30, 40, 30, 10, 20, 20, 0, 10, 0]


def test_when_others_need_the_room_then_all_is_read_again(reads: ReplayReads, log: FakeLog) -> None:
    others = new_reads(log)
    log.limiter = others._limiter = reads._limiter = ReadBufferLimiter(30)
    reads.keep(held(0, 1))
    others.keep(held(5, 6))
    assert log.limiter.bytes_held == 20
    assert taken(reads, 0, 1) == [0, 1]
    assert log.asked == [(0, 2)]
    reads.keep(held(0, 1))
    assert taken(others, 5, 6) == [5, 6]
    assert log.asked == [(0, 2), (5, 2)]


def test_what_many_keep_takes_room_together(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        reads = new_reads(log)
        reads.keep(held(0, 1))
    assert log.limiter.bytes_held == 60
    monkeypatch.setattr(entry_feed, "KEPT_BYTES_MAX", 5)
    for _ in range(2):
        reads.keep(held(7))
    assert log.limiter.bytes_held == 40


def test_short_read_then_nothing_behind_it_comes_before_the_rest(reads: ReplayReads, log: FakeLog) -> None:
    log.entries_max = 2
    assert taken(reads, 0, 1, 2, 90) == [0, 1]
    reads.keep(held(1))
    assert taken(reads, 0, 1, 2, 3, 4) == [0, 1]
    log.entries_max = 3
    assert taken(reads, 10, 12, 14) == [10, 12]


TOPICS = [TopicName.parse(f"persistent://public/default/t{number}") for number in range(20)]


def entries_of(bench: Any) -> list[bytes]:
    return [bench.entry(number, producer="filler") for number in range(100)]


async def load(bench: Any, room: int, names: list[TopicName]) -> None:
    """A hundred entries on each topic, none of them in memory."""
    for name in names:
        topic = await bench.topic(name)
        await topic.create_subscription("s")
        await bench.publish(topic, *range(100))
    bench.read_bytes_max = room
    await bench.restart()


@pytest.mark.parametrize("sub_type", [SubType.SHARED, SubType.KEY_SHARED])
@pytest.mark.parametrize("room", [1, 20_000])
async def test_replays_of_many_subscriptions_hold_no_more_than_the_broker_has_room_for(
    bench: Any, join: Any, sub_type: SubType, room: int
) -> None:
    """Each reads for a client that reads nothing meanwhile; all get everything, in order."""
    await load(bench, room, TOPICS)
    members = [await join(await bench.topic(name), permits=100, sub_type=sub_type) for name in TOPICS]
    assert [sink.numbers() for _, sink in members] == [list(range(100))] * 20
    for consumer, sink in members:
        consumer.redeliver()
        consumer.flow(100)
        sink.writable = False
    await bench.settle()
    largest, size = sum(map(len, entries_of(bench))), bench.registry.read_buffer_limiter.bytes_held
    assert room - largest < size <= max(room, largest)
    for consumer, sink in members:
        sink.writable = True
        consumer.resume()
    await bench.settle()
    assert [sink.numbers() for _, sink in members] == [list(range(100))] * 20
    assert bench.registry.read_buffer_limiter.bytes_held == 0


def in_turns(log_read: Any) -> Any:
    """Others read meanwhile."""

    async def read(start: Position, **limits: int) -> list[LogEntry]:
        await asyncio.sleep(0)
        return await log_read(start, **limits)

    return read


async def test_replays_that_need_several_reads_get_on_though_others_take_the_room_meanwhile(
    bench: Any, join: Any
) -> None:
    await load(bench, 1, TOPICS[:3])
    members = [await join(await bench.topic(name)) for name in TOPICS[:3]]
    apart = [0, 40, 80]
    for topic in bench.registry.topics():
        topic.log.read = in_turns(topic.log.read)
    for consumer, sink in members:
        given = [each.position for each in sink.take()]
        consumer.redeliver([given[each] for each in apart])
    for _ in range(3):
        await bench.settle()
    assert [sink.numbers() for _, sink in members] == [apart] * 3


async def test_what_is_held_back_takes_room_as_what_was_read(bench: Any, join: Any) -> None:
    bench.read_bytes_max = 1000
    await bench.restart()
    slow = []
    for name in TOPICS[:3]:
        topic = await bench.topic(name)
        await join(topic, "a", sub_type=bench.KEY_SHARED)
        slow.append(await join(topic, "b", 0, sub_type=bench.KEY_SHARED))
        producer, _ = await bench.producer(topic)
        for number in range(40):
            producer.publish([number], [bench.entry(number, partition_key=f"k{number}")])
        await bench.settle()
    waiting = [topic.stats()["subscriptions"]["s"]["msgInReplay"] for topic in bench.registry.topics()]
    assert min(waiting) > 10
    assert 0 < bench.registry.read_buffer_limiter.bytes_held <= 1000
    for consumer, _ in slow:
        consumer.flow(100)
    await bench.settle()
    assert [len(sink.numbers()) for _, sink in slow] == waiting
    assert bench.registry.read_buffer_limiter.bytes_held == 0

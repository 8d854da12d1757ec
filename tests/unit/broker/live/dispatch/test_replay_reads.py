"""Replays are read again only if they were not kept; little is kept, and all of it counts in the limiter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch import replay_reads
from interpulse.broker.live.dispatch.replay_reads import ReplayReads
from interpulse.broker.live.read_buffer_limiter import ReadBufferLimiter
from interpulse.broker.live.requests import SubType
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.storage.api import LogEntry


def at(entry: int) -> Position:
    return Position(1, entry)


def payload(entry: int) -> bytes:
    return b"%010d" % entry


class FakeLog:
    """Every entry from ``first`` on is in memory; it is its own source, too."""

    def __init__(self) -> None:
        self.log = self.reads = self
        self.limiter = ReadBufferLimiter(1000)
        self.first = 0
        self.entries_max = 1000
        self.asked: list[tuple[int, int]] = []
        self.gone: set[Position] = set()

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        self.asked.append((start.entry, entries_max))
        found = range(max(start.entry, self.first), start.entry + min(entries_max, self.entries_max))
        return [LogEntry(at(each), payload(each)) for each in found]

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


def fetched(reads: ReplayReads, *entries: int) -> list[int]:
    found = reads.fetch([at(each) for each in entries])
    assert all(each.entry == payload(each.position.entry) for each in found)
    return [each.position.entry for each in found]


def test_what_was_kept_is_not_read_again(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(2, 4, 7))
    assert fetched(reads, 2, 4, 7) == [2, 4, 7]
    assert log.asked == []
    assert fetched(reads, 2, 3, 4, 90) == [2, 3, 4, 90]
    assert log.asked == [(3, 1), (90, 1)]


def test_more_than_there_is_room_for_then_the_oldest_are_read_again(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_reads, "KEPT_BYTES_MAX", 30)
    reads.keep(held(0, 1, 2, 3))
    assert log.limiter.bytes_held == 30
    reads.forget([at(2)])
    reads.forget([at(2)])
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


def test_what_is_kept_takes_room_until_it_is_forgotten(reads: ReplayReads, log: FakeLog) -> None:
    steps = [
        lambda: reads.keep(held(0, 1, 2)),
        lambda: fetched(reads, 2, 3),
        lambda: reads.forget([at(3)]),
        lambda: reads.forget_upto(at(1)),
        lambda: reads.keep(held(4)),
        lambda: reads.keep([]),
        reads.forget_all,
        lambda: reads.keep(held(5)),
        lambda: reads.forget([at(5)]),
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
    assert fetched(reads, 0, 1) == [0, 1]
    assert log.asked == [(0, 2)]
    reads.keep(held(0, 1))
    assert fetched(others, 5, 6) == [5, 6]
    assert log.asked == [(0, 2), (5, 2)]


def test_what_many_keep_takes_room_together(log: FakeLog) -> None:
    everyone = [new_reads(log) for _ in range(3)]
    for each in everyone:
        each.keep(held(0, 1))
    assert log.limiter.bytes_held == 60


def test_short_read_then_nothing_behind_it_comes_before_the_rest(reads: ReplayReads, log: FakeLog) -> None:
    log.entries_max = 2
    assert fetched(reads, 0, 1, 2, 90) == [0, 1]
    reads.keep(held(1))
    assert fetched(reads, 0, 1, 2, 3, 4) == [0, 1]


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
            producer.publish(number, -1, 1, bench.entry(number, partition_key=f"k{number}"))
        await bench.settle()
    waiting = [topic.stats()["subscriptions"]["s"]["msgInReplay"] for topic in bench.registry.topics()]
    assert min(waiting) > 10
    assert 0 < bench.registry.read_buffer_limiter.bytes_held <= 1000
    for consumer, _ in slow:
        consumer.flow(100)
    await bench.settle()
    assert [len(sink.numbers()) for _, sink in slow] == waiting
    assert bench.registry.read_buffer_limiter.bytes_held == 0

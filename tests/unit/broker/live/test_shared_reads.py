"""Subscriptions that are close together read the log once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker.live import shared_reads as shared_reads_module
from interpulse.broker.live.api import SubType
from interpulse.broker.live.shared_reads import ReadBufferLimiter, SharedReads
from interpulse.model.errors import PersistenceError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import LogEntry

SUBSCRIPTIONS = 10
ONE, SEVERAL = range(1), range(2)
"""Readers."""

LIMITS = {"entries_max": 4, "bytes_max": 100}


class CountingLog:
    """A log of ten entries in which every read takes a turn of the loop, and is counted."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.failing = False

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry] | None:
        """Entries from 1000 on are in memory, up to 3000."""
        self.reads.append(start.entry)
        if start.entry < 1000:
            return None
        numbers = range(start.entry, min(start.entry + entries_max, 3000))
        return [LogEntry(Position(1, number), b"x" * 10) for number in numbers]

    async def read(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        self.reads.append(start.entry)
        await asyncio.sleep(0)
        if self.failing:
            raise PersistenceError("no disk")
        return [LogEntry(Position(1, number), b"x" * 10) for number in range(start.entry, 10)][:entries_max]


@pytest.fixture
def log() -> CountingLog:
    return CountingLog()


def entries(found: list[LogEntry]) -> list[int]:
    return [each.position.entry for each in found]


async def test_reads_of_one_place_at_once_are_one(log: Any) -> None:
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(1000))
    found = await asyncio.gather(*(reads.read(Position(1, 0), **LIMITS) for _ in range(5)))
    assert log.reads == [0]
    assert [entries(each) for each in found] == [[0, 1, 2, 3]] * 5
    found[0].clear()
    assert entries(found[1]) == [0, 1, 2, 3]


async def test_reads_a_little_behind_find_what_was_read(log: Any) -> None:
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(1000))
    await reads.read(Position(1, 0), **LIMITS)
    await reads.read(Position(1, 4), **LIMITS)
    assert entries(await reads.read(Position(1, 2), **LIMITS)) == [2, 3]
    assert entries(await reads.read(Position(1, 4), **LIMITS)) == [4, 5, 6, 7]
    assert log.reads == [0, 4]


async def test_what_is_kept_has_a_bound_and_goes_when_not_wanted(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads_module, "KEPT_BYTES_MAX", 80)
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(1000))
    for start in (0, 4, 8):
        await reads.read(Position(1, start), **LIMITS)
    assert reads.kept_bytes == 60
    reads.forget_unused()
    assert reads.kept_bytes == 60
    reads.forget_unused()
    assert reads.kept_bytes == 0


async def test_what_all_topics_keep_has_a_bound_and_the_oldest_goes_first(log: Any) -> None:
    limiter = ReadBufferLimiter(100)
    topics = [SharedReads(log, SEVERAL, limiter) for _ in range(3)]
    for each in topics:
        await each.read(Position(1, 0), **LIMITS)
    assert ([each.kept_bytes for each in topics], limiter.bytes_held) == ([0, 40, 40], 80)
    await topics[1].read(Position(1, 0), **LIMITS)
    assert len(log.reads) == 3
    await topics[0].read(Position(1, 0), **LIMITS)
    assert ([each.kept_bytes for each in topics], len(log.reads)) == ([40, 0, 40], 4)


async def test_a_piece_that_is_larger_than_the_bound_is_kept_alone(log: Any) -> None:
    limiter = ReadBufferLimiter(10)
    first, second = SharedReads(log, SEVERAL, limiter), SharedReads(log, SEVERAL, limiter)
    await first.read(Position(1, 0), **LIMITS)
    await second.read(Position(1, 0), **LIMITS)
    assert (first.kept_bytes, second.kept_bytes, limiter.bytes_held) == (0, 40, 40)


async def test_subscriptions_that_are_gone_free_their_bytes(log: Any) -> None:
    limiter = ReadBufferLimiter(50)
    gone = SharedReads(log, SEVERAL, limiter)
    await gone.read(Position(1, 0), **LIMITS)
    del gone
    stays = SharedReads(log, SEVERAL, limiter)
    await stays.read(Position(1, 0), **LIMITS)
    assert (stays.kept_bytes, limiter.bytes_held) == (40, 40)


async def test_many_slow_subscriptions_hold_no_more_than_the_broker_has_room_for(bench: Any, join: Any) -> None:
    """Each reads a hundred entries ahead for a consumer that wants one at a time; all get everything, in order."""
    names = [TopicName.parse(f"persistent://public/default/t{number}") for number in range(20)]
    for name in names:
        topic = await bench.topic(name)
        await topic.create_subscription("s")
        await bench.publish(topic, *range(100))
    bench.read_bytes_max = 20_000
    await bench.restart()
    members = [await join(await bench.topic(name), "c", 1) for name in names]
    log = (await bench.topic(names[0])).log
    wanted, log_read = [], log.read

    async def counted(start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        wanted.append(entries_max)
        return await log_read(start, entries_max=entries_max, bytes_max=bytes_max)

    log.read = counted
    held = []
    for _ in range(100):
        held.append(bench.registry.read_buffer_limiter.bytes_held)
        for consumer, _ in members:
            consumer.flow(1)
        await bench.settle()
    assert [sink.numbers() for _, sink in members] == [list(range(100))] * 20
    assert 10_000 < max(held) <= 20_000 < 20 * 100 * len(bench.entry(0))
    assert bench.registry.read_buffer_limiter.bytes_held == 0
    assert wanted == [1] * 99  # not a hundred entries again and again, to be let go again


def looked_up(reads: SharedReads, start: int, entries_max: int = 400) -> list[int] | None:
    found = reads.read_cached(Position(1, start), entries_max=entries_max, bytes_max=10**6)
    if found is None:
        return None
    numbers = entries(found)
    assert numbers == list(range(start, start + len(numbers)))
    return [len(numbers)]


def test_what_the_log_has_in_memory_is_looked_up_once_for_all(log: Any) -> None:
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(10**6))
    assert looked_up(reads, 0) is None
    for _ in range(5):
        assert [looked_up(reads, start) for start in (1000, 1400, 1800)] == [[400], [400], [200]]
    assert log.reads == [0, 1000]
    assert looked_up(reads, 2000, 1000) == [1000]
    assert looked_up(reads, 1999) == [1]
    assert log.reads == [0, 1000, 2000]
    assert reads.kept_bytes == reads.limiter.bytes_held == 20_000
    reads.forget_unused()
    reads.forget_unused()
    assert (reads.kept_bytes, reads.limiter.bytes_held) == (0, 0)


def test_of_what_the_log_has_in_memory_little_is_kept(log: Any) -> None:
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(10**6))
    for start in (1900, 1700, 1500, 1300, 1100):  # backwards, so that each look is one of its own
        assert looked_up(reads, start) == [400]
    assert reads.kept_bytes == 40_000
    assert looked_up(reads, 2950, 10) == [10]  # few, and found in no time
    assert reads.kept_bytes == 40_000


def test_alone_the_log_is_asked_for_what_is_wanted(log: Any) -> None:
    reads = SharedReads(log, ONE, ReadBufferLimiter(10**6))
    assert looked_up(reads, 1000) == looked_up(reads, 1000) == [400]
    assert (log.reads, reads.kept_bytes) == ([1000, 1000], 0)


async def test_alone_nothing_is_kept(log: Any) -> None:
    reads = SharedReads(log, ONE, ReadBufferLimiter(1000))
    await reads.read(Position(1, 0), **LIMITS)
    assert reads.kept_bytes == 0


async def test_when_a_read_fails_then_a_waiting_one_reads_and_all_are_told(log: Any) -> None:
    log.failing = True
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(1000))
    found = await asyncio.gather(*(reads.read(Position(1, 0), **LIMITS) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [PersistenceError] * 3


async def test_when_a_reader_is_cancelled_then_a_waiting_one_reads(log: Any) -> None:
    reads = SharedReads(log, SEVERAL, ReadBufferLimiter(1000))
    first = asyncio.create_task(reads.read(Position(1, 0), **LIMITS))
    second = asyncio.create_task(reads.read(Position(1, 0), **LIMITS))
    await asyncio.sleep(0)
    first.cancel()
    assert entries(await second) == [0, 1, 2, 3]


@pytest.mark.parametrize("sub_type", list(SubType))
async def test_ten_subscriptions_on_one_topic_read_a_backlog_once(bench: Any, join: Any, sub_type: SubType) -> None:
    topic = await bench.topic()
    for number in range(SUBSCRIPTIONS):
        await topic.create_subscription(f"s{number}")
    await bench.publish(topic, *range(2500))
    await bench.restart()
    topic = await bench.topic()
    reads = []
    log_read = topic.log.read

    async def counted(start: Position, **limits: int) -> list[LogEntry]:
        reads.append(start)
        return await log_read(start, **limits)

    topic.log.read = counted
    members = [
        await join(topic, "c", 300, sub_type=sub_type, subscription=f"s{number}") for number in range(SUBSCRIPTIONS)
    ]
    for _ in range(20):
        for consumer, _ in members:
            consumer.flow(150)
        await bench.settle()
    assert [sink.numbers() for _, sink in members] == [list(range(2500))] * SUBSCRIPTIONS
    assert len(reads) == 3  # of a thousand entries each

"""Reading from a client stops with the first reason and goes on without the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from interpulse.broker.binary.transport.flow_control import (
    OUTPUT,
    PUBLISHES,
    REQUESTS,
    Output,
    PendingPublishes,
    ProducerPublishes,
    PublishBuffer,
    Reading,
)
from tests.unit.broker.binary.conftest import FakeTransport


def pending(count_max: int = 1000, bytes_max: int = 1000) -> PendingPublishes:
    return in_buffer(PublishBuffer(), lambda: None, count_max, bytes_max)


def in_buffer(
    buffer: PublishBuffer, on_answered: Callable[[], None], count_max: int = 1000, bytes_max: int = 1000
) -> PendingPublishes:
    return PendingPublishes(count_max=count_max, bytes_max=bytes_max, buffer=buffer, on_answered=on_answered)


def test_pending_when_entries_come_and_are_answered_then_sums_of_all_producers_follow() -> None:
    total = pending()
    one, other = ProducerPublishes(total), ProducerPublishes(total)
    for size in (5, 6, 7):
        one.add([range(size)])
    other.add([range(100)])
    assert (total.count, total.bytes) == (4, 118)
    one.answered(2)
    assert (total.count, total.bytes) == (2, 107), "the oldest ones are answered"
    other.answered()
    assert (total.count, total.bytes) == (1, 7)


@pytest.mark.parametrize(
    ("count", "size", "full", "has_room"),
    [
        (0, 0, False, True),
        (2, 10, False, True),
        (3, 10, False, False),
        (4, 10, True, False),
        (1, 99, False, True),
        (1, 100, True, False),
    ],
)
def test_pending_when_count_or_bytes_reach_their_limit_then_full_and_half_of_the_count_is_room(
    count: int, size: int, full: bool, has_room: bool
) -> None:
    total = pending(count_max=4, bytes_max=100)
    producer = ProducerPublishes(total)
    for _ in range(count):
        producer.add([range(size)])
    assert (total.full, total.has_room) == (full, has_room)


def test_pending_when_one_entry_is_the_limit_then_room_comes_with_its_answer() -> None:
    total = pending(count_max=1)
    producer = ProducerPublishes(total)
    producer.add([range(1)])
    assert (total.full, total.has_room) == (True, False)
    producer.answered()
    assert (total.full, total.has_room) == (False, True)


def test_pending_when_entries_are_answered_then_told_after_the_sums_are_lowered() -> None:
    seen: list[tuple[int, int]] = []
    total = in_buffer(PublishBuffer(), lambda: seen.append((total.count, total.bytes)), 9, 9)
    producer = ProducerPublishes(total)
    producer.add([range(3)])
    producer.add([range(4)])
    assert seen == []
    producer.answered()
    producer.answered()
    assert seen == [(1, 4), (0, 0)]


def test_abandon_when_one_producer_is_closed_then_only_its_entries_are_gone() -> None:
    total = pending()
    closed, stays = ProducerPublishes(total), ProducerPublishes(total)
    closed.add([range(1)])
    closed.add([range(2)])
    stays.add([range(4)])
    closed.abandon()
    assert (total.count, total.bytes) == (1, 4)
    closed.abandon()
    assert (total.count, total.bytes) == (1, 4)


async def test_drained_when_the_last_entry_is_answered_then_all_who_wait_go_on() -> None:
    producer = ProducerPublishes(pending())
    await producer.drained()
    producer.add([range(1)])
    producer.add([range(1)])
    waiting = [asyncio.ensure_future(producer.drained()) for _ in range(2)]
    await asyncio.sleep(0)
    producer.answered()
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    producer.answered()
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)


async def test_drained_when_the_entries_are_abandoned_then_goes_on() -> None:
    producer = ProducerPublishes(pending())
    producer.add([range(1)])
    waiting = asyncio.ensure_future(producer.drained())
    await asyncio.sleep(0)
    producer.abandon()
    async with asyncio.timeout(60):
        await waiting


def test_buffer_when_all_connections_together_reach_its_limit_then_those_that_publish_are_full() -> None:
    buffer = PublishBuffer(100)
    one, other, silent = (in_buffer(buffer, lambda: None) for _ in range(3))
    ProducerPublishes(one).add([range(60)])
    ProducerPublishes(other).add([range(39)])
    assert (one.full, other.full, silent.full) == (False, False, False)
    ProducerPublishes(other).add([range(1)])
    assert (one.full, other.full, silent.full) == (True, True, False)


def test_buffer_when_half_of_it_is_answered_then_those_that_stopped_are_told_once() -> None:
    told: list[str] = []
    buffer = PublishBuffer(100)
    one, other = in_buffer(buffer, lambda: told.append("one")), in_buffer(buffer, lambda: told.append("other"))
    producer, producers = ProducerPublishes(one), ProducerPublishes(other)
    for size in (30, 21):
        producers.add([range(size)])
    producer.add([range(49)])
    assert (one.full, other.full) == (True, True)
    producers.answered()
    assert (told, one.has_room) == (["other"], False)
    producers.answered()
    assert sorted(told) == ["one", "other", "other", "other"]
    assert (one.has_room, other.has_room, buffer.bytes) == (True, True, 49)


def test_buffer_when_there_is_room_again_then_connections_go_on_in_the_order_in_which_they_stopped() -> None:
    resumed: list[int] = []
    buffer = PublishBuffer(100)
    answered = in_buffer(buffer, lambda: None)
    first = ProducerPublishes(answered)
    first.add([range(60)])
    waiting = [in_buffer(buffer, partial(resumed.append, number)) for number in range(20)]
    for each in waiting:
        ProducerPublishes(each).add([range(2)])
    assert all(each.full for each in reversed(waiting))
    first.answered()
    assert resumed == list(reversed(range(20)))


def test_buffer_when_a_connection_that_waits_is_lost_then_it_is_not_told() -> None:
    told: list[str] = []
    buffer = PublishBuffer(10)
    lost, stays = in_buffer(buffer, lambda: told.append("lost")), in_buffer(buffer, lambda: told.append("stays"))
    ProducerPublishes(lost).add([range(1)])
    producer = ProducerPublishes(stays)
    producer.add([range(9)])
    assert (lost.full, stays.full) == (True, True)
    lost.close()
    producer.answered()
    assert "lost" not in told


def test_buffer_when_it_has_no_limit_then_nobody_stops() -> None:
    buffer = PublishBuffer()
    one = in_buffer(buffer, lambda: None, bytes_max=2**40)
    ProducerPublishes(one).add([range(2**39)])
    assert (one.full, one.has_room) == (False, True)


@pytest.fixture
def transport() -> FakeTransport:
    return FakeTransport()


def test_reading_when_held_for_two_reasons_then_goes_on_when_both_are_gone(transport: FakeTransport) -> None:
    reading = Reading(transport)
    for reason in (PUBLISHES, OUTPUT, PUBLISHES):
        reading.hold(reason)
        assert not transport.reading
    reading.release(PUBLISHES)
    assert (transport.reading, reading.held_by) == (False, {OUTPUT})
    reading.release(OUTPUT)
    assert (transport.reading, reading.held_by) == (True, set())


def test_reading_when_released_from_what_did_not_hold_it_then_stays_as_it_is(transport: FakeTransport) -> None:
    reading = Reading(transport)
    reading.release(OUTPUT)
    assert transport.reading
    reading.hold(PUBLISHES)
    reading.release(REQUESTS)
    assert not transport.reading


def test_reading_when_the_transport_is_closing_then_is_not_resumed(transport: FakeTransport) -> None:
    reading = Reading(transport)
    reading.hold(OUTPUT)
    transport.close()
    reading.release(OUTPUT)
    assert not transport.reading


class Pipe(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[bytes]] = []
        self.closing = False

    def write(self, data: Any) -> None:
        self.writes.append([data])

    def writelines(self, list_of_data: Any) -> None:
        self.writes.append(list(list_of_data))

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 7


@pytest.fixture
async def pipe() -> Pipe:
    return Pipe()


@pytest.fixture
async def output(pipe: Pipe) -> Output:
    return Output(asyncio.get_running_loop(), pipe)


async def test_frames_when_sent_in_one_turn_then_written_once(output: Output, pipe: Pipe) -> None:
    output.send(b"a")
    output.send_pieces([b"b", b"c"], 2)
    assert pipe.writes == []
    assert (output.bytes_collected, output.bytes_waiting) == (3, 10)
    await asyncio.sleep(0)
    assert pipe.writes == [[b"abc"]]
    assert output.bytes_collected == 0


async def test_frames_when_some_are_large_then_only_small_ones_are_joined(output: Output, pipe: Pipe) -> None:
    large = bytes(200_000)
    for frame in (b"a", b"b", large, large, b"c"):
        output.send(frame)
    output.flush()
    assert pipe.writes == [[b"ab", large, large, b"c"]]
    assert pipe.writes[0][1] is large


async def test_frames_when_transport_is_closing_then_dropped(output: Output, pipe: Pipe) -> None:
    pipe.closing = True
    output.send(b"a")
    output.flush()
    output.flush()
    assert pipe.writes == []

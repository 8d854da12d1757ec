"""What a connection counts of entries without an answer, and when it may read."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.broker.binary.transport.pending_publishes import PendingPublishes


def pending(count_max: int = 1000, bytes_max: int = 1000) -> PendingPublishes:
    return PendingPublishes(count_max=count_max, bytes_max=bytes_max, on_answered=lambda: None)


def test_pending_when_entries_come_and_are_answered_then_sums_of_all_producers_follow() -> None:
    total = pending()
    one, other = total.of_producer(), total.of_producer()
    for size in (5, 6, 7):
        one.add(size)
    other.add(100)
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
    producer = total.of_producer()
    for _ in range(count):
        producer.add(size)
    assert (total.full, total.has_room) == (full, has_room)


def test_pending_when_one_entry_is_the_limit_then_room_comes_with_its_answer() -> None:
    total = pending(count_max=1)
    producer = total.of_producer()
    producer.add(1)
    assert (total.full, total.has_room) == (True, False)
    producer.answered()
    assert (total.full, total.has_room) == (False, True)


def test_pending_when_entries_are_answered_then_told_after_the_sums_are_lowered() -> None:
    seen: list[tuple[int, int]] = []
    total = PendingPublishes(count_max=9, bytes_max=9, on_answered=lambda: seen.append((total.count, total.bytes)))
    producer = total.of_producer()
    producer.add(3)
    producer.add(4)
    assert seen == []
    producer.answered()
    producer.answered()
    assert seen == [(1, 4), (0, 0)]


def test_abandon_when_one_producer_is_closed_then_only_its_entries_are_gone() -> None:
    total = pending()
    closed, stays = total.of_producer(), total.of_producer()
    closed.add(1)
    closed.add(2)
    stays.add(4)
    closed.abandon()
    assert (total.count, total.bytes) == (1, 4)
    closed.abandon()
    assert (total.count, total.bytes) == (1, 4)


async def test_drained_when_the_last_entry_is_answered_then_all_who_wait_go_on() -> None:
    producer = pending().of_producer()
    await producer.drained()
    producer.add(1)
    producer.add(1)
    waiting = [asyncio.ensure_future(producer.drained()) for _ in range(2)]
    await asyncio.sleep(0)
    producer.answered()
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    producer.answered()
    async with asyncio.timeout(60):
        await asyncio.gather(*waiting)


async def test_drained_when_the_entries_are_abandoned_then_goes_on() -> None:
    producer = pending().of_producer()
    producer.add(1)
    waiting = asyncio.ensure_future(producer.drained())
    await asyncio.sleep(0)
    producer.abandon()
    async with asyncio.timeout(60):
        await waiting

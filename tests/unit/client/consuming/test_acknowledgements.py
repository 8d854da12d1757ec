"""Redelivery after a delay."""

import asyncio

from interpulse.client.consuming.acknowledgements import RedeliveryTimer
from interpulse.model.ids import MessageId, Position


async def test_entries_when_due_together_then_come_in_one_list() -> None:
    due: asyncio.Queue[list[Position]] = asyncio.Queue()
    timer = RedeliveryTimer(due.put_nowait)
    for entry in range(3):
        timer.add(MessageId(1, entry), 20)
    timer.discard(MessageId(1, 1))
    first = await asyncio.wait_for(due.get(), 5)
    while len(first) < 2:
        first += await asyncio.wait_for(due.get(), 5)
    assert first == [Position(1, 0), Position(1, 2)]
    assert len(timer) == 0


async def test_entry_when_added_again_then_its_delay_begins_anew() -> None:
    timer = RedeliveryTimer(lambda positions: None)
    timer.add(MessageId(1, 0), 60_000)
    timer.add(MessageId(1, 1), 60_000)
    timer.add(MessageId(1, 0), 60_000)
    assert len(timer) == 2
    timer.discard_up_to(MessageId(1, 0))
    assert len(timer) == 1
    timer.clear()
    assert len(timer) == 0


async def test_entries_when_their_delays_differ_then_the_shortest_is_first() -> None:
    due: asyncio.Queue[list[Position]] = asyncio.Queue()
    timer = RedeliveryTimer(due.put_nowait)
    timer.add(MessageId(1, 0), 60_000)
    timer.add(MessageId(1, 1), 60)
    timer.add(MessageId(1, 2), 20)
    came = await asyncio.wait_for(due.get(), 5)
    if len(came) < 2:  # a busy machine may find both due at once
        came += await asyncio.wait_for(due.get(), 5)
    assert came == [Position(1, 2), Position(1, 1)]
    timer.add(MessageId(1, 0), 10)
    assert await asyncio.wait_for(due.get(), 5) == [Position(1, 0)]
    assert len(timer) == 0


async def test_batch_when_one_of_its_messages_is_done_then_its_entry_comes_again_for_the_others() -> None:
    due: asyncio.Queue[list[Position]] = asyncio.Queue()
    timer = RedeliveryTimer(due.put_nowait)
    for index in range(3):
        timer.add(MessageId(1, 0, -1, index), 20)
        timer.add(MessageId(1, 1, -1, index), 20)
    for index in range(3):
        timer.discard(MessageId(1, 0, -1, index))
    timer.discard(MessageId(1, 1, -1, 2))
    assert await asyncio.wait_for(due.get(), 5) == [Position(1, 1)]
    assert len(timer) == 0
    timer.add(MessageId(1, 1, -1, 0), 60_000)
    timer.discard(MessageId(1, 1, -1, 0))
    assert len(timer) == 0


async def test_batch_when_it_is_done_up_to_a_message_then_its_entry_comes_again_for_the_later_ones() -> None:
    timer = RedeliveryTimer(lambda positions: None)
    for index in range(3):
        timer.add(MessageId(1, 0, -1, index), 60_000)
        timer.add(MessageId(1, 1, -1, index), 60_000)
    timer.discard_up_to(MessageId(1, 1, -1, 1))
    assert len(timer) == 1
    timer.discard_up_to(MessageId(1, 1, -1, 2))
    assert len(timer) == 0

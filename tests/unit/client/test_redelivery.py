"""Delays before entries are asked for again."""

import asyncio

from interpulse.client.redelivery import RedeliveryTimer
from interpulse.model.ids import Position


async def test_entries_when_due_together_then_come_in_one_list() -> None:
    due: asyncio.Queue[list[Position]] = asyncio.Queue()
    timer = RedeliveryTimer(20, due.put_nowait)
    for entry in range(3):
        timer.add(Position(1, entry))
    timer.discard(Position(1, 1))
    first = await asyncio.wait_for(due.get(), 5)
    while len(first) < 2:
        first += await asyncio.wait_for(due.get(), 5)
    assert first == [Position(1, 0), Position(1, 2)]
    assert len(timer) == 0


async def test_entry_when_added_again_then_its_delay_begins_anew() -> None:
    timer = RedeliveryTimer(60_000, lambda positions: None)
    timer.add(Position(1, 0))
    timer.add(Position(1, 1))
    timer.add(Position(1, 0))
    assert len(timer) == 2
    timer.discard_up_to(Position(1, 0))
    assert len(timer) == 1
    timer.clear()
    assert len(timer) == 0

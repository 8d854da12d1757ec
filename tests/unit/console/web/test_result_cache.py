"""What takes long to find out, and is kept for a while."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.console.web.result_cache import ResultCache
from interpulse.model.errors import InvalidRequest


class Made:
    """Makes a result when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.times = 0

    async def make(self) -> int:
        self.times += 1
        await self.let.wait()
        return self.times


async def test_result_when_it_takes_long_then_is_not_waited_for() -> None:
    made, kept = Made(), ResultCache(lambda: 0.0)
    assert (await kept.get("a", made.make)).value is None
    assert (await kept.get("a", made.make)).value is None
    assert made.times == 1, "there is one look at a time"
    made.let.set()
    assert (await kept.get("a", made.make)).value == 1


async def test_result_when_it_is_old_then_is_made_again_and_shown_meanwhile() -> None:
    now, made = [0.0], Made()
    kept = ResultCache(lambda: now[0])
    made.let.set()
    assert (await kept.get("a", made.make)).value == 1
    now[0] = 1.0
    assert (await kept.get("a", made.make)).age_seconds == 1.0
    assert made.times == 1
    now[0] = 3.0
    made.let.clear()
    old = await kept.get("a", made.make)
    assert (old.value, old.age_seconds, made.times) == (1, 3.0, 2)


async def test_result_when_making_it_takes_seconds_then_is_kept_twenty_times_as_long() -> None:
    now, times = [0.0], [0]
    kept = ResultCache(lambda: now[0])

    async def make() -> int:
        now[0] += 3.0
        times[0] += 1
        return times[0]

    await kept.get("a", make)
    now[0] = 60.0
    await kept.get("a", make)
    assert times == [1]
    now[0] = 63.1
    await kept.get("a", make)
    assert times == [2]


async def test_result_when_making_it_fails_then_says_so_and_is_tried_again() -> None:
    kept = ResultCache(lambda: 0.0)

    async def fail() -> int:
        raise InvalidRequest("no")

    async def make() -> int:
        return 1

    with pytest.raises(InvalidRequest):
        await kept.get("a", fail)
    assert (await kept.get("a", make)).value == 1


async def test_results_when_nobody_looks_then_are_let_go() -> None:
    now, made = [0.0], Made()
    made.let.set()
    kept = ResultCache(lambda: now[0])
    for number in range(40):
        await kept.get(number, made.make)
    assert len(kept._entries) <= 17
    now[0] = 500.0
    await kept.get("other", made.make)
    assert set(kept._entries) == {"other"}


async def test_forgetting_ends_what_is_under_way_and_whoever_waits_asks_again() -> None:
    made, kept = Made(), ResultCache(lambda: 0.0)
    await kept.get("a", made.make)
    task = kept._entries["a"].task
    assert task is not None
    waiting = asyncio.create_task(kept.get("a", made.make))
    await asyncio.sleep(0)
    kept.forget()
    assert (await waiting).value is None
    with pytest.raises(asyncio.CancelledError):
        await task

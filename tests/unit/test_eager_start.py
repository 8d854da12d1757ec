"""Coroutines that are started before they get a task."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.eager_start import start_eagerly


async def test_eager_start_when_nothing_is_waited_for_then_done_at_once() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("done")

    assert start_eagerly(work()) is None
    assert seen == ["done"]


async def test_eager_start_when_it_waits_then_a_task_runs_the_rest_in_order() -> None:
    seen: list[object] = []
    first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        seen.append("started")
        seen.append(await first)
        await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await failing()
        seen.append(asyncio.current_task())

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    left = start_eagerly(work())
    assert left is not None
    task = asyncio.ensure_future(left)
    assert seen == ["started"]
    first.set_result("value")
    await task
    assert seen == ["started", "value", task]


async def test_eager_start_when_the_task_is_cancelled_then_the_work_is() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append("cleaned up")

    left = start_eagerly(work())
    assert left is not None
    task = asyncio.ensure_future(left)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cleaned up"]


async def test_eager_start_when_it_fails_then_the_failure_comes_from_where_it_is_run() -> None:
    async def at_once() -> None:
        raise ZeroDivisionError

    async def later() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        start_eagerly(at_once())
    left = start_eagerly(later())
    assert left is not None
    with pytest.raises(ZeroDivisionError):
        await left

"""A demonstration ends with its verdict, stays until Ctrl-C, and ends early at Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from interruption import run_until_interrupted


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def verdict() -> int:
    return 7


async def test_job_when_it_ends_and_nothing_shall_stay_then_its_code_comes_back() -> None:
    assert await run_until_interrupted(verdict(), threading.Event(), None) == 7


async def test_job_when_it_ends_and_all_shall_stay_then_waits_for_the_signal() -> None:
    abandoned = threading.Event()
    assert await run_until_interrupted(verdict(), abandoned, interrupt) == 7
    assert not abandoned.is_set()


async def test_job_when_it_is_interrupted_then_cancelled_and_the_threads_are_told() -> None:
    abandoned, cancelled = threading.Event(), []

    async def job() -> int:
        interrupt()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return 0

    assert await run_until_interrupted(job(), abandoned, None) == 1
    assert abandoned.is_set()
    assert cancelled == [True]


async def test_job_when_it_fails_then_its_error_comes_out() -> None:
    async def job() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run_until_interrupted(job(), threading.Event(), interrupt)

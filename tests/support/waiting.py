"""Waiting for what is not announced: another process, task or disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

SECONDS_MAX = 120
"""A generous bound: what has not happened by then on a busy machine never does."""

T = TypeVar("T")


def until(value: Callable[[], T], seconds: float = SECONDS_MAX) -> T:
    """The value as soon as it is true; fails with the last one."""
    deadline = time.monotonic() + seconds
    while not (found := value()):
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(0.02)
    return found


async def eventually(condition: Callable[[], object]) -> None:
    """Return when it is true, while the event loop goes on; raises TimeoutError."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.001)

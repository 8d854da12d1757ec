"""The bounded end of everything that a broker has opened."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from typing import Final

_logger = logging.getLogger(__name__)

_GIVE_UP_SECONDS: Final = 0.1
"""The time for a callback to end after it was cancelled."""


async def close_in_time(opened: AsyncExitStack, seconds: float, late_seconds: float = _GIVE_UP_SECONDS) -> None:
    """Close everything within ``seconds``, and what hangs then within ``late_seconds``.

    On a stalled disk, or without ZooKeeper, each callback may wait for it. Callbacks that still hang are abandoned, one
    after the other.
    """
    closing = asyncio.create_task(opened.aclose())
    try:
        await asyncio.wait([closing], timeout=seconds)
        if not closing.done():
            _logger.error("stop timed out seconds=%s", seconds)
        while not closing.done():
            closing.cancel()
            await asyncio.wait([closing], timeout=late_seconds)
            late_seconds = _GIVE_UP_SECONDS
        with suppress(asyncio.CancelledError):
            await closing
    finally:
        closing.cancel()

"""Work that is done again and again while the broker runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

__all__ = ["regularly"]

log = logging.getLogger(__name__)


async def regularly(what: str, seconds: Callable[[], float], work: Callable[[], Awaitable[None]]) -> None:
    """Pause for ``seconds``, asked each time, then do the ``work``, until cancelled.

    A round that fails is logged as an error with its cause. Those after it come all the same: one topic that cannot be
    looked after must not end the care for all others.
    """
    while True:
        await asyncio.sleep(seconds())
        try:
            await work()
        except Exception:
            log.exception("round failed, the next one comes in time work=%s", what)

"""Periodic tasks of the broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from interpulse.storage.api import MetadataUnavailable

log = logging.getLogger(__name__)


async def run_periodically(what: str, seconds: Callable[[], float], work: Callable[[], Awaitable[None]]) -> None:
    """Run ``work`` after each pause until cancelled. ``seconds`` returns the length of the next pause.

    A run that fails is logged, and the next one follows: the failure of one topic must not end the upkeep of all
    others. That the metadata cannot be reached is one line, whose error names the store and the remedy; any other error
    is logged with its traceback.
    """
    while True:
        await asyncio.sleep(seconds())
        try:
            await work()
        except MetadataUnavailable as error:
            log.warning("periodic task failed, the next run follows task=%s error=%s", what, error)
        except Exception:
            log.exception("periodic task failed, the next run follows task=%s", what)

"""Noticing that partitioned topics grow while producers, consumers and readers are open on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from interpulse.client.session import Session
from interpulse.model.errors import PulsarError, TopicNotFound

__all__ = ["PartitionWatch", "check_interval"]

_log = logging.getLogger(__name__)


def check_interval(name: str, interval_ms: int) -> None:
    """Raises ValueError for an interval at which nobody can ask."""
    if interval_ms < 1:
        hint = "; auto_update_partitions=False switches the looking off" if name.startswith("auto_update") else ""
        raise ValueError(f"{name}={interval_ms} must be at least 1{hint}")


class PartitionWatch:
    """Calls ``update`` once per interval until :meth:`stop`, which its owner awaits.

    A topic that is gone is left alone: it must not come back because somebody looked for its partitions (PIP-344).
    Other failures are logged, and the next interval tries again.
    """

    def __init__(self, session: Session, update: Callable[[], Awaitable[None]], *, interval_ms: int, what: str) -> None:
        self._update = update
        self._interval_s = interval_ms / 1000
        self._what = what
        self._task = session.spawn(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._update()
            except TopicNotFound as gone:
                _log.debug("no partitions to look for what=%s reason=%s", self._what, gone)
            except PulsarError as error:
                _log.warning("could not look for new partitions, trying again what=%s error=%s", self._what, error)

    async def stop(self) -> None:
        """Return when nothing of it runs any more."""
        self._task.cancel()
        await asyncio.wait([self._task])

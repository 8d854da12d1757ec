"""The regular look for new partitions of the topics that producers, consumers and readers are open on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from interpulse.client.session import Session
from interpulse.model.errors import PulsarError, TopicNotFound

__all__ = ["PartitionWatch"]

_log = logging.getLogger(__name__)


class PartitionWatch:
    """Calls ``update`` once per interval until :meth:`stop`, which its owner awaits.

    A deleted topic is left alone: looking for its partitions must not create it again (PIP-344). Other failures are
    logged, and the next interval tries again.
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
        """End it; returns when ``update`` runs no more."""
        self._task.cancel()
        await asyncio.wait([self._task])

"""Partitions of topics, for producers and consumers: names, opening, and the search for new ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.session import Session

_log = logging.getLogger(__name__)


def partition_names(topic: TopicName, partitions: int, first: int = 0) -> list[TopicName]:
    """Return the topics that hold the messages: the partitions from ``first`` on, or the topic itself."""
    return [topic.partition(index) for index in range(first, partitions)] if partitions else [topic]


class _OfOnePartition(Protocol):
    """Producer or consumer of one partition."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


async def open_all(several: Sequence[_OfOnePartition]) -> None:
    """Open all concurrently. Close all again if one cannot be opened or the caller is cancelled."""
    try:
        for outcome in await asyncio.gather(*(client.open() for client in several), return_exceptions=True):
            if outcome is not None:
                raise outcome
    except BaseException:
        await asyncio.gather(*(client.close() for client in several), return_exceptions=True)
        raise


class PartitionWatch:
    """Periodic search for new partitions. Calls ``update`` once per interval until its owner awaits :meth:`stop`.

    A deleted topic is ignored: looking up its partitions must not create it again (PIP-344). Other failures are logged,
    and the next interval tries again.
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
        """End the search. Return once ``update`` has ended."""
        self._task.cancel()
        await asyncio.wait([self._task])

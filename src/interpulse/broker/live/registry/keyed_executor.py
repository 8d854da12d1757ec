"""Serial work per topic name.

Each piece of work has a task of its own, so that a disconnecting client does not leave half of it undone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, KeysView, Sequence
from typing import Any, TypeVar

from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import CommitConflict

log = logging.getLogger(__name__)

R = TypeVar("R")

_SETTLE_SECONDS = 0.5  # slower work waits for something else, such as another cluster


class KeyedExecutor:
    """An executor of serial work per name."""

    def __init__(self) -> None:
        self._last: dict[TopicName, asyncio.Task[Any]] = {}
        """The latest pending work per name."""

    @property
    def names(self) -> KeysView[TopicName]:
        """The names with pending work, a live view."""
        return self._last.keys()

    async def idle(self, name: TopicName) -> None:
        """Return True if no work is pending for this name."""
        while name in self._last:
            await asyncio.wait([self._last[name]])

    async def run(self, names: Sequence[TopicName], work: Callable[[], Awaitable[R]]) -> R:
        """Run work in its turn, even if the caller is cancelled. Raises ServiceNotReady at the end."""
        task = self.submit(names, work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # the work itself, not its caller
                raise ServiceNotReady("The broker is shutting down") from None
            raise

    def submit(self, names: Sequence[TopicName], work: Callable[[], Awaitable[R]]) -> asyncio.Task[R]:
        """Start work after the pending work of these names. Later work on them waits for this."""
        before = {self._last[name] for name in names if name in self._last}
        task = asyncio.get_running_loop().create_task(_after(before, work))
        self._last.update(dict.fromkeys(names, task))
        task.add_done_callback(lambda done: self._ended(names, done))
        return task

    async def close(self) -> None:
        """Wait for all work; slow pieces are cancelled."""
        while self._last:
            _, late = await asyncio.wait(list(self._last.values()), timeout=_SETTLE_SECONDS)
            for task in late:
                task.cancel()

    def _ended(self, names: Sequence[TopicName], task: asyncio.Task[Any]) -> None:
        for name in names:
            if self._last.get(name) is task:
                del self._last[name]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PulsarError | CommitConflict):
            log.debug("work on topics failed topics=%s error=%s", names[:1], error)
        elif error is not None:
            log.error("work on topics failed topics=%s", names[:1], exc_info=error)


async def _after(before: set[asyncio.Task[Any]], work: Callable[[], Awaitable[R]]) -> R:
    if before:
        await asyncio.wait(before)
    return await work()

"""The order of work on topics: background tasks, serial work per topic, and the limit for concurrent loads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, KeysView, Sequence
from typing import Any, TypeVar

from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import CommitConflict

log = logging.getLogger(__name__)

R = TypeVar("R")

_SETTLE_SECONDS = 0.5  # slower work waits for something else, such as another cluster


class BackgroundTasks:
    """Tasks with an owner until they end. `close` cancels the rest."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Start a task. The log gets its failure."""
        task = self.own(asyncio.create_task(work))
        task.add_done_callback(self.log_failure)
        return task

    def own(self, task: asyncio.Task[R]) -> asyncio.Task[R]:
        """Own a task whose failure the caller handles."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def log_failure(self, task: asyncio.Task[Any]) -> None:
        """Write the failure of a task that ended to the log."""
        if not task.cancelled() and task.exception() is not None:
            log.error("background task failed", exc_info=task.exception())

    async def close(self) -> None:
        """Cancel the tasks, and return when they ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class KeyedExecutor:
    """An executor of serial work per name.

    Each piece of work has a task of its own, so that a disconnecting client does not leave half of it undone.
    """

    def __init__(self) -> None:
        self._last: dict[TopicName, asyncio.Task[Any]] = {}
        """The latest pending work per name."""

    @property
    def names(self) -> KeysView[TopicName]:
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

        async def work_in_turn() -> R:
            if before:
                await asyncio.wait(before)
            return await work()

        task = asyncio.get_running_loop().create_task(work_in_turn())
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


class LoadPermits:
    """The permits of loads (``maxConcurrentTopicLoadRequest``): each runs inside ``async with permits:``.

    Waiting ones continue in order.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        """``limit`` is called each time: it is a dynamic setting."""
        self._limit = limit
        self.taken = 0
        """The number of running loads."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.taken < self._limit() and not self._waiting:
            self.taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn  # the task that ends the wait has taken the permit
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        self.taken -= 1
        while self._waiting and self.taken < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():  # the waiting task may be cancelled
                self.taken += 1
                turn.set_result(None)

"""Tasks that belong to the registry and end with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

R = TypeVar("R")


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

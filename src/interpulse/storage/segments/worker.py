"""The threads of a log directory: one writes, one reads, and each runs its jobs in the order of the calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol

Job = Callable[[], None]


class Worker(Protocol):
    """A queue of blocking jobs, which run one after the other, outside the event loop. Jobs raise nothing."""

    def put(self, job: Job) -> None:
        """Run a job after all earlier ones. Return without waiting."""

    def stop(self) -> None:
        """Return when all jobs are done. No job may follow."""


StartWorker = Callable[[str], Worker]
"""A function that starts a worker with this name."""


class ThreadWorker:
    """A `Worker` with a thread of its own, which keeps no process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

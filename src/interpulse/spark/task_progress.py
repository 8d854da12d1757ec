"""Progress of a Spark job, while the thread that started it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnProgress = Callable[[int, int], None]
"""A callback that takes the finished number and the total."""

_POLL_S: Final = 0.2


@contextmanager
def task_progress(spark: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Report the finished tasks of the stages that run in this context repeatedly, from another thread."""
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def show() -> None:
        while not ended.wait(_POLL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                on_progress(sum(stage.numCompletedTasks for stage in stages if stage), tasks)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

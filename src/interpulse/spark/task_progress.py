"""How far a Spark job is, while the thread that started it waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OnProgress", "task_progress"]

OnProgress = Callable[[int, int], None]
"""Takes how much is done, and of how much."""

_POLL_S: Final = 0.2


@contextmanager
def task_progress(spark: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Tell the finished tasks of the stages that run within, from another thread, again and again."""
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

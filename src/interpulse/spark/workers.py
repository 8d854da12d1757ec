"""Spark's Python workers: their log, shown as the program that runs the job shows its own, and their memory.

Workers are other processes. They inherit the environment of the program and nothing else, so it says there which
function shows its log; a worker of another session finds nothing and changes nothing. Their daemon, which forks them,
looks for garbage in each of them after every task.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["WORKER_DAEMON", "configure_worker", "passed_to_workers", "settle_memory"]

_VARIABLE: Final = "INTERPULSE_WORKER_LOG"
WORKER_DAEMON: Final = "interpulse.spark.worker_daemon"
"""The daemon of our own sessions, as Spark is told it."""
_DAEMONS: Final = ("pyspark.daemon", WORKER_DAEMON)
_settled_in: int | None = None


@contextmanager
def passed_to_workers(module: str, function: str, *arguments: str) -> Iterator[None]:
    """For all processes that are started meanwhile."""
    os.environ[_VARIABLE] = json.dumps([module, function, *arguments])
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def configure_worker() -> None:
    """Show the log of this process as its program wants it, unless it is shown already."""
    told = os.environ.get(_VARIABLE)
    if told is not None and not logging.getLogger().handlers:
        module, function, *arguments = json.loads(told)
        getattr(importlib.import_module(module), function)(*arguments)


def settle_memory() -> None:
    """Leave what this worker has by now out of its daemon's search for garbage, once: modules, mostly, which stay.

    The search takes a tenth of a second otherwise, in each of the workers that a query or a micro-batch goes through,
    and the next task waits for it. In other processes nothing changes.
    """
    global _settled_in
    if _settled_in != os.getpid() and _is_worker():
        _settled_in = os.getpid()
        gc.freeze()


def _is_worker() -> bool:
    """Whether Spark's daemon started this process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name in _DAEMONS

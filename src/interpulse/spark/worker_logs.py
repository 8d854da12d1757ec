"""The log of Spark's Python workers: shown as the program that runs the job shows its own.

Workers are other processes. They inherit the environment of the program and nothing else, so it says there which
function shows its log; a worker of another session finds nothing and changes nothing.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["configure_worker", "passed_to_workers"]

_VARIABLE: Final = "INTERPULSE_WORKER_LOG"


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

"""Spark's Python workers: their log, in the form of the job's program, and their memory.

Workers inherit only the environment of the program, so a variable names the function that configures their log. A
worker of another session does not have it and changes nothing. The daemon that forks workers runs the garbage collector
in each of them after every task.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from interpulse.model.errors import PulsarError
from interpulse.spark.options.option import OptionError

_VARIABLE: Final = "INTERPULSE_WORKER_LOG"
WORKER_DAEMON: Final = "interpulse.spark.processes.worker_daemon"
"""Module of the worker daemon of our own sessions."""
_DAEMONS: Final = ("pyspark.daemon", WORKER_DAEMON)
_settled_in: int | None = None


@contextmanager
def passed_to_workers(module: str, function: str, *arguments: str) -> Iterator[None]:
    """Let all processes that start in this context run a function to configure their log."""
    os.environ[_VARIABLE] = json.dumps([module, function, *arguments])
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def configure_worker() -> None:
    """Configure the log of this process by its program's function, unless it is configured already."""
    setting = os.environ.get(_VARIABLE)
    if setting is not None and not logging.getLogger().handlers:
        module, function, *arguments = json.loads(setting)
        getattr(importlib.import_module(module), function)(*arguments)


def settle_memory() -> None:
    """Exclude the present objects of this worker from its daemon's garbage collection, once. They are mostly modules.

    The collection otherwise takes a tenth of a second in each worker of a query or micro-batch, while the next task
    waits. Other processes are unchanged.
    """
    global _settled_in
    if _settled_in != os.getpid() and _is_worker():
        _settled_in = os.getpid()
        gc.freeze()


def _is_worker() -> bool:
    """Return True if Spark's daemon started this process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name in _DAEMONS


Given = ParamSpec("Given")
Result = TypeVar("Result")


def strip_traceback(step: Callable[Given, Result]) -> Callable[Given, Result]:
    """Wrap a function that Spark calls: errors meant for users lose our frames and their causes."""

    @functools.wraps(step)
    def call(*args: Given.args, **named: Given.kwargs) -> Result:
        try:
            return step(*args, **named)
        except (PulsarError, OptionError, ModuleNotFoundError) as error:
            raise _plain(error) from None

    return call


def strip_traceback_while_reading(step: Callable[Given, Iterator[Result]]) -> Callable[Given, Iterator[Result]]:
    """Wrap a generator that Spark calls: errors meant for users lose our frames and their causes."""

    @functools.wraps(step)
    def call(*args: Given.args, **named: Given.kwargs) -> Iterator[Result]:
        try:
            yield from step(*args, **named)
        except (PulsarError, OptionError, ModuleNotFoundError) as error:
            raise _plain(error) from None

    return call


def _plain(error: Exception) -> Exception:
    """Return the error without our frames. An archive of ``--py-files`` may lack the dependencies of this package."""
    if not isinstance(error, ModuleNotFoundError):
        return error.with_traceback(None)
    return ModuleNotFoundError(
        f"package {error.name} is not installed where Spark's Python runs, and not in the archive of --py-files: "
        f"install interpulse[spark] there, or put the packages that it needs into the archive",
        name=error.name,
    )

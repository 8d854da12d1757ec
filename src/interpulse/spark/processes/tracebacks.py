"""Errors as users see them. Spark puts the whole traceback of Python into its own message."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from interpulse.model.errors import PulsarError
from interpulse.spark.options.option import OptionError

Given = ParamSpec("Given")
Result = TypeVar("Result")


def strip_traceback(step: Callable[Given, Result]) -> Callable[Given, Result]:
    """Wrap a function that Spark calls: errors meant for users lose our frames and their causes."""

    @functools.wraps(step)
    def call(*args: Given.args, **named: Given.kwargs) -> Result:
        try:
            return step(*args, **named)
        except (PulsarError, OptionError) as error:
            raise error.with_traceback(None) from None
        except ModuleNotFoundError as error:
            raise _missing(error) from None

    return call


def strip_traceback_while_reading(step: Callable[Given, Iterator[Result]]) -> Callable[Given, Iterator[Result]]:
    """Wrap a generator that Spark calls: errors meant for users lose our frames and their causes."""

    @functools.wraps(step)
    def call(*args: Given.args, **named: Given.kwargs) -> Iterator[Result]:
        try:
            yield from step(*args, **named)
        except (PulsarError, OptionError) as error:
            raise error.with_traceback(None) from None
        except ModuleNotFoundError as error:
            raise _missing(error) from None

    return call


def _missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Explain a missing module: an archive of ``--py-files`` may have this package without its dependencies."""
    return ModuleNotFoundError(
        f"package {error.name} is not installed where Spark's Python runs, and not in the archive of --py-files: "
        f"install interpulse[spark] there, or put the packages that it needs into the archive",
        name=error.name,
    )

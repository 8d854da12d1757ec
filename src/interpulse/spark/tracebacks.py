"""What users see of an error: Spark puts the whole traceback of Python into its own message."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from interpulse.model.errors import PulsarError
from interpulse.spark.options.option import OptionError

__all__ = ["strip_traceback", "strip_traceback_while_reading"]

Given = ParamSpec("Given")
Result = TypeVar("Result")


def strip_traceback(step: Callable[Given, Result]) -> Callable[Given, Result]:
    """For what Spark calls: an error whose sentence is meant for users leaves without our frames and its causes."""

    @functools.wraps(step)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return step(*given, **named)
        except (PulsarError, OptionError) as error:
            raise error.with_traceback(None) from None
        except ModuleNotFoundError as error:
            raise _missing(error) from None

    return call


def strip_traceback_while_reading(step: Callable[Given, Iterator[Result]]) -> Callable[Given, Iterator[Result]]:
    """The same for what gives its results one by one."""

    @functools.wraps(step)
    def call(*given: Given.args, **named: Given.kwargs) -> Iterator[Result]:
        try:
            yield from step(*given, **named)
        except (PulsarError, OptionError) as error:
            raise error.with_traceback(None) from None
        except ModuleNotFoundError as error:
            raise _missing(error) from None

    return call


def _missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """An archive of ``--py-files`` may hold this package and not what it needs."""
    return ModuleNotFoundError(
        f"package {error.name} is not installed where Spark's Python runs, and not in the archive of --py-files: "
        f"install interpulse[spark] there, or put the packages that it needs into the archive",
        name=error.name,
    )

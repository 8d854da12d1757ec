"""The pair ``--enable``/``--disable``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def switch(subject: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds both options; see `one_of` and `enabled`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("-d", "--disable", is_flag=True, help=f"Disable {subject}.")(command)
        return click.option("-e", "--enable", is_flag=True, help=f"Enable {subject}.")(command)

    return add


def one_of(enable: bool, disable: bool) -> bool:
    """Return the value of the pair. Raise UsageError unless exactly one is given."""
    if enable == disable:
        raise click.UsageError("Need to specify either --enable or --disable")
    return enable


def enabled(enable: bool, disable: bool) -> bool:
    """Return the value of the pair, False without either. Raise UsageError if both are given."""
    if enable and disable:
        raise click.UsageError("Specify either --enable or --disable")
    return enable

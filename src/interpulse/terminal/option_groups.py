"""Declarations of options, one line each, and groups of options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]


def option(
    names: str, text: str | None, kind: Any = None, default: Any = None, *, shown: bool = True, **more: Any
) -> Decorator:
    """Return an option. ``names`` are its flags, then its parameter where that has another name.

    The help shows the default, unless it is 0, whose meaning the text gives, or ``shown`` is False.
    """
    if default is not None:
        more |= {"default": default, "show_default": shown and default != 0}
    return click.option(*names.split(), help=text, type=kind, **more)


def flag(names: str, text: str | None, **more: Any) -> Decorator:
    """Return an option without a value; see `option`."""
    return click.option(*names.split(), help=text, is_flag=True, **more)


def option_group(*options: Decorator) -> Callable[[Command], Command]:
    """Combine several options into one decorator. The help lists them in this order."""

    def add(command: Command) -> Command:
        for declare in reversed(options):
            command = declare(command)
        return command

    return add

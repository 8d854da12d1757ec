"""Repeated output of an answer, for ``--watch``."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

import click

from interpulse.model.errors import PulsarError
from interpulse.terminal.option_groups import flag

T = TypeVar("T")

_PAUSE_S: Final = 2.0

watch_option = flag("-w --watch watched", "Print it again every two seconds, until Ctrl-C.")


async def show_watched(
    ask: Callable[[], Awaitable[T]], show: Callable[[T], None], *, watched: bool, pause_s: float = _PAUSE_S
) -> None:
    """Print the answer.

    With ``watched``, print it repeatedly: on a terminal in place of the last one, elsewhere when it changes. After the
    first answer, errors are printed and the request is repeated.
    """
    import asyncio  # only here: help starts without it

    answer = await ask()
    if not watched:
        show(answer)
        return
    shown: object = None
    try:
        while True:
            if answer != shown or sys.stdout.isatty():
                click.clear()  # nothing off a terminal
                click.echo(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"), err=not sys.stdout.isatty())
                show(answer)
                shown = answer
            await asyncio.sleep(pause_s)
            try:
                answer = await ask()
            except PulsarError as problem:
                click.echo(f"{problem}", err=True)
    except asyncio.CancelledError:
        return  # Ctrl-C is how one stops to watch

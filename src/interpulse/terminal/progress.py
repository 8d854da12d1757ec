"""Progress of a command, on one line of standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import click

_RENEWED_S: Final = 0.2
_LOGGED_S: Final = 5.0
_BAR_WIDTH: Final = 20


class Progress:
    """Counter of completed items. On a terminal it is one line that is redrawn, and erased at the end.

    ``form`` contains ``{done}``, and with a total also ``{total}`` and ``{bar}``. Elsewhere nothing is shown, or with
    ``logged`` a line every five seconds. A command that ends sooner shows nothing.
    """

    def __init__(self, form: str, *, logged: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._form = form
        self._clock = clock
        self._on_terminal = _on_terminal()
        self._shows = self._on_terminal or logged
        self._pause_s = _RENEWED_S if self._on_terminal else _LOGGED_S
        self._next = clock() + self._pause_s
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *failed: object) -> None:
        self.wipe()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show the count. Cheap enough for every message: most calls only read the clock."""
        if not self._shows or (now := self._clock()) < self._next:
            return
        self._next = now + self._pause_s
        text = self._form.format(done=done, total=total, bar=_bar(done, total))
        click.echo("\r" + text if self._on_terminal else text, nl=not self._on_terminal, err=True)
        self._width = len(text)

    def wipe(self) -> None:
        """Erase the line from the terminal."""
        if self._on_terminal and self._width:
            click.echo("\r" + " " * self._width + "\r", nl=False, err=True)


def _bar(done: int, total: int | None) -> str:
    filled = _BAR_WIDTH * done // total if total else 0
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]"


def _on_terminal() -> bool:
    return sys.stderr.isatty()

"""How far a long look or repair has come, for a person who watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import click

__all__ = ["Advance", "Progress"]

_STEP: Final = 100
_RENEWED_S: Final = 0.2
_TOLD_S: Final = 5.0


class Progress:
    """Tells a person at a terminal how far something has come, on one line that is wiped at the end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *failed: object) -> None:
        if self._shown:
            click.echo("\r" + " " * self._shown + "\r", nl=False, err=True)

    def __call__(self, done: int, total: int) -> None:
        if done % _STEP == 0 and _watched():
            text = f"{self._what}: {done} of {total}"
            click.echo("\r" + text, nl=False, err=True)
            self._shown = len(text)


def _watched() -> bool:
    return sys.stderr.isatty()


class Advance:
    """Tells how many are done: on a terminal on one line that is renewed, elsewhere with a line now and then.

    ``total`` None: nobody knows how many there will be. What takes no time is not told.
    """

    def __init__(self, what: str, total: int | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._words = what if total is None else f"of {total} {what}"
        self._clock = clock
        self._watched = _watched()
        self._pause_s = _RENEWED_S if self._watched else _TOLD_S
        self._next = clock() + self._pause_s
        self._shown = 0

    def __call__(self, done: int) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + self._pause_s
        text = f"{done} {self._words}"
        click.echo("\r" + text if self._watched else text, nl=not self._watched, err=True)
        self._shown = len(text)

    def wipe(self) -> None:
        """Leave nothing on the line of the terminal."""
        if self._watched and self._shown:
            click.echo("\r" + " " * self._shown + "\r", nl=False, err=True)

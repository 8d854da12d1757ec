"""How far a long look or repair has come, for a person who watches."""

from __future__ import annotations

import sys
from typing import Final

import click

__all__ = ["Progress"]

_STEP: Final = 100


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

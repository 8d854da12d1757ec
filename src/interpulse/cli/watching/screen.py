"""``top`` on a terminal: one screen that is drawn anew, and two keys. Imported only where there is rich."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from interpulse.cli.watching.rows import Table, shown, sorted_rows

__all__ = ["Screen", "keys_pressed"]

_LINES_AROUND: Final = 4
_STATES: Final = {"HELD": "red", "DISCONNECTED": "red", "PROVISIONING": "yellow"}


class Screen:
    """Shows as many rows as there is room for."""

    def __init__(self, table: Table, heading: str, console: Console | None = None) -> None:
        self._table = table
        self._heading = heading
        self._console = console or Console()
        self._rows: list[dict[str, object]] = []
        self._title: str = ""
        self._problems: tuple[str, ...] = ()
        self._live = Live(get_renderable=self.drawn, console=self._console, auto_refresh=False, screen=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *failed: object) -> None:
        self._live.stop()

    def show(self, title: str, rows: list[dict[str, object]], problems: tuple[str, ...]) -> None:
        self._title, self._rows, self._problems = title, rows, problems
        self._live.refresh()

    def sort_by_next(self) -> None:
        headings = self._table.headings
        self._heading = headings[(headings.index(self._heading) + 1) % len(headings)]
        self._live.refresh()

    def drawn(self) -> Group:
        room = max(1, self._console.height - _LINES_AROUND - len(self._problems))
        rows = sorted_rows(self._table, self._rows, self._heading)[:room]
        table = RichTable(box=None, pad_edge=False)
        for column in self._table.columns:
            marked = f"{column.heading}{' v' if column.heading == self._heading else ''}"
            table.add_column(marked, justify="right" if column.is_number else "left", no_wrap=True, overflow="ellipsis")
        for cells in shown(self._table, rows):
            table.add_row(*(Text(cell, _STATES.get(cell, "")) for cell in cells))
        problems = [Text(problem, "red") for problem in self._problems]
        return Group(Text(self._title, "bold"), *problems, table, Text("q ends, s sorts by the next column", "dim"))


@contextlib.contextmanager
def keys_pressed(on_key: Callable[[str], None]) -> Iterator[None]:
    """Calls for each key, while standard input is a terminal of a system that can do that."""
    try:
        import termios
        import tty
    except ImportError:  # Windows; Ctrl-C ends there
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def read() -> None:
        for key in os.read(descriptor, 32).decode(errors="replace"):
            on_key(key)

    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

"""Screen of ``top`` on a terminal, and its keys. Imported only if rich is installed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from interpulse.cli.watching.rows import Table, shown, sorted_rows
from interpulse.terminal.formats import to_cell

_LINES_AROUND: Final = 4
_TEXT_MIN: Final = 20
_STATES: Final = {"HELD": "red", "DISCONNECTED": "red", "PROVISIONING": "yellow"}
_KEYS: Final = "q ends, s and S sort by the next and the last column, r turns the order round, / filters by the topic"
_KEY: Final = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_RIGHT: Final = ("s", "\x1b[C", "\x1bOC")
_LEFT: Final = ("S", "\x1b[D", "\x1bOD")
_ENTER: Final = ("\r", "\n")
_ESCAPE: Final = "\x1b"
_BACKSPACE: Final = ("\x7f", "\b")
_END: Final = ("q", "Q", "\x04")


class Screen:
    """Full-screen table with as many rows as fit. ``on_end`` is called when a key ends it."""

    def __init__(
        self,
        table: Table,
        heading: str,
        console: Console | None = None,
        *,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self._heading = heading
        self._console = console or Console()
        self.end = on_end
        self._rows: list[dict[str, object]] = []
        self._title: str = ""
        self._problems: tuple[str, ...] = ()
        self._turned = False
        self._text = ""
        """Filter: only topics whose names contain this text."""
        self._typing = False
        self._live = Live(get_renderable=self.drawn, console=self._console, auto_refresh=False, screen=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *failed: object) -> None:
        self._live.stop()

    def show(self, title: str, rows: list[dict[str, object]], problems: tuple[str, ...]) -> None:
        self._title, self._rows, self._problems = title, rows, problems
        self.draw()

    def draw(self) -> None:
        """Redraw, for example after the window changed its size."""
        self._live.refresh()

    def press(self, key: str) -> None:
        """Handle one key, or the escape sequence that a terminal sends for it."""
        if self._typing:
            self._type(key)
        elif key in _END:
            self.end()
            return
        elif key in _RIGHT or key in _LEFT:
            self._sort_by_next(1 if key in _RIGHT else -1)
        elif key == "r":
            self._turned = not self._turned
        elif key == "/":
            self._typing = True
        elif key == _ESCAPE:
            self._text = ""
        self.draw()

    def _type(self, key: str) -> None:
        if key in _ENTER:
            self._typing = False
        elif key == _ESCAPE:
            self._typing, self._text = False, ""
        elif key in _BACKSPACE:
            self._text = self._text[:-1]
        elif len(key) == 1 and key.isprintable():
            self._text += key

    def _sort_by_next(self, step: int) -> None:
        headings = self._table.headings
        self._heading = headings[(headings.index(self._heading) + step) % len(headings)]
        self._turned = False

    def drawn(self) -> Group:
        room = max(1, self._console.height - _LINES_AROUND - len(self._problems))
        wanted = [row for row in self._rows if self._text.casefold() in str(row["topic"]).casefold()]
        ordered = sorted_rows(self._table, wanted, self._heading)
        rows = (ordered[::-1] if self._turned else ordered)[:room]
        table = RichTable(box=None, pad_edge=False)
        written = [[to_cell(cell) for cell in cells] for cells in shown(self._table, rows)]
        mark = " ^" if self._turned else " v"
        for index, column in enumerate(self._table.columns):
            heading = f"{column.heading}{mark if column.heading == self._heading else ''}"
            widest = max([len(heading), *(len(cells[index]) for cells in written)])
            table.add_column(
                heading,
                justify="right" if column.is_number else "left",
                min_width=widest if column.is_number else min(widest, _TEXT_MIN),  # half a number would be another one
                no_wrap=True,
                overflow="ellipsis",
            )
        for cells in written:
            table.add_row(*(Text(cell, _STATES.get(cell, "")) for cell in cells))
        problems = [_line(problem, "red") for problem in self._problems]
        return Group(_line(self._title, "bold"), *problems, table, _line(*self._hint(len(ordered))))

    def _hint(self, matching: int) -> tuple[str, str]:
        if self._typing:
            return f"/{self._text}_  Enter keeps it, Escape shows all again", "bold"
        if self._text:
            return f"{matching:,} of {len(self._rows):,} rows have {self._text!r}, Escape shows all; {_KEYS}", "dim"
        return _KEYS, "dim"


def _line(text: str, style: str) -> Text:
    """Cut off what does not fit, since a second line would push the last one off the screen."""
    return Text(to_cell(text), style, no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def attended(screen: Screen) -> Iterator[None]:
    """Report keys and window sizes to the screen while the context is open, if the terminal supports it."""
    with contextlib.ExitStack() as ends:
        try:
            import signal
            import termios
            import tty
        except ImportError:  # Windows; Ctrl-C ends there
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, screen.draw)
        ends.callback(loop.remove_signal_handler, signal.SIGWINCH)
        if sys.stdin.isatty():
            descriptor = sys.stdin.fileno()
            before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            ends.callback(termios.tcsetattr, descriptor, termios.TCSADRAIN, before)
            loop.add_reader(descriptor, _read, descriptor, screen)
            ends.callback(loop.remove_reader, descriptor)
        yield


def _read(descriptor: int, screen: Screen) -> None:
    try:
        typed = os.read(descriptor, 1024)
    except OSError:  # the terminal is gone
        typed = b""
    if not typed:
        screen.end()
    for key in _KEY.findall(typed.decode(errors="replace")):
        screen.press(key)

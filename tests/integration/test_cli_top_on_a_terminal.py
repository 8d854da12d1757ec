"""``interpulse top`` on a terminal: keys, a new size of the window, and a cluster that goes and comes back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.support.waiting import SECONDS_MAX, until

pytestmark = pytest.mark.slow

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program in a terminal of its own, and what came from it since the last key."""

    def __init__(self, *command: str) -> None:
        self._ours, theirs = pty.openpty()
        self._settings = termios.tcgetattr(theirs)
        self._size(24, 160)
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env=environment | {"TERM": "xterm-256color"},
        )  # fmt: skip
        self._theirs = theirs
        os.set_blocking(self._ours, False)
        self.raw = ""

    def _size(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def text(self) -> str:
        """What came so far, without the sequences that place it."""
        if select.select([self._ours], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                self.raw += os.read(self._ours, 1 << 16).decode(errors="replace")
        return _SEQUENCE.sub("", self.raw)

    def press(self, keys: str) -> None:
        self.text()
        self.raw = ""
        os.write(self._ours, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        self.text()
        self.raw = ""
        self._size(lines, columns)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def shows(self, *words: str) -> None:
        until(lambda: all(word in self.text() for word in words))

    @property
    def is_as_before(self) -> bool:
        """Its settings are those that a shell left."""
        return termios.tcgetattr(self._theirs) == self._settings

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)


@contextlib.contextmanager
def top(web_url: str, *arguments: str) -> Iterator[Terminal]:
    terminal = Terminal("interpulse.cli", "top", *arguments, "-i", "0.5", "--admin-url", web_url)
    try:
        yield terminal
    finally:
        terminal.close()


def test_top_on_a_terminal_when_keys_are_pressed_then_does_what_it_says(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        for name in ("apples", "pears"):
            broker.admin.topics.create(f"public/default/{name}")
        with top(broker.web_url, "topics", "public/default") as terminal:
            terminal.shows("apples", "pears", "IN/S v", "2 topics")
            terminal.press("s")
            terminal.shows("IN-MB/S v")
            terminal.press("/pear")
            terminal.shows("/pear_")
            terminal.press("\r")
            terminal.shows("1 of 2 rows have 'pear'")
            terminal.resize(12, 150)
            terminal.shows("pears")
            broker.stop()
            terminal.press("r")
            terminal.shows("Cannot reach", "pears", "IN-MB/S ^")
            broker.restart()
            until(lambda: _is_well(terminal))
            terminal.press("q")
            until(lambda: "\x1b[?1049l" in terminal.text() or "\x1b[?1049l" in terminal.raw)
            assert terminal.process.wait(SECONDS_MAX) == 0
            assert terminal.is_as_before


def _is_well(terminal: Terminal) -> bool:
    """The screen is drawn without a problem."""
    terminal.press("x")
    until(lambda: "rows have" in terminal.text())
    return "Cannot reach" not in terminal.text()


def test_top_on_a_terminal_when_the_cluster_does_not_answer_at_first_then_says_so_and_ends(tmp_path: Path) -> None:
    with top("http://127.0.0.1:1") as terminal:
        terminal.shows("Cannot reach")
        assert terminal.process.wait(SECONDS_MAX) == 5
        assert terminal.is_as_before

"""The screen of ``top``, and what keys do to it."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.table import Table

from interpulse.cli.watching.rows import TABLES
from interpulse.cli.watching.screen import _KEY, Screen

TOPICS = TABLES["topics"]


class Watched:
    """A screen of ten lines with fifty topics, and what was drawn last."""

    def __init__(self, width: int = 200) -> None:
        self.ended = False
        self._console = Console(
            file=io.StringIO(), width=width, height=10, force_terminal=True, color_system=None, legacy_windows=False
        )
        self.screen = Screen(TOPICS, "IN/S", self._console, on_end=self._end)
        rows = [row for number in range(50) for row in TOPICS.rows(f"t{number:02}", {"msgRateIn": number})]
        self.screen.show("title", rows, ("no answer from t99",))

    def _end(self) -> None:
        self.ended = True

    def type(self, keys: Sequence[str]) -> list[str]:
        """The lines afterwards."""
        for key in keys:
            self.screen.press(key)
        with self._console.capture() as drawn:
            self._console.print(self.screen.drawn())
        return drawn.get().splitlines()

    @property
    def marked(self) -> str:
        """The heading with a mark."""
        table = self.screen.drawn().renderables[2]
        assert isinstance(table, Table)
        headings = [str(column.header) for column in table.columns]
        return next(heading for heading in headings if " " in heading)


def test_screen_when_drawn_then_has_as_many_rows_as_there_is_room_for() -> None:
    lines = Watched().type([])
    assert len(lines) <= 10
    assert lines[:2] == ["title", "no answer from t99"]
    assert [line.split()[0] for line in lines[3:-1]] == ["t49", "t48", "t47", "t46", "t45"]


def test_screen_when_it_is_narrow_then_has_no_more_lines() -> None:
    lines = Watched(30).type([])
    assert len(lines) == 9
    assert lines[-1].startswith("q ends, s and S sort")


@pytest.mark.parametrize(
    ("keys", "marked", "first"),
    [
        ("s", "IN-MB/S v", "t00"),
        ("S", "TOPIC v", "t00"),
        (["\x1b[C", "\x1b[D"], "IN/S v", "t49"),
        ("r", "IN/S ^", "t00"),
        ("rr", "IN/S v", "t49"),
        ("Sr", "TOPIC ^", "t49"),
        ("rsS", "IN/S v", "t49"),
        ("x", "IN/S v", "t49"),
    ],
)
def test_key_when_pressed_then_sorts(keys: Sequence[str], marked: str, first: str) -> None:
    watched = Watched()
    lines = watched.type(keys)
    assert (watched.marked, lines[3].split()[0]) == (marked, first)


@pytest.mark.parametrize(
    ("keys", "rows", "hint"),
    [
        ("/T1", 5, "/T1_"),
        (["/", "1", "x", "\x7f", "\r"], 5, "14 of 50 rows have '1'"),
        ("/13\r", 1, "1 of 50 rows have '13'"),
        ("/13\x1b", 5, "q ends"),
        ("/13\r\x1b", 5, "q ends"),
        (["/", "1", "3", "\x1b[A", "\n"], 1, "1 of 50 rows have '13'"),
        ("/q\r", 0, "0 of 50 rows have 'q'"),
    ],
)
def test_text_when_typed_then_only_topics_with_it_are_shown(keys: Sequence[str], rows: int, hint: str) -> None:
    watched = Watched()
    lines = watched.type(keys)
    assert (len(lines[3:-1]), lines[-1].startswith(hint), watched.ended) == (rows, True, False)


@pytest.mark.parametrize("key", ["q", "Q", "\x04"])
def test_key_when_it_ends_the_screen_then_says_so(key: str) -> None:
    watched = Watched()
    watched.type([key])
    assert watched.ended


def test_name_when_it_has_control_characters_then_they_are_spelled_out() -> None:
    watched = Watched()
    watched.screen.show("title", list(TOPICS.rows("t\x1b[2J", {})), ())
    assert "\x1b" not in "".join(watched.type([]))


def test_keys_when_several_come_at_once_then_are_told_apart() -> None:
    assert _KEY.findall("s\x1b[C\x1bOD\x1bq\x1b[15~/") == ["s", "\x1b[C", "\x1bOD", "\x1b", "q", "\x1b[15~", "/"]

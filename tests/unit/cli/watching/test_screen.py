"""The screen of ``top``."""

import io

from rich.console import Console

from interpulse.cli.watching.rows import TABLES
from interpulse.cli.watching.screen import Screen


def test_screen_when_drawn_then_has_as_many_rows_as_there_is_room_for() -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, height=10, force_terminal=True, color_system=None)
    table = TABLES["topics"]
    screen = Screen(table, "IN/S", console)
    rows = [row for number in range(50) for row in table.rows(f"t{number:02}", {"msgRateIn": number})]
    screen.show("title", rows, ("no answer from t99",))
    console.print(screen.drawn())
    text = out.getvalue()
    assert ("title" in text, "no answer from t99" in text, "t49" in text, "t44" in text) == (True, True, True, False)
    screen.sort_by_next()
    assert "IN-MB/S v" in [column.header for column in screen.drawn().renderables[2].columns]

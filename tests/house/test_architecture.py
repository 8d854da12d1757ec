"""The pages for people who change the code name files and functions that are there."""

import re

import pytest

from tests.house.sources import ROOT, tracked_files

PAGES = ("ARCHITECTURE.md", "STYLE.md", "glossary.md", "decisions/0011-rooms-along-imports.md")
SOURCE = ROOT / "src/interpulse"
FILES_OF_A_ROOM_MAX = 18
"""About fifteen, as docs/STYLE.md says; `rules` stays flat for the reasons of docs/decisions/0011."""


def rooms() -> set[str]:
    """Every package below src/interpulse, by its path."""
    return {str(path.parent.relative_to(SOURCE)) for path in tracked_files() if path.is_relative_to(SOURCE)} - {"."}


@pytest.mark.parametrize("page", PAGES)
def test_files_when_a_page_names_them_then_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    paths = [f"/{path.relative_to(ROOT)}" for path in tracked_files()]
    named = re.findall(r"`([\w/]+\.(?:py|md|toml))(?:`|:)", text)
    assert not [name for name in named if not any(path.endswith(f"/{name}") for path in paths)]


def test_functions_when_the_map_names_them_then_stand_in_their_file() -> None:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    named = re.findall(r"`([\w/]+\.py)(?:`: `|: )(\w+)`", text)
    assert len(named) > 5
    assert not [(path, name) for path, name in named if f"def {name}(" not in (SOURCE / path).read_text()]


def test_tree_when_read_then_has_every_room() -> None:
    block = (ROOT / "docs/ARCHITECTURE.md").read_text().partition("src/interpulse/\n")[2].partition("\nsrc/")[0]
    path: list[str] = []
    shown = set()
    for indent, room in re.findall(r"^( +)(\w+)/(?=\s)", block + "\n", re.MULTILINE):
        path[len(indent) // 2 - 1 :] = [room]
        shown.add("/".join(path))
    assert shown == rooms()


def test_rooms_when_large_then_have_sub_rooms() -> None:
    sizes = {room: len([each for each in (SOURCE / room).glob("*.py") if each.stem != "__init__"]) for room in rooms()}
    assert {room for room, size in sizes.items() if size > FILES_OF_A_ROOM_MAX} == {"rules"}

"""The files of the console, and those of others among them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from interpulse.console.web.rendering import DIRECTORY, StaticFiles

OURS = {"console.css", "console.js", "icon.svg", "tail.js"}
AXE = Path(__file__).parents[3] / "support" / "axe"


@pytest.mark.parametrize(("directory", "ours"), [(DIRECTORY, OURS), (AXE, set())], ids=["console", "tests"])
def test_vendored_files_are_those_of_their_list(directory: Path, ours: set[str]) -> None:
    listed = json.loads((directory / "vendored.json").read_text())
    licences = {file["licenceFile"] for file in listed.values()}
    assert {path.name for path in directory.iterdir()} == {*listed, *licences, *ours, "vendored.json"}
    for name, file in listed.items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == file["sha256"], name
        assert file["package"]
        assert file["version"]
        assert file["licence"]


def test_response_when_there_is_no_such_file_then_is_none() -> None:
    files = StaticFiles()
    for name in ("vendored.json", "LICENSE-htmx.txt", "../site.py", ""):
        assert files.response(name) is None

"""Extras of the package: README lists each, and sentences about something missing name no other."""

from __future__ import annotations

import ast
import re
import tomllib

from tests.house.sources import ROOT, modules

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_readme_when_read_then_its_table_has_every_extra() -> None:
    table = (ROOT / "README.md").read_text().partition("| extra | adds |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == EXTRAS


def test_sentences_when_they_name_an_extra_then_the_package_has_it() -> None:
    calls = [
        node.args[0]
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pip_install"
    ]
    named = {argument.value for argument in calls if isinstance(argument, ast.Constant)}
    assert len(calls) > 10
    assert named <= EXTRAS


def test_commands_when_they_install_an_extra_then_one_place_writes_them() -> None:
    here = "src/interpulse/model/extras.py"
    found = [
        path for path in (ROOT / "src").rglob("*.py") if re.search(r"pip install '?interpulse\[", path.read_text())
    ]
    assert [str(path.relative_to(ROOT)) for path in found] == [here]

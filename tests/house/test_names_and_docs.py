"""House rules that no linter knows: what is public is explained, and named as docs/STYLE.md says."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.sources import ROOT, modules, public_definitions, tracked_files

# A word that would fit any class says nothing about this one.
EMPTY_ENDINGS = ("Manager", "Service", "Helper", "Util", "Utils", "Impl", "Base", "Common", "Handler")
# Functions there are named like the command or the REST operation they stand for: that is their explanation.
NAMED_BY_THE_PROTOCOL = ("interpulse.wire.commands", "interpulse.broker.binary", "interpulse.broker.rest")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("module", sorted(modules()))
def test_module_when_read_then_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(modules()[module])


@pytest.mark.parametrize("module", sorted(modules()))
def test_public_classes_and_functions_when_read_then_say_what_they_are_for(module: str) -> None:
    """Methods are left out where their name and types say it all; the reader decides that, not a checker."""
    named_by_protocol = module.startswith(NAMED_BY_THE_PROTOCOL)
    silent = [
        name
        for name, node in public_definitions(modules()[module])
        if "." not in name
        and not ast.get_docstring(node)
        and not (named_by_protocol and not isinstance(node, ast.ClassDef))
    ]
    assert not silent, f"{module} has public names without a docstring: {silent}"


@pytest.mark.parametrize("module", sorted(modules()))
def test_classes_when_named_then_avoid_empty_words(module: str) -> None:
    classes = [node.name for node in ast.walk(modules()[module]) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if name.endswith(EMPTY_ENDINGS)]


def test_map_of_what_is_loaded_when_read_then_names_every_module() -> None:
    room = "interpulse.broker.live"
    there = {name.removeprefix(f"{room}.") for name in modules() if name.startswith(f"{room}.")}
    assert set(re.findall(r"`(\w+)`", ast.get_docstring(modules()[room]) or "")) == there


@pytest.mark.parametrize(
    "page", [p for p in tracked_files() if p.suffix == ".md"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_links_between_pages_when_followed_then_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in LINK.findall(text) if "://" not in target]
    assert not [target for target in targets if target and not (page.parent / target).exists()]

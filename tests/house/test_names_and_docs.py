"""House rules that no linter knows: what is public is explained, and named as docs/STYLE.md says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from interpulse.model.adjustments import AUDITED_KINDS
from tests.house.sources import ROOT, modules, public_definitions, tracked_files

# A word that would fit any class says nothing about this one.
EMPTY_ENDINGS = ("Manager", "Service", "Helper", "Util", "Utils", "Impl", "Base", "Common", "Handler")
# Pulsar's own word for what keeps a producer or consumer connected.
PULSARS_WORDS = {"ConnectionHandler"}
# Functions there are named like the command or the REST operation they stand for: that is their explanation.
NAMED_BY_THE_PROTOCOL = ("interpulse.wire.commands", "interpulse.broker.binary", "interpulse.broker.rest")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_modules_when_read_then_say_what_they_are_for() -> None:
    assert not [module for module, tree in modules().items() if not ast.get_docstring(tree)]


def test_public_classes_and_functions_when_read_then_say_what_they_are_for() -> None:
    """Methods are left out where their name and types say it all; the reader decides that, not a checker."""
    assert not [f"{module}.{name}" for module in modules() for name in _unexplained(module)]


def _unexplained(module: str) -> Iterator[str]:
    named_by_protocol = module.startswith(NAMED_BY_THE_PROTOCOL)
    for name, node in public_definitions(modules()[module]):
        explained = ast.get_docstring(node) or (named_by_protocol and not isinstance(node, ast.ClassDef))
        if "." not in name and not explained:
            yield name


def test_classes_when_named_then_avoid_empty_words() -> None:
    classes = [
        f"{module}.{node.name}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name not in PULSARS_WORDS
    ]
    assert not [name for name in classes if name.endswith(EMPTY_ENDINGS)]


def test_map_of_what_is_loaded_when_read_then_names_every_module() -> None:
    room = "interpulse.broker.live"
    there = {name.split(".")[3] for name in modules() if name.startswith(f"{room}.")}
    assert set(re.findall(r"`(\w+)`", ast.get_docstring(modules()[room]) or "")) == there


def test_kinds_of_differences_when_audited_then_are_on_their_page() -> None:
    page = (ROOT / "docs/howto/audit-clusters.md").read_text()
    assert not [kind for kind in AUDITED_KINDS if f"`{kind}`" not in page]


def test_links_between_pages_when_followed_then_exist() -> None:
    pages = [path for path in tracked_files() if path.suffix == ".md"]
    assert not [f"{page.relative_to(ROOT)}: {target}" for page in pages for target in _dead_links(page)]


def _dead_links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in LINK.findall(text) if "://" not in target]
    return [target for target in targets if target and not (page.parent / target).exists()]

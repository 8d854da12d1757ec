"""The page on errors of the Spark rooms tells what to do about every message that they end a query or a job with."""

import ast

from interpulse.model import errors
from interpulse.model.adjustments import AUDITED_KINDS
from tests.house.messages import explained, templates
from tests.house.sources import ROOT, modules

PAGE = ROOT / "docs/reference/spark-errors.md"
ROOMS = {name: tree for name, tree in modules().items() if name.startswith("interpulse.spark")}
VALUES = {"interpulse.spark.offsets", "interpulse.spark.reading.planner"}
"""Elsewhere a ValueError is what is wrong with one value, and told with the name of its option."""
UNTOLD = {"NullInField", "OddBytes"}
"""Rows that Arrow cannot take at once are taken one by one after them, and those tell what is wrong."""


def error_classes() -> set[str]:
    """Ours, and those that the Spark rooms define."""
    found = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)} | {"Exception", "ValueError"}
    for tree in ROOMS.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and found & {
                base.id for base in node.bases if isinstance(base, ast.Name)
            }:
                found.add(node.name)
    return found - UNTOLD - {"Exception", "ValueError"}


CLASSES = error_classes()
TEMPLATES = sorted({(text, name) for name, tree in ROOMS.items() for text in templates(tree, CLASSES)})
OF_VALUES = {text for name in VALUES for text in templates(ROOMS[name], {"ValueError"})}


def test_messages_when_looked_for_then_are_on_the_page() -> None:
    assert len(TEMPLATES) > 70
    page = " ".join(PAGE.read_text().split())
    assert not [f"{module}: {message!r}" for message, module in TEMPLATES if message not in page]


def test_kinds_of_differences_when_looked_for_then_are_on_the_page_of_the_audit() -> None:
    page = (ROOT / "docs/howto/audit-clusters.md").read_text()
    assert not [kind for kind in AUDITED_KINDS if f"`{kind}`" not in page]


def test_page_when_read_then_explains_no_message_that_is_gone() -> None:
    assert not explained(PAGE.read_text()) - {message for message, _ in TEMPLATES} - OF_VALUES

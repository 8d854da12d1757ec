"""Writes the table of all policies in ``docs/reference/policies.md`` from the catalogue of policies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from interpulse.model.policies.catalogue import OF_NAMESPACES, OF_TOPICS, PolicyAtLevel

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "policies.md"

_START: Final = "<!-- Written by tools/generate_policy_reference.py; do not edit this section. -->\n"
_END: Final = "<!-- End of the generated section. -->\n"
_HEAD: Final = "| REST path | verbs | name in the admin client | field in documents |\n| --- | --- | --- | --- |\n"


def page() -> str:
    """Return the whole page, with the generated section up to date."""
    before, _, rest = PAGE.read_text().partition(_START)
    _, _, after = rest.partition(_END)
    return "".join((before, _START, *_section(), _END, after))


def _section() -> Iterator[str]:
    for level, entries in (("namespace", OF_NAMESPACES), ("topic", OF_TOPICS)):
        yield f"\nPolicies of a {level}:\n\n{_HEAD}"
        yield from (_row(entry) for entry in entries if entry.level.path)
    yield "\n"


def _row(entry: PolicyAtLevel) -> str:
    level = entry.level
    verbs = ", ".join(["GET", level.method, *(["DELETE"] if level.removable else [])])
    return f"| `{level.path}` | {verbs} | `{entry.policy.attribute}` | `{level.key}` |\n"


if __name__ == "__main__":
    PAGE.write_text(page())

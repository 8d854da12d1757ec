"""How results are printed: lines for lists, indented JSON for objects, character for character as pulsar-admin does.

Scripts read this output, so its form is part of the interface.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import click

__all__ = ["print_json", "print_lines", "print_pairs", "to_pretty_json"]

_INDENT = "  "


def print_lines(items: Iterable[str]) -> None:
    """One item per line."""
    for item in items:
        click.echo(item)


def print_pairs(pairs: Mapping[str, object]) -> None:
    """One ``key    value`` per line."""
    print_lines(f"{key}    {value}" for key, value in pairs.items())


def print_json(value: object) -> None:
    """An object, number or truth value; a policy that is not set is ``null``."""
    click.echo(to_pretty_json(value))


def to_pretty_json(value: object, depth: int = 0) -> str:
    """Blanks around colons and inside brackets, and lists on one line, as Java's printer has it."""
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, (list, tuple)):
        items = ", ".join(to_pretty_json(item, depth) for item in value)
        return f"[ {items} ]" if items else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def _object(value: Mapping[str, object], depth: int) -> str:
    if not value:
        return "{ }"
    indent = _INDENT * (depth + 1)
    rows = [
        f"{indent}{json.dumps(key, ensure_ascii=False)} : {to_pretty_json(item, depth + 1)}"
        for key, item in value.items()
    ]
    return "{\n" + ",\n".join(rows) + "\n" + _INDENT * depth + "}"

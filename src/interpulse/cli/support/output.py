"""Prints results: lines for lists, indented JSON for objects, character for character as pulsar-admin does.

Scripts read this output, so its form is part of the interface. ``--output`` prints the same values as JSON, YAML or a
table instead; ``wide`` is a table that tells of each name of a list what one more question to the cluster tells of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import click

from interpulse.cli.support.formats import FORMATS, to_rows

__all__ = [
    "format_option",
    "is_wide",
    "print_documents",
    "print_json",
    "print_lines",
    "print_pairs",
    "print_text",
    "print_value",
    "print_wide",
    "to_pretty_json",
]

_INDENT = "  "
_WIDE: Final = "wide"
_CHOSEN: Final = "interpulse.cli.support.output"  # in the dictionary that nested commands share


def format_option(*, hidden: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``-o``/``--output``: the functions below print in that form; the decorated function has no argument for it."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([*FORMATS, _WIDE]),
        expose_value=False,
        callback=_choose,
        hidden=hidden,
        help="Print results in this form instead of pulsar-admin's; commands accept it too.",
    )


def _choose(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is not None:
        ctx.meta[_CHOSEN] = name


def print_value(value: object, own_form: str, *, tabular: bool = False, in_table: object = None) -> None:
    """``own_form``, which is how pulsar-admin prints the value and may be empty, unless another form was chosen.

    With ``tabular`` it is what a table of the value is meant to be. ``in_table`` is what a table shows instead of the
    value: for people, where the value is for programs.
    """
    chosen = "table" if is_wide() else _chosen()
    if chosen is not None and not (tabular and chosen == "table"):
        click.echo(FORMATS[chosen](in_table if in_table is not None and chosen == "table" else value))
    elif own_form:
        click.echo(own_form)


def is_wide() -> bool:
    """Whether a list shall be told with what else the cluster says of its items, see `print_wide`."""
    return _chosen() == _WIDE


def _chosen() -> str | None:
    context = click.get_current_context(silent=True)
    chosen: str | None = context.meta.get(_CHOSEN) if context else None
    return chosen


def print_wide(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The rows of a list, as a table with these headings; a cell of None is one that the cluster does not tell."""
    click.echo(to_rows(columns, rows))


def print_lines(items: Iterable[str]) -> None:
    """One item per line. Raises click.UsageError for wide output: lists that have more columns use `print_wide`."""
    if is_wide():
        raise click.UsageError(
            "Nothing but these names is known without a question for each: -o wide has no more columns"
        )
    lines = list(items)
    print_value(lines, "\n".join(lines))


def print_text(text: str) -> None:
    """One string."""
    print_value(text, text)


def print_pairs(pairs: Mapping[str, object]) -> None:
    """One ``key    value`` per line."""
    print_value(pairs, "\n".join(f"{key}    {value}" for key, value in pairs.items()))


def print_json(value: object) -> None:
    """An object, number or boolean; a policy that is not set is ``null``."""
    print_value(value, to_pretty_json(value))


def print_documents(values: Iterable[object]) -> None:
    """Objects one behind the other; in the other forms they are one list."""
    documents = list(values)
    print_value(documents, "\n".join(map(to_pretty_json, documents)))


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

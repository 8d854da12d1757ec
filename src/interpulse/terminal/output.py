"""Output of results: lines for lists, indented JSON for objects, exactly as pulsar-admin prints them.

Scripts read this output, so its form is part of the interface. ``--output`` prints the same values as JSON, YAML or a
table instead. ``wide`` is a table with additional columns from one more request for all items of a list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import click

from interpulse.terminal.formats import FORMATS, to_rows
from interpulse.terminal.option_groups import option

_INDENT = "  "
_WIDE: Final = "wide"
_CHOSEN: Final = "interpulse.terminal.output"  # in the dictionary that nested commands share


def format_option(*, hidden: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``-o``/``--output``, which the functions below use. The decorated function has no argument for it."""
    return option(
        "-o --output",
        "Print results in this form instead of pulsar-admin's; commands accept it too.",
        click.Choice([*FORMATS, _WIDE]),
        expose_value=False,
        callback=_choose,
        hidden=hidden,
    )


def _choose(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is not None:
        ctx.meta[_CHOSEN] = name


def print_value(value: object, own_form: str, *, tabular: bool = False, in_table: object = None) -> None:
    """Print ``own_form``, pulsar-admin's text for the value (possibly empty), unless another format was chosen.

    ``tabular`` replaces the value in all formats, ``in_table`` only in tables, where people need another form than
    programs.
    """
    chosen = "table" if is_wide() else _chosen()
    if chosen is not None and not (tabular and chosen == "table"):
        click.echo(FORMATS[chosen](in_table if in_table is not None and chosen == "table" else value))
    elif own_form:
        click.echo(own_form)


def is_wide() -> bool:
    """Return True if a list is to be printed with further columns; see `print_wide`."""
    return _chosen() == _WIDE


def _chosen() -> str | None:
    context = click.get_current_context(silent=True)
    chosen: str | None = context.meta.get(_CHOSEN) if context else None
    return chosen


def print_wide(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print the rows of a list as a table with these headings. None is a cell that the cluster does not report."""
    click.echo(to_rows(columns, rows))


def print_lines(items: Iterable[str]) -> None:
    """Print one item per line. Raise click.UsageError for wide output: lists with more columns use `print_wide`."""
    if is_wide():
        raise click.UsageError(
            "-o wide has no more columns: the list has only names, and more would need a request for each"
        )
    lines = list(items)
    print_value(lines, "\n".join(lines))


def print_text(text: str) -> None:
    """Print one string."""
    print_value(text, text)


def print_pairs(pairs: Mapping[str, object]) -> None:
    """Print one ``key    value`` per line."""
    print_value(pairs, "\n".join(f"{key}    {value}" for key, value in pairs.items()))


def print_json(value: object) -> None:
    """Print an object, number or boolean. A policy that is not set prints ``null``."""
    print_value(value, to_pretty_json(value))


def print_changes(changes: Sequence[object] | None) -> None:
    """Print the changes of a preview. None, a change that was made, prints nothing."""
    if changes is not None:
        print_json(changes)


def print_documents(values: Iterable[object]) -> None:
    """Print objects one after the other. In other formats they are one list."""
    documents = list(values)
    print_value(documents, "\n".join(map(to_pretty_json, documents)))


def to_pretty_json(value: object, depth: int = 0) -> str:
    """Format JSON as Java's printer does: blanks around colons and inside brackets, lists on one line."""
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

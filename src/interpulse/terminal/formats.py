"""Output formats besides Pulsar's own: JSON, YAML, a table. Pure."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeGuard

_GAP: Final = "  "
_NAMES: Final = ("name", "topic", "clusterName", "brokerId")


def to_json(value: object) -> str:
    """Format a value as JSON, as other tools print and read it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def to_yaml(value: object) -> str:
    """Return YAML in block style; see `yaml_form`."""
    from interpulse.terminal.yaml_form import dump  # imported here: importing PyYAML takes 0.05 s

    return dump(value)


def content_fields(content: bytes | None) -> dict[str, str | None]:
    """Return a message's content as a JSON field: ``content``, or ``contentBase64`` if it is not UTF-8."""
    try:
        return {"content": None if content is None else content.decode()}
    except UnicodeDecodeError:
        return {"contentBase64": base64.b64encode(content or b"").decode()}


def to_table(value: object) -> str:
    """Format a value as columns with headings. Nothing is truncated, whatever the width of the screen.

    A list of objects has a column per field. An object has a row per field, with the path of nested fields. Lists of
    objects inside an object are separate tables below it, with their path as heading.
    """
    if isinstance(value, (list, tuple)):
        return _table_of_list(value)
    if isinstance(value, Mapping):
        return "\n\n".join(_tables_of_object(value))
    return to_cell(value)


def to_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a table with these headings, even if it has no rows."""
    return _aligned([column.upper() for column in columns], [[to_cell(cell) for cell in row] for row in rows])


def _tables_of_object(value: Mapping[str, object]) -> Iterator[str]:
    fields = dict(_flat(value, ""))
    lists = {path: item for path, item in fields.items() if _is_table(item)}
    rows = [[path, to_cell(item)] for path, item in fields.items() if path not in lists]
    if rows or not lists:
        yield _aligned(["FIELD", "VALUE"], rows)
    for path, items in lists.items():
        yield f"{path}:\n{_table_of_list(items)}"


def _is_table(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _table_of_list(items: Sequence[object]) -> str:
    rows = [dict(_flat(item, "")) if isinstance(item, Mapping) else {"value": item} for item in items]
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["value"]
    cells = [[to_cell(row[column]) if column in row else "" for column in columns] for row in rows]
    return _aligned([column.upper() for column in columns], cells)


def _flat(value: Mapping[str, object], path: str) -> Iterator[tuple[str, object]]:
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _flat(item, f"{path}{key}.")
        else:
            yield f"{path}{key}", item


def _is_word(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.isprintable()


def to_cell(value: object) -> str:
    """Format any value on one line."""
    if _is_word(value):
        return value
    if isinstance(value, (list, tuple)) and value and all(map(_is_word, value)):
        return ", ".join(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _aligned(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, *rows]
    widths = [max(text_width(line[column]) for line in lines) for column in range(len(heading))]
    filled = (
        (cell + " " * (width - text_width(cell)) for cell, width in zip(line, widths, strict=True)) for line in lines
    )
    return "\n".join(_GAP.join(cells).rstrip() for cells in filled)


def text_width(text: str) -> int:
    """Return the width on a screen: East Asian characters take two columns, combining accents none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)


def to_names(value: object) -> str:
    """Return one name per line: the name of an object, the first item of a pair, any other value unchanged."""
    if isinstance(value, Mapping):
        return "\n".join(map(str, value))
    if isinstance(value, (list, tuple)):
        return "\n".join(_name_of(item) for item in value)
    return to_cell(value)


def _name_of(item: object) -> str:
    if not isinstance(item, Mapping):
        return to_cell(item)
    return to_cell(next((item[key] for key in _NAMES if key in item), next(iter(item.values()), "")))


FORMATS: Final = {"json": to_json, "yaml": to_yaml, "table": to_table, "name": to_names}
"""Formats by the value of ``--output``."""

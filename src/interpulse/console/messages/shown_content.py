"""A content as people read it: its value by the schema, else its text, else its bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from interpulse.client.contents import TypedValue, read_content
from interpulse.model.errors import NotSupported
from interpulse.model.schemas import SchemaInfo

VIEWS: Final = ("decoded", "raw", "hex")
_ROW: Final = 16


@dataclass(frozen=True, slots=True)
class ShownContent:
    """A content as text; ``problem`` is the reason if its schema could not be used, else empty."""

    text: str
    form: str
    """The form of the text: a type of schema, ``text``, ``hex``, ``null`` or ``encrypted``."""

    problem: str = ""
    cut: bool = False
    """True if only the beginning is included."""


NO_CONTENT: Final = ShownContent("", "null")


def show_content(
    content: bytes | None,
    key: bytes | None = None,
    *,
    schema: SchemaInfo | None = None,
    view: str = VIEWS[0],
    encrypted: bool = False,
    most: int = 2_000,
) -> ShownContent:
    """Return at most ``most`` characters of the content in one of the views."""
    if content is None:
        return NO_CONTENT
    if encrypted or view == "hex":
        return _dumped(content, most, form="encrypted" if encrypted else "hex")
    if view == "decoded" and schema is not None:
        try:
            value = read_content(schema, content, key)
        except (ValueError, RecursionError, NotSupported) as error:
            problem = f"It is not of its schema {schema.type.name}: {error}"
            return replace(_plain(content, most), problem=problem)
        return _of_value(value, schema.type.name, most)
    return _plain(content, most)


def hex_dump(content: bytes) -> str:
    """Return sixteen bytes per line, with their offset and their ASCII characters."""
    lines = []
    for start in range(0, len(content), _ROW):
        row = content[start : start + _ROW]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start:08x}  {row.hex(' ').ljust(_ROW * 3 - 1)}  {letters}")
    return "\n".join(lines)


def _dumped(content: bytes, most: int, *, form: str) -> ShownContent:
    shown = content[: max(_ROW, most // (_ROW * 5) * _ROW)]
    return ShownContent(hex_dump(shown), form, cut=len(shown) < len(content))


def _plain(content: bytes, most: int) -> ShownContent:
    """Return text if the content is UTF-8, even if it is cut inside a character."""
    head = content[: most * 4]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3 or len(head) == len(content):
            return _dumped(content, most, form="hex")
        text = head[: error.start].decode()
    if "\x00" in text:
        return _dumped(content, most, form="hex")
    return ShownContent(text[:most], "text", cut=len(text) > most or len(head) < len(content))


def _of_value(value: Any, form: str, most: int) -> ShownContent:
    if isinstance(value, TypedValue):
        value = value.value
    if isinstance(value, bytes):
        return _plain(value, most)
    text = value if isinstance(value, str) else json.dumps(_bare(value), indent=1, ensure_ascii=False, default=str)
    return ShownContent(text[:most], form, cut=len(text) > most)


def _bare(value: Any) -> Any:
    if isinstance(value, TypedValue):
        return _bare(value.value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {str(name): _bare(item) for name, item in value.items()}
    return [_bare(item) for item in value] if isinstance(value, list) else value

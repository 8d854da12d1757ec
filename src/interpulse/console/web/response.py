"""Responses, without the HTTP library."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final

EventStream = AsyncGenerator[bytes, None]
"""Server-sent events, ready to be written."""


@dataclass(frozen=True, slots=True)
class Cookie:
    """One cookie; no script reads it. ``max_age`` None: until the browser ends, 0: now."""

    name: str
    value: str
    max_age: int | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A status, headers and a body, or a stream of events in its place."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cookie: Cookie | None = None
    stream: EventStream | None = None

    def with_headers(self, headers: Mapping[str, str]) -> Response:
        return replace(self, headers={**headers, **self.headers})


_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_NAME_MAX: Final = 100


def download(file_name: str, content_type: str, chunks: EventStream) -> Response:
    """Return a file for the visitor; a browser never shows it as a page."""
    name = _NOT_IN_NAMES.sub("_", file_name)[:_NAME_MAX] or "download"
    headers = {"Content-Type": content_type, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(200, headers=headers, stream=chunks)


def html(text: str, *, status: int = 200) -> Response:
    """Return a page."""
    return Response(status, text.encode("utf-8", "backslashreplace"), {"Content-Type": "text/html; charset=utf-8"})


def json_document(value: Any, *, status: int = 200) -> Response:
    """Return a plain value as JSON. ASCII only, so that no character looks like another."""
    body = json.dumps(as_plain(value), indent=1).encode()
    return Response(status, body, {"Content-Type": "application/json"})


def redirect(place: str, *, status: int = 303) -> Response:
    """Go there, with a GET."""
    return Response(status, headers={"Location": place})


def to_json(value: Any) -> str:
    """Encode as one line of ASCII."""
    return json.dumps(as_plain(value))


def event(value: Any) -> bytes:
    """Encode one server-sent event."""
    return f"data: {to_json(value)}\n\n".encode()


def event_of_all(texts: Iterable[str]) -> bytes:
    """Encode one server-sent event with a list of encoded JSON items."""
    return f"data: [{', '.join(texts)}]\n\n".encode()


_SIMPLE: Final = (str, int, float, bool, type(None))


def as_plain(value: Any) -> Any:
    """Convert dataclasses, and their fields, to plain objects."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _SIMPLE):
        return value
    if is_dataclass(value):
        return {item.name: as_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    return [as_plain(item) for item in value]

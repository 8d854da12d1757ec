"""Readers of the JSON in answers of the admin API: one per form that a body may have.

A reader takes the decoded body and returns it, or the value it makes of it, and raises :class:`UnexpectedJson` for any
other body; None stands for an empty one. :meth:`HttpSession.get` and its kin call them, and name the call in the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

__all__ = [
    "Read",
    "UnexpectedJson",
    "boolean",
    "each",
    "ignored",
    "integer",
    "list_made_by",
    "list_of",
    "made_by",
    "names",
    "optional",
    "record",
    "record_with",
    "records",
    "string",
]

T = TypeVar("T")
Read = Callable[[Any], T]

_EXCERPT_MAX = 80


class UnexpectedJson(ValueError):
    """The body has another form; the message names the expected form, then the body."""


def ignored(body: Any) -> None:
    """Any body: the status was the answer."""


def string(body: Any) -> str:
    """Plain text, quoted or not."""
    if not isinstance(body, str) or body.lstrip()[:1] in ("{", "[", '"'):  # the beginning of JSON that was cut off
        _refuse(body, "a string")
    return body


def boolean(body: Any) -> bool:
    """A boolean, not a number."""
    return body if isinstance(body, bool) else _refuse(body, "a boolean")


def integer(body: Any) -> int:
    """An integer, not a boolean."""
    return body if isinstance(body, int) and not isinstance(body, bool) else _refuse(body, "an integer")


def names(body: Any) -> list[str]:
    """A list of strings."""
    return list_of(str)(body)


def record(body: Any) -> dict[str, Any]:
    """An object with any fields."""
    return body if isinstance(body, dict) else _refuse(body, "an object")


def record_with(field: str) -> Read[dict[str, Any]]:
    """An object that has this field."""

    def read(body: Any) -> dict[str, Any]:
        found = record(body)
        return found if field in found else _refuse(body, f"an object with the field {field!r}")

    return read


def records(body: Any) -> list[dict[str, Any]]:
    """A list of objects."""
    return list_of(dict)(body)


def list_of(kind: type[T]) -> Read[list[T]]:
    """A list whose items are all of this kind."""

    def read(body: Any) -> list[T]:
        if not isinstance(body, list) or not all(isinstance(item, kind) for item in body):
            _refuse(body, f"a list of {'strings' if kind is str else 'objects'}")
        return body

    return read


def optional(read: Read[T]) -> Read[T | None]:
    """The same, or an empty body."""
    return lambda body: None if body is None else read(body)


def each(read: Read[T]) -> Read[dict[str, T]]:
    """An object whose fields are all of that form; empty for an empty body."""
    return lambda body: {} if body is None else {name: read(value) for name, value in record(body).items()}


def made_by(from_json: Callable[[Mapping[str, Any]], T]) -> Read[T]:
    """An object, and what ``from_json`` makes of it."""

    def read(body: Any) -> T:
        fields = record(body)
        try:
            return from_json(fields)
        except KeyError as error:
            raise UnexpectedJson(f"an object with the field {error}: {_excerpt(body)}") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise UnexpectedJson(f"an object that can be read ({error}): {_excerpt(body)}") from error

    return read


def list_made_by(from_json: Callable[[Mapping[str, Any]], T]) -> Read[list[T]]:
    """A list of objects, and what ``from_json`` makes of each."""
    read = made_by(from_json)
    return lambda body: [read(item) for item in records(body)]


def _refuse(body: Any, expected: str) -> NoReturn:
    raise UnexpectedJson(f"{expected}: {_excerpt(body)}")


def _excerpt(body: Any) -> str:
    if body is None:
        return "nothing"
    text = repr(body)
    return text if len(text) <= _EXCERPT_MAX else f"{text[:_EXCERPT_MAX]}..."

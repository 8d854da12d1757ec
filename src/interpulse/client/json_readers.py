"""Readers of JSON answers of the admin API, one per form of a body.

A reader takes the decoded body, None if it is empty, and returns it or a value made from it. It raises
:class:`UnexpectedJson` for a body of another form. :class:`HttpSession` calls readers and names the request in the
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")
Read = Callable[[Any], T]

_EXCERPT_MAX: Final = 80


class UnexpectedJson(ValueError):
    """Unexpected form of a body. The message names the expected form, then the body."""


def _exactly(kind: type[T], words: str) -> Read[T]:
    """Return a reader of one JSON type. A boolean is not an integer."""
    return lambda body: body if type(body) is kind else _refuse(body, words)


def _list_of(kind: type[T], words: str) -> Read[list[T]]:
    def read(body: Any) -> list[T]:
        return body if type(body) is list and all(type(item) is kind for item in body) else _refuse(body, words)

    return read


boolean: Final = _exactly(bool, "a boolean")
integer: Final = _exactly(int, "an integer")
names: Final = _list_of(str, "a list of strings")
record: Final[Read[dict[str, Any]]] = _exactly(dict, "an object")
records: Final[Read[list[dict[str, Any]]]] = _list_of(dict, "a list of objects")


def ignored(body: Any) -> None:
    """Accept any body, because the status is the answer."""


def string(body: Any) -> str:
    """Read plain text, quoted or not."""
    if not isinstance(body, str) or body.lstrip()[:1] in ("{", "[", '"'):  # truncated JSON
        _refuse(body, "a string")
    return body


def record_with(field: str) -> Read[dict[str, Any]]:
    """Return a reader of objects that have this field."""
    return lambda body: body if field in record(body) else _refuse(body, f"an object with the field {field!r}")


def optional(read: Read[T]) -> Read[T | None]:
    """Return a reader that accepts an empty body too."""
    return lambda body: None if body is None else read(body)


def each(read: Read[T]) -> Read[dict[str, T]]:
    """Return a reader of objects whose fields all have one form. An empty body is an empty object."""
    return lambda body: {} if body is None else {name: read(value) for name, value in record(body).items()}


def made_by(from_json: Callable[[Mapping[str, Any]], T]) -> Read[T]:
    """Return a reader of objects that hands them to ``from_json``."""

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
    """Return a reader of lists of objects that hands each of them to ``from_json``."""
    read = made_by(from_json)
    return lambda body: [read(item) for item in records(body)]


def _refuse(body: Any, expected: str) -> NoReturn:
    raise UnexpectedJson(f"{expected}: {_excerpt(body)}")


def _excerpt(body: Any) -> str:
    if body is None:
        return "nothing"
    text = repr(body)
    return text if len(text) <= _EXCERPT_MAX else f"{text[:_EXCERPT_MAX]}..."

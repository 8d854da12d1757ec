"""Checks of the body of a call: every field of a type, and the names of those that are unknown.

A value of another type is refused here, so that no handler meets a string where it expects a number, or stores one.
Values are read as Jackson reads them for Pulsar, unless something would be lost: a number or truth value may come as a
string, a string as a number or truth value, and a whole number with a fraction of zero; 5.5 is no integer here. A null
means "not set". Unknown fields have no effect, as in Pulsar; `unknown_fields` names them for the caller.
The bodies themselves stand in `interpulse.broker.rest.http.bodies`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX, LONG_MAX, read_integer
from interpulse.model.strings import are_strings

__all__ = [
    "ANY",
    "FLAG",
    "INTEGER",
    "LONG",
    "LONGS",
    "NUMBER",
    "OBJECT",
    "STRING",
    "STRINGS",
    "STRINGS_BY_NAME",
    "STRINGS_BY_NAME_TWICE",
    "STRING_MAP",
    "WORD",
    "Body",
    "Kind",
    "SpelledNumber",
    "Unoffered",
    "checked_fields",
    "checked_value",
    "each",
    "one",
    "unknown_fields",
]

_SHOWN_MAX: Final = 100
_NO_FIT: Final = object()


class SpelledNumber(float):
    """A JSON number with a fraction or exponent, which keeps its spelling: as a string it is what was sent."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> SpelledNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of values. ``read`` gives what is meant, `_NO_FIT` for what cannot be; it may raise InvalidRequest."""

    words: str
    read: Callable[[Any], Any]
    inner: Callable[[Any], Iterator[tuple[str, Body, Any]]] = lambda value: iter(())
    """The objects with fields of their own in a value that was read: where each is, below the value; its body."""


@dataclass(frozen=True, slots=True)
class Unoffered:
    """A field that Pulsar knows and that has no effect here: only the values by which it is not set may come."""

    reason: str
    unset: tuple[Any, ...] = ()
    """Besides null and what is empty."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a body may hold: ``words`` name it in a refusal."""

    words: str
    fields: Mapping[str, Kind]
    unoffered: Mapping[str, Unoffered] = field(default_factory=dict)


def checked_fields(body: Body, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known fields in their order, without nulls, also inside.

    Raises InvalidRequest that names the first wrong one.
    """
    checked = {}
    for name, value in given.items():
        if value is None or (value == "" and body.fields.get(name) is WORD):
            continue
        if name in body.fields:
            checked[name] = checked_value(body.fields[name], name, value)
        elif name in body.unoffered:
            _check_unset(body, name, value)
    return checked


def unknown_fields(body: Body, given: Mapping[str, Any]) -> Iterator[str]:
    """The fields that `checked_fields` leaves out because the body has none of the name, as ``outer.inner``."""
    for name, value in given.items():
        if value is None or name in body.unoffered:
            continue
        if name not in body.fields:
            yield name
            continue
        for where, inner_body, inner in body.fields[name].inner(value):
            yield from (f"{name}.{where}{below}" for below in unknown_fields(inner_body, inner))


def checked_value(kind: Kind, name: str, value: Any) -> Any:
    """What is meant by a value of this kind; raises InvalidRequest, which calls it ``name``."""
    read = kind.read(value)
    if read is _NO_FIT:
        raise InvalidRequest(f"{name} must be {kind.words}, not {_shown(value)}")
    return read


def _check_unset(body: Body, name: str, value: Any) -> None:
    """Raise InvalidRequest for a field that asks for what this broker does not do."""
    known = body.unoffered[name]
    if value not in ("", [], {}) and value not in known.unset:
        raise InvalidRequest(
            f"{name} of {body.words} has no effect in this broker: {known.reason}; "
            f"leave it out, it came as {_shown(value)}"
        )


def one(body: Body) -> Kind:
    """An object with fields of its own."""
    return Kind(
        "an object",
        lambda value: checked_fields(body, value) if isinstance(value, dict) else _NO_FIT,
        lambda value: iter([("", body, value)]),
    )


def each(body: Body) -> Kind:
    """Such objects by name, for example by cluster; nulls are left out."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or not all(isinstance(inner, dict | None) for inner in value.values()):
            return _NO_FIT
        return {name: checked_fields(body, inner) for name, inner in value.items() if inner is not None}

    return Kind(
        "an object of objects",
        read,
        lambda value: ((f"{name}.", body, inner) for name, inner in value.items() if inner is not None),
    )


def _integer(most: int) -> Kind:
    def read(value: Any) -> Any:
        number = read_integer(value, most=most)
        return _NO_FIT if number is None else number

    return Kind(f"an integer from {-most - 1} to {most}", read)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return _NO_FIT
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return _NO_FIT
    return number if math.isfinite(number) else _NO_FIT


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), _NO_FIT)
    return bool(value) if isinstance(value, int) else _NO_FIT


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, SpelledNumber):
        return value.text
    return str(value) if isinstance(value, str | int | float) else _NO_FIT


def _texts(value: Any) -> Any:
    texts = [_text(item) for item in value] if isinstance(value, list) else [_NO_FIT]
    return _NO_FIT if _NO_FIT in texts else texts


def _text_map(value: Any) -> Any:
    if not isinstance(value, dict):
        return _NO_FIT
    texts = {name: _text(item) for name, item in value.items() if item is not None}
    return _NO_FIT if _NO_FIT in texts.values() else texts


def _longs(value: Any) -> Any:
    numbers = [read_integer(item, most=LONG_MAX) for item in value] if isinstance(value, list) else [None]
    return _NO_FIT if None in numbers else numbers


def _if(fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if fits(value) else _NO_FIT


def _are_strings_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(are_strings, value.values()))


def _shown(value: Any) -> str:
    return json.dumps(value)[:_SHOWN_MAX]


ANY: Final = Kind("anything", lambda value: value)
STRING: Final = Kind("a string", _text)
WORD: Final = Kind("a string", _text)
"""One of several words; the empty string is none of them and stands for "not set", as Go's structs have it."""
FLAG: Final = Kind("true or false", _truth)
INTEGER: Final = _integer(INT_MAX)
LONG: Final = _integer(LONG_MAX)
LONGS: Final = Kind("an array of integers", _longs)
NUMBER: Final = Kind("a finite number", _number)
OBJECT: Final = Kind("an object", _if(lambda value: isinstance(value, dict)))
STRINGS: Final = Kind("an array of strings", _texts)
STRING_MAP: Final = Kind("an object of strings", _text_map)
STRINGS_BY_NAME: Final = Kind("an object of arrays of strings", _if(_are_strings_by_name))
STRINGS_BY_NAME_TWICE: Final = Kind(
    "an object of objects of arrays of strings",
    _if(lambda value: isinstance(value, dict) and all(map(_are_strings_by_name, value.values()))),
)

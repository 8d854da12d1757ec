"""Checks of the body of a call: the type of every field, and the names of unknown fields.

A value of another type is refused, so that no handler gets or stores a string instead of a number. Values are read as
Jackson reads them for Pulsar, unless information would be lost: strings pass for numbers and booleans and vice versa,
and a number with a zero fraction for an integer; 5.5 is no integer here. A null means "not set". Unknown fields have no
effect, as in Pulsar; the answer names them. The bodies themselves are in `interpulse.broker.rest.http.bodies`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, TypeVar

from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import Position
from interpulse.model.numbers import INT_MAX, LONG_MAX, is_integer, read_integer
from interpulse.wire.ids import UINT64_NONE, mask_of

_SHOWN_MAX: Final = 100
T = TypeVar("T")


class _NoFit(Exception):
    """A value of another type."""


class SpelledNumber(float):
    """A JSON number with a fraction or exponent, with the caller's spelling, which is its value as a string."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> SpelledNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of values. ``read`` returns the value that is meant, or raises `_NoFit`."""

    words: str
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Unoffered:
    """A field of Pulsar without effect here. Only values that do not set it are accepted."""

    reason: str
    unset: tuple[Any, ...] = ()
    """Such values besides null and empty ones."""


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON object: its name in a refusal, and its fields."""

    words: str
    fields: Mapping[str, Kind | Objects]
    unoffered: Mapping[str, Unoffered] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Objects:
    """A type of values: an object with the fields of a body, or such objects by name, for example by cluster."""

    body: Body
    by_name: bool = False
    """True: nulls among the objects are left out."""


def checked_fields(
    body: Body, given: Mapping[str, Any], unknown: list[str] | None = None, where: str = ""
) -> dict[str, Any]:
    """Return the known fields in the order of ``given``, without nulls, also inside.

    Raise InvalidRequest that names the first wrong field. Names of unknown fields are added to ``unknown`` as
    ``outer.inner``, with ``where`` in front.
    """
    checked = {}
    for name, value in given.items():
        kind = body.fields.get(name)
        if value is None or (value == "" and kind is WORD):
            continue
        if isinstance(kind, Objects):
            checked[name] = _checked_objects(kind, name, value, unknown, where)
        elif kind is not None:
            checked[name] = checked_value(kind, name, value)
        elif name in body.unoffered:
            _check_unset(body, name, value)
        elif unknown is not None:
            unknown.append(where + name)
    return checked


def checked_value(kind: Kind, name: str, value: Any) -> Any:
    """Return the value that is meant. Raise InvalidRequest, which calls it ``name``."""
    try:
        return kind.read(value)
    except _NoFit:
        raise InvalidRequest(f"{name} must be {kind.words}, not {_shown(value)}") from None


def _checked_objects(kind: Objects, name: str, value: Any, unknown: list[str] | None, where: str) -> dict[str, Any]:
    fields = checked_value(OBJECTS if kind.by_name else OBJECT, name, value)
    if not kind.by_name:
        return checked_fields(kind.body, fields, unknown, f"{where}{name}.")
    return {
        key: checked_fields(kind.body, inner, unknown, f"{where}{name}.{key}.")
        for key, inner in fields.items()
        if inner is not None
    }


def _check_unset(body: Body, name: str, value: Any) -> None:
    """Raise InvalidRequest for a value that asks for an effect that this broker does not have."""
    unoffered = body.unoffered[name]
    if value not in ("", [], {}) and value not in unoffered.unset:
        raise InvalidRequest(
            f"{name} of {body.words} has no effect in this broker: {unoffered.reason}; "
            f"leave it out, it came as {_shown(value)}"
        )


def _fit(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise _NoFit
    return value


def _integer(most: int) -> Callable[[Any], int]:
    return lambda value: _fit(int, read_integer(value, most=most))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _NoFit
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise _NoFit from None
    if not isfinite(number):
        raise _NoFit
    return number


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        return _fit(bool, {"true": True, "false": False}.get(value.strip().lower()))
    return bool(_fit(int, value))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, SpelledNumber):
        return value.text
    if not isinstance(value, str | int | float):
        raise _NoFit
    return str(value)


def _text_map(value: Any) -> dict[str, str]:
    return {name: _text(item) for name, item in _fit(dict, value).items() if item is not None}


def _objects(value: Any) -> dict[str, Any]:
    return {name: item if item is None else _fit(dict, item) for name, item in _fit(dict, value).items()}


def _strings_by_name(value: Any) -> dict[str, list[str]]:
    return {name: [_fit(str, text) for text in _fit(list, texts)] for name, texts in _fit(dict, value).items()}


def _shown(value: Any) -> str:
    return json.dumps(value)[:_SHOWN_MAX]


def _position(value: Any) -> Position:
    try:
        position = Position.parse(_fit(str, value))
    except ValueError:
        raise _NoFit from None
    return Position(*(_whole(number, least=-1) for number in position))


def _whole(value: Any, *, least: int = 0, most: int = LONG_MAX) -> int:
    if not is_integer(value, most=most) or value < least:
        raise _NoFit
    return value


def _triple(value: Any) -> tuple[int, int, Any]:
    if len(_fit(list, value)) != 3:
        raise _NoFit
    return _whole(value[0]), _whole(value[1]), value[2]


def _range(value: Any) -> tuple[int, int, int]:
    ledger, first, last = _triple(value)
    return ledger, first, _whole(last, least=first)


def _mask(value: Any) -> tuple[Position, int]:
    ledger, entry, words = _triple(value)
    if not _fit(list, words):
        raise _NoFit
    mask = mask_of([_whole(word, least=-LONG_MAX - 1, most=UINT64_NONE) for word in words])
    return Position(ledger, entry), mask


ANY: Final = Kind("anything", lambda value: value)
STRING: Final = Kind("a string", _text)
WORD: Final = Kind("a string", _text)
"""One of several words. The empty string means "not set", as in Go's structs."""
FLAG: Final = Kind("true or false", _truth)
INTEGER: Final = Kind(f"an integer from {-INT_MAX - 1} to {INT_MAX}", _integer(INT_MAX))
LONG: Final = Kind(f"an integer from {-LONG_MAX - 1} to {LONG_MAX}", _integer(LONG_MAX))
LONGS: Final = Kind("an array of integers", lambda value: [LONG.read(item) for item in _fit(list, value)])
NUMBER: Final = Kind("a finite number", _number)
OBJECT: Final = Kind("an object", lambda value: _fit(dict, value))
OBJECTS: Final = Kind("an object of objects", _objects)
STRINGS: Final = Kind("an array of strings", lambda value: [_text(item) for item in _fit(list, value)])
STRING_MAP: Final = Kind("an object of strings", _text_map)
ARRAY: Final = Kind("an array", lambda value: _fit(list, value))
POSITION: Final = Kind('a position "ledger:entry"', _position)
RANGE: Final = Kind("[ledger, first entry, last entry]", _range)
MASK: Final = Kind("[ledger, entry, [words]] with words of 64 bits", _mask)
STRINGS_BY_NAME: Final = Kind("an object of arrays of strings", _strings_by_name)
STRINGS_BY_NAME_TWICE: Final = Kind(
    "an object of objects of arrays of strings",
    lambda value: {name: _strings_by_name(inner) for name, inner in _fit(dict, value).items()},
)

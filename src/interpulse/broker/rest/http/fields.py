"""Checks of the body of a call: every field of a type, none of them unknown.

A value of another type is refused here, so that no handler meets a string where it expects a number, or stores one. A
number or truth value may come as a string, as Jackson reads it. A null means "not set". Pulsar drops a field that it
does not know in silence; here the refusal names it, since a misspelled setting would have no effect.
The bodies themselves stand in `interpulse.broker.rest.http.bodies`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX, LONG_MAX, is_integer, read_integer
from interpulse.model.strings import are_strings, is_string_map

__all__ = [
    "ANY",
    "FLAG",
    "INTEGER",
    "LONG",
    "LONGS",
    "OBJECT",
    "STRING",
    "STRINGS",
    "STRINGS_BY_NAME",
    "STRINGS_BY_NAME_TWICE",
    "STRING_MAP",
    "TEXTS",
    "Body",
    "Kind",
    "Unoffered",
    "checked_fields",
    "checked_value",
    "each",
    "one",
]

_SHOWN_MAX: Final = 100
_NO_FIT: Final = object()


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of values. ``read`` gives what is meant, `_NO_FIT` for what cannot be; it may raise InvalidRequest."""

    words: str
    read: Callable[[Any], Any]


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
    """The fields in their order, without nulls, also inside; raises InvalidRequest naming the first wrong one."""
    checked = {}
    for name, value in given.items():
        kind = body.fields.get(name)
        if value is None:
            continue
        if kind is None:
            _check_without_effect(body, name, value)
            continue
        checked[name] = checked_value(kind, name, value)
    return checked


def checked_value(kind: Kind, name: str, value: Any) -> Any:
    """What is meant by a value of this kind; raises InvalidRequest, which calls it ``name``."""
    read = kind.read(value)
    if read is _NO_FIT:
        raise InvalidRequest(f"{name} must be {kind.words}, not {_shown(value)}")
    return read


def _check_without_effect(body: Body, name: str, value: Any) -> None:
    """Pass over what sets nothing; raises InvalidRequest for a field that would be dropped."""
    known = body.unoffered.get(name)
    if known is None:
        near = get_close_matches(name, body.fields, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(body.fields)}"
        raise InvalidRequest(f"{name[:_SHOWN_MAX]} is no field of {body.words}; {remedy}")
    if value not in ("", [], {}) and value not in known.unset:
        raise InvalidRequest(
            f"{name} of {body.words} has no effect in this broker: {known.reason}; "
            f"leave it out, it came as {_shown(value)}"
        )


def one(body: Body) -> Kind:
    """An object with fields of its own."""
    return Kind("an object", lambda value: checked_fields(body, value) if isinstance(value, dict) else _NO_FIT)


def each(body: Body) -> Kind:
    """Such objects by name, for example by cluster; nulls are left out."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or not all(isinstance(inner, dict | None) for inner in value.values()):
            return _NO_FIT
        return {name: checked_fields(body, inner) for name, inner in value.items() if inner is not None}

    return Kind("an object of objects", read)


def _integer(most: int) -> Kind:
    def read(value: Any) -> Any:
        number = read_integer(value, most=most)
        return _NO_FIT if number is None else number

    return Kind(f"an integer from {-most - 1} to {most}", read)


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), _NO_FIT)
    return value if isinstance(value, bool) else _NO_FIT


def _if(fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if fits(value) else _NO_FIT


def _are_strings_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(are_strings, value.values()))


def _texts(value: Any) -> Any:
    if not isinstance(value, dict) or not all(isinstance(each, str) or is_integer(each) for each in value.values()):
        return _NO_FIT
    return {name: str(each) for name, each in value.items()}


def _shown(value: Any) -> str:
    return json.dumps(value)[:_SHOWN_MAX]


ANY: Final = Kind("anything", lambda value: value)
STRING: Final = Kind("a string", _if(lambda value: isinstance(value, str)))
FLAG: Final = Kind("true or false", _truth)
INTEGER: Final = _integer(INT_MAX)
LONG: Final = _integer(LONG_MAX)
LONGS: Final = Kind(
    "an array of integers",
    _if(lambda value: isinstance(value, list) and all(is_integer(item, most=LONG_MAX) for item in value)),
)
OBJECT: Final = Kind("an object", _if(lambda value: isinstance(value, dict)))
STRINGS: Final = Kind("an array of strings", _if(are_strings))
TEXTS: Final = Kind("an object of strings or integers", _texts)
STRING_MAP: Final = Kind("an object of strings", _if(is_string_map))
STRINGS_BY_NAME: Final = Kind("an object of arrays of strings", _if(_are_strings_by_name))
STRINGS_BY_NAME_TWICE: Final = Kind(
    "an object of objects of arrays of strings",
    _if(lambda value: isinstance(value, dict) and all(map(_are_strings_by_name, value.values()))),
)

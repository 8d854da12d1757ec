"""Single policies in Pulsar's JSON: the tables by which whole policy documents are read and written.

A stored value that is not of the form Pulsar gives it is left where it is and not acted on, so that a record which
another program wrote never keeps a namespace from being served.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from interpulse.model.numbers import INT_MAX, is_integer
from interpulse.model.strings import are_strings, is_string_map

__all__ = [
    "PolicyField",
    "flag",
    "flag_in_object",
    "names",
    "number",
    "one_each",
    "override",
    "pairs",
    "read_fields",
    "record",
    "text",
    "texts",
    "write_fields",
]


class _Record(Protocol):
    """A policy that is an object in JSON."""

    def to_json(self) -> dict[str, Any]: ...

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Raises ValueError for values of another kind."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyField:
    """One policy: its key in JSON, the attribute that holds it, and how one becomes the other.

    ``read`` raises ValueError with what is wrong.
    """

    key: str
    attribute: str
    read: Callable[[str, Any], Any]
    write: Callable[[Any], Any]


def read_fields(fields: Iterable[PolicyField], body: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The attributes that are set, and the keys that were understood; a null is not set."""
    values, understood = {}, set()
    for each in fields:
        value = body.get(each.key)
        if value is None:
            continue
        try:
            read = each.read(each.key, value)
        except (ValueError, TypeError):  # stays among what is not acted on
            continue
        understood.add(each.key)
        if read is not None:
            values[each.attribute] = read
    return values, understood


def write_fields(fields: Iterable[PolicyField], policies: object) -> dict[str, Any]:
    """The JSON of what is set."""
    values = ((each, getattr(policies, each.attribute)) for each in fields)
    return {each.key: each.write(value) for each, value in values if value is not None}


def number(key: str, attribute: str, *, most: int = INT_MAX) -> PolicyField:
    """An integer of 32 bits, or of as many as ``most`` needs."""
    return PolicyField(key, attribute, lambda name, value: integer(name, value, most=most), _same)


def flag(key: str, attribute: str) -> PolicyField:
    """True or false."""
    return PolicyField(key, attribute, truth, _same)


def flag_in_object(key: str, attribute: str, name: str) -> PolicyField:
    """An object whose one value ``name`` is true or false; an empty one sets nothing."""

    def read(key: str, value: Any) -> bool | None:
        found = _object(key, value).get(name)
        return None if found is None else truth(name, found)

    return PolicyField(key, attribute, read, lambda value: {name: value})


def text(key: str, attribute: str) -> PolicyField:
    """A string; an empty one is none."""
    return PolicyField(key, attribute, _text, _same)


def texts(key: str, attribute: str) -> PolicyField:
    """An array of strings, in any order."""
    return PolicyField(key, attribute, _texts, sorted)


def names(key: str, attribute: str) -> PolicyField:
    """An array of strings whose order means nothing: a sorted tuple."""
    return PolicyField(key, attribute, lambda name, value: tuple(sorted(_texts(name, value))), sorted)


def pairs(key: str, attribute: str) -> PolicyField:
    """An object of strings."""
    return PolicyField(key, attribute, _pairs, dict)


def record(key: str, attribute: str, kind: type[_Record]) -> PolicyField:
    """An object."""
    return PolicyField(key, attribute, lambda name, value: kind.from_json(_object(name, value)), _record_json)


def override(key: str, attribute: str, kind: type[_Record]) -> PolicyField:
    """An object; an empty one sets nothing."""

    def read(name: str, value: Any) -> Any:
        return kind.from_json(value) if _object(name, value) else None

    return PolicyField(key, attribute, read, _record_json)


def one_each(key: str, attribute: str, kind: type[_Record]) -> PolicyField:
    """An object with a policy for each of some names: of clusters, or of types."""

    def read(name: str, value: Any) -> dict[str, Any]:
        return {each: kind.from_json(_object(each, body)) for each, body in _object(name, value).items()}

    return PolicyField(key, attribute, read, lambda value: {name: value[name].to_json() for name in sorted(value)})


def integer(name: str, value: Any, *, most: int = INT_MAX) -> int:
    """The value if it is an integer that a Java client can read; raises ValueError."""
    if not is_integer(value, most=most):
        raise ValueError(f"{name} must be an integer from {-most - 1} to {most}, not {_shown(value)}")
    return value


def real(name: str, value: Any) -> float:
    """Return the value if it is a finite number; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a number, not {_shown(value)}")
    return float(value)


def truth(name: str, value: Any) -> bool:
    """The value if it is true or false; raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {_shown(value)}")
    return value


def _text(name: str, value: Any) -> str | None:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, not {_shown(value)}")
    return value or None


def _texts(name: str, value: Any) -> frozenset[str]:
    if not are_strings(value):
        raise ValueError(f"{name} must be an array of strings, not {_shown(value)}")
    return frozenset(value)


def _pairs(name: str, value: Any) -> dict[str, str]:
    if not is_string_map(value):
        raise ValueError(f"{name} must be an object of strings, not {_shown(value)}")
    return value


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, not {_shown(value)}")
    return value


def _record_json(value: _Record) -> dict[str, Any]:
    return value.to_json()


def _same(value: Any) -> Any:
    return value


def _shown(value: Any) -> str:
    return repr(value)[:100]

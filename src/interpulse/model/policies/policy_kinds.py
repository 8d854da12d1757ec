"""Kinds of policy values: their form in Pulsar's JSON, and the value that the documents hold.

Readers raise ValueError with the name and the wrong value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from interpulse.model.numbers import INT_MAX, is_integer


class Record(Protocol):
    """Policy that is an object in JSON."""

    def to_json(self) -> dict[str, Any]: ...

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Parse the JSON. Raise ValueError for values of another type."""
        ...


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Kind of values. Each kind is one object; tables of checks, bodies and options use it as their key.

    ``read`` takes a name for its errors and the JSON, and returns None for JSON that sets nothing.
    """

    read: Callable[[str, Any], Any]
    write: Callable[[Any], Any] = _same
    most: int = INT_MAX
    """Largest number."""


def number(most: int = INT_MAX) -> Kind:
    """Return a kind of integers of 32 bits, or of 64 with ``most``."""
    return Kind(lambda name, value: integer(name, value, most=most), most=most)


def flag_in_object(key: str) -> Kind:
    """Return a kind of booleans that are the field ``key`` of an object; an empty object sets nothing."""

    def read(name: str, value: Any) -> bool | None:
        allowed = _object(name, value).get(key)
        return None if allowed is None else truth(name, allowed)

    return Kind(read, lambda value: {key: value})


def names(*, empty_is_unset: bool = False) -> Kind:
    """Return a kind of names: a sorted array in JSON, a sorted tuple in documents."""

    def read(name: str, value: Any) -> tuple[str, ...] | None:
        return tuple(sorted(texts(name, value))) or (None if empty_is_unset else ())

    return Kind(read, sorted)


def record(form: type[Record]) -> Kind:
    """Return a kind of objects with the fields of ``form``."""
    return Kind(lambda name, value: form.from_json(_object(name, value)), lambda value: value.to_json())


def override(kind: Kind) -> Kind:
    """Return the kind of objects of which an empty one sets nothing."""
    return Kind(lambda name, value: kind.read(name, value) if _object(name, value) else None, kind.write)


def by_name(kind: Kind) -> Kind:
    """Return the kind of objects with one value per name: per cluster, or per type."""

    def read(name: str, value: Any) -> dict[str, Any]:
        return {inner: kind.read(inner, body) for inner, body in _object(name, value).items()}

    return Kind(read, lambda value: {inner: kind.write(value[inner]) for inner in sorted(value)})


def integer(name: str, value: Any, *, most: int = INT_MAX) -> int:
    """Return the value if it is an integer from ``-most - 1`` to ``most``; raise ValueError otherwise."""
    if not is_integer(value, most=most):
        raise ValueError(f"{name} must be an integer from {-most - 1} to {most}, not {_shown(value)}")
    return value


def real(name: str, value: Any) -> float:
    """Return the value if it is a finite number; raise ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a number, not {_shown(value)}")
    return float(value)


def truth(name: str, value: Any) -> bool:
    """Return the value if it is true or false; raise ValueError otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {_shown(value)}")
    return value


def text(name: str, value: Any) -> str | None:
    """Return the value if it is a string, None if it is empty; raise ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, not {_shown(value)}")
    return value or None


def texts(name: str, value: Any) -> frozenset[str]:
    """Return the strings of an array; raise ValueError for other values."""
    if not (isinstance(value, list) and _are_strings(value)):
        raise ValueError(f"{name} must be an array of strings, not {_shown(value)}")
    return frozenset(value)


def _are_strings(values: Iterable[Any]) -> bool:
    return all(isinstance(item, str) for item in values)


def pairs(name: str, value: Any) -> dict[str, str]:
    """Return the value if it is an object of strings; raise ValueError otherwise."""
    if not (isinstance(value, dict) and _are_strings(value.values())):
        raise ValueError(f"{name} must be an object of strings, not {_shown(value)}")
    return value


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return repr(value)[:100]

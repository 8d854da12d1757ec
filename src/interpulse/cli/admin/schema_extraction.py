"""Avro definition of a Python class: a dataclass or a pydantic model, with the types of its fields.

Annotations decide: ``int`` is a long, ``float`` a double, ``X | None`` a union with null, an Enum its names. A default
becomes the field's default if Avro can express it; the factories ``list`` and ``dict`` are empty defaults.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import sys
import types
import typing
import uuid
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

_SIMPLE: Final[Mapping[object, object]] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    datetime.datetime: {"type": "long", "logicalType": "timestamp-micros"},
    datetime.date: {"type": "int", "logicalType": "date"},
    datetime.time: {"type": "long", "logicalType": "time-micros"},
    uuid.UUID: {"type": "string", "logicalType": "uuid"},
}
_LISTS: Final = (list, Sequence, set, frozenset)
_DICTS: Final = (dict, Mapping)
_EMPTY: Final[Mapping[object, object]] = {list: [], dict: {}}
_ABSENT: Final = object()


class NotExtractable(ValueError):
    """A missing class, or one without an Avro form. ``str()`` names the place."""


class _Field(NamedTuple):
    name: str
    annotation: object
    default: object


def load_class(path: str) -> type:
    """Load the class named ``module:Class``. The working directory is searched too."""
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise NotExtractable(f"{path!r} does not name a class; the form is module:Class")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
        for part in class_name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise NotExtractable(f"{path} cannot be loaded: {error}") from error
    if not isinstance(found, type):
        raise NotExtractable(f"{path} is not a class")
    return found


def avro_definition(of: type, *, always_allow_null: bool = False) -> dict[str, Any]:
    """Return the record that describes ``of``.

    ``always_allow_null`` makes every field nullable, as Java's tool does.
    """
    return _Extraction(always_allow_null).record(of)


class _Extraction:
    """One definition. A class is described at its first use, and named afterwards."""

    def __init__(self, always_allow_null: bool) -> None:
        self._always_allow_null = always_allow_null
        self._names: dict[type, str] = {}

    def record(self, of: type) -> dict[str, Any]:
        self._names[of] = f"{_namespace(of)}.{of.__name__}"
        fields = [self._field(of, field) for field in _fields(of)]
        return {"type": "record", "name": of.__name__, "namespace": _namespace(of), "fields": fields}

    def _field(self, of: type, given: _Field) -> dict[str, Any]:
        try:
            kind = self._type(given.annotation)
        except NotExtractable as error:
            raise NotExtractable(f"{of.__qualname__}.{given.name}: {error}") from None
        default = _default(given.default)
        if self._always_allow_null and not (isinstance(kind, list) and "null" in kind):
            kind = ["null", *(kind if isinstance(kind, list) else [kind])]
            default = None if default is _ABSENT else default
        if isinstance(kind, list) and default not in (None, _ABSENT):
            # A union's default is a value of its first branch.
            kind = sorted(kind, key=lambda branch: branch == "null")
        shown: dict[str, Any] = {"name": given.name, "type": kind}
        return shown if default is _ABSENT else shown | {"default": default}

    def _type(self, annotation: Any) -> Any:
        if annotation in (None, types.NoneType):
            return "null"
        if isinstance(annotation, type) and annotation in self._names:
            return self._names[annotation]
        if _is_simple(annotation):
            return _SIMPLE[annotation]
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._type(arguments[0])
        if origin in (typing.Union, types.UnionType):
            return sorted((self._type(argument) for argument in arguments), key=lambda branch: branch != "null")
        if origin in _LISTS or (origin is tuple and arguments[1:] == (Ellipsis,)):
            return {"type": "array", "items": self._type(arguments[0])}
        if origin in _DICTS and arguments[0] is str:
            return {"type": "map", "values": self._type(arguments[1])}
        return self._named(annotation)

    def _named(self, annotation: Any) -> dict[str, Any]:
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            self._names[annotation] = f"{_namespace(annotation)}.{annotation.__name__}"
            symbols = [member.name for member in annotation]
            return {
                "type": "enum",
                "name": annotation.__name__,
                "namespace": _namespace(annotation),
                "symbols": symbols,
            }
        if isinstance(annotation, type) and _is_record(annotation):
            return self.record(annotation)
        raise NotExtractable(
            f"Avro has no form for {annotation!r}; known are bool, int, float, str, bytes, datetime, date, time, UUID, "
            "lists, dicts with strings as keys, enums, dataclasses, pydantic models and unions of them"
        )


def _is_simple(annotation: object) -> bool:
    return isinstance(annotation, type) and annotation in _SIMPLE


def _is_record(of: type) -> bool:
    return dataclasses.is_dataclass(of) or hasattr(of, "model_fields")


def _fields(of: type) -> Iterator[_Field]:
    if dataclasses.is_dataclass(of):
        hints = _hints(of)
        for field in dataclasses.fields(of):
            default = field.default if field.default is not dataclasses.MISSING else _of_factory(field.default_factory)
            yield _Field(field.name, hints[field.name], default)
    elif hasattr(of, "model_fields"):
        hints = _hints(of)
        for name, info in of.model_fields.items():
            required = info.is_required() or info.default_factory is not None
            yield _Field(name, hints[name], _of_factory(info.default_factory) if required else info.default)
    else:
        raise NotExtractable(f"{of.__module__}:{of.__qualname__} is neither a dataclass nor a pydantic model")


def _hints(of: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(of, include_extras=True)
    except NameError as error:
        raise NotExtractable(f"{of.__qualname__} is annotated with something unknown: {error}") from error


def _of_factory(factory: Any) -> object:
    return _EMPTY.get(factory, _ABSENT)


def _default(value: object) -> object:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if value is None or isinstance(value, (bool, int, float, str, list, dict)) else _ABSENT


def _namespace(of: type) -> str:
    return of.__module__

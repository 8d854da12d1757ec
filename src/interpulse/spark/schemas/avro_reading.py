"""Avro payloads written by one definition, read as values of another, by the rules of Java's ``Resolver``.

``rules.schema_compatibility.avro`` pairs the types. As in Java, a pair that cannot be read is an error only for
messages that need it.
"""

from __future__ import annotations

import ctypes
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.rules.schema_compatibility.avro import AliasConflict, are_alike, find_branch, promotes, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType
from interpulse.spark.schemas.avro_values import (
    VALUE,
    Shape,
    Unfit,
    WireForm,
    below,
    default_of,
    members_of,
    reading_leaf,
    tree_of,
    wide_member,
)

_DOUBLE_BITS: Final = 53


def avro_decoder(written: bytes, wanted: bytes) -> Callable[[bytes], Any]:
    """Return the function that reads payloads of the definition ``written`` as values of ``wanted`` for Arrow.

    It raises Unfit with the column of a value that cannot be read, and what fastavro raises for broken bytes.
    """
    import fastavro

    reader = tree_of(wanted)
    try:
        writer = reader if written == wanted else with_aliases_of(reader, tree_of(written))
    except AliasConflict as error:
        return _Refusal(str(error))
    parsed = WireForm(writer).parsed
    shape, is_record = reading_shape(writer, reader), writer.kind == "record"

    def decode(raw: bytes) -> Any:
        read: Any = fastavro.schemaless_reader(io.BytesIO(raw), parsed, None)
        value = read if is_record else read[VALUE]
        return value if shape is None else shape(value)

    return decode


def reading_shape(written: AvroType, wanted: AvroType) -> Shape | None:
    """Return the shape that turns what fastavro reads by the ``WireForm`` of ``written`` into a value of ``wanted``.

    The types and fields of ``written`` have the names that the aliases of ``wanted`` give them.
    """
    if written.kind == "union":
        return _from_union(written, wanted)
    if wanted.kind == "union":
        branch = find_branch(written, wanted)
        return _refusal(written, wanted) if branch is None else _as_branch(written, wanted, branch)
    if written.kind != wanted.kind:
        return _promotion(written, wanted) if promotes(written, wanted) else _refusal(written, wanted)
    match wanted.kind:
        case "record":
            return _record(written, wanted)
        case "array" | "map":
            inner = reading_shape(written.parts[0], wanted.parts[0])
            if inner is None:
                return None
            if wanted.kind == "array":
                return lambda values: [inner(value) for value in values]
            return lambda values: {key: inner(value) for key, value in values.items()}
        case "enum" | "fixed" if (written.short_name, written.size) != (wanted.short_name, wanted.size):
            return _refusal(written, wanted)
        case "enum":
            return _enum(written, wanted)
        case _:
            return reading_leaf(written, wanted)


@dataclass(frozen=True)
class _Refusal:
    """A conversion that refuses every value."""

    reason: str
    path: tuple[str, ...] = ()

    def __call__(self, value: Any) -> Any:
        raise Unfit(self.reason, self.path)


def _refusal(written: AvroType, wanted: AvroType) -> _Refusal:
    shown = [f"{kind.kind} {kind.name}".rstrip() for kind in (written, wanted)]
    return _Refusal(f"it was written as {shown[0]}, which cannot be read as {shown[1]}")


# ---- Unions


def _from_union(written: AvroType, wanted: AvroType) -> Shape | None:
    alike = are_alike(written, wanted)
    targets = wanted.parts if alike else [wanted] * len(written.parts)
    pairs = [*zip(written.parts, targets, strict=True)]
    is_as_read = alike and (len(members := members_of(written)) < 2 or wide_member(members) is None)
    if is_as_read and all(reading_shape(branch, target) is None for branch, target in pairs):
        return None
    of_null: Shape | None = None
    shapes: dict[str, Shape | None] = {}
    for branch, target in pairs:
        shape = _as_branch(branch, wanted, target) if alike else reading_shape(branch, wanted)
        if branch.kind == "null":
            of_null = shape
        else:
            shapes[f"member{len(shapes)}"] = shape
    return _of_members(shapes, of_null) if len(shapes) > 1 else _or_null(next(iter(shapes.values()), None), of_null)


def _or_null(shape: Shape | None, of_null: Shape | None) -> Shape | None:
    if shape is None and of_null is None:
        return None
    inner, empty = shape or _same, of_null or _same
    return lambda value: empty(value) if value is None else inner(value)


def _same(value: Any) -> Any:
    return value


def _of_members(shapes: Mapping[str, Shape | None], of_null: Shape | None) -> Shape:
    def shape(value: Any) -> Any:
        if value is None:
            return None if of_null is None else of_null(value)
        ((member, content),) = value.items()
        inner = shapes[member]
        return content if inner is None else inner(content)

    return shape


def _as_branch(written: AvroType, union: AvroType, branch: AvroType) -> Shape | None:
    shape, members = reading_shape(written, branch), members_of(union)
    is_column = len(members) < 2 or branch.kind == "null" or wide_member(members) is not None
    if is_column or isinstance(shape, _Refusal):
        return shape
    name = f"member{members.index(branch)}"
    return (lambda value: {name: value}) if shape is None else (lambda value: {name: shape(value)})


# ---- Records and enumerations


def _record(written: AvroType, wanted: AvroType) -> Shape | None:
    types = {field.name: field.type for field in written.fields}
    shapes: dict[str, Shape] = {}
    defaults: dict[str, Any] = {}
    for field in wanted.fields:
        if field.name in types:
            shape = reading_shape(types[field.name], field.type)
            if shape is not None:
                shapes[field.name] = shape
        elif field.has_default:
            _add_default(field, shapes, defaults)
        else:
            return _Refusal(f"the field {field.name} is not written and has no default")
    return _changed(shapes, defaults) if shapes or defaults else None


def _add_default(field: AvroField, shapes: dict[str, Shape], defaults: dict[str, Any]) -> None:
    """Add the value of the default; one that does not fit its type is an error of the messages that need it."""
    try:
        stored, shape = default_of(field), reading_shape(field.type, field.type)
        defaults[field.name] = stored if shape is None else shape(stored)
    except ValueError as error:
        defaults[field.name] = None
        shapes[field.name] = _Refusal(error.reason, error.path) if isinstance(error, Unfit) else _Refusal(str(error))


def _changed(shapes: Mapping[str, Shape], defaults: Mapping[str, Any]) -> Shape:
    """Return the shape that changes these fields. Fields that the reader lacks stay: Arrow leaves them out."""
    changes = tuple(shapes.items())

    def shape(record: dict[str, Any]) -> dict[str, Any]:
        record.update(defaults)
        name = ""
        try:
            for name, inner in changes:
                record[name] = inner(record[name])
        except ValueError as error:
            raise below(name, error) from None
        return record

    return shape


def _enum(written: AvroType, wanted: AvroType) -> Shape:
    """Return the conversion of a symbol's number. An unknown symbol becomes the reader's default, if there is one."""
    default = wanted.symbol_default if wanted.symbol_default in wanted.symbols else None
    read = [symbol if symbol in wanted.symbols else default for symbol in written.symbols]

    def shape(number: int) -> str:
        if not 0 <= number < len(read):
            raise ValueError(f"{wanted.name} has no symbol number {number}")
        symbol = read[number]
        if symbol is None:
            raise ValueError(f"{written.symbols[number]} is no symbol of {wanted.name}, which has no default")
        return symbol

    return shape


# ---- Promotion


def _promotion(written: AvroType, wanted: AvroType) -> Shape | None:
    inner, leaf = _PROMOTIONS.get(f"{written.kind} {wanted.kind}"), reading_leaf(written, wanted)
    return (lambda value: leaf(inner(value))) if inner and leaf else inner or leaf


def _as_float(number: int) -> float:
    """Return the nearest FLOAT, as Java does, which is not always that of the nearest double.

    Bits beyond a double only break a tie, so one bit stands for all of them.
    """
    size, behind = abs(number), abs(number).bit_length() - _DOUBLE_BITS
    if behind > 0:
        size = (size >> behind | bool(size & (1 << behind) - 1)) << behind
    return ctypes.c_float(size if number >= 0 else -size).value


_PROMOTIONS: Final[Mapping[str, Shape]] = {
    "int float": _as_float,
    "long float": _as_float,
    "int double": float,
    "long double": float,
    "string bytes": str.encode,
    "bytes string": bytes.decode,
}

"""Avro payloads from values of Arrow, the inverse of ``avro_reading``."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType
from interpulse.spark.schemas.avro_values import (
    VALUE,
    Shape,
    WireForm,
    below,
    default_of,
    logical_of,
    members_of,
    tree_of,
    wide_member,
    writing_leaf,
)


def avro_encoder(definition: bytes) -> Callable[[Any], bytes]:
    """Return the function that makes payloads of values.

    It raises Unfit with the column of a value that does not fit.
    """
    import fastavro

    top = tree_of(definition)
    form = WireForm(top)
    shape, is_record = _Writing(form).shape(top), top.kind == "record"

    def encode(value: Any) -> bytes:
        payload = io.BytesIO()
        shaped = shape(value)
        fastavro.schemaless_writer(payload, form.parsed, shaped if is_record else {VALUE: shaped})
        return payload.getvalue()

    return encode


class _Writing:
    """Conversions of types. Arrow represents a map as a list of pairs, and a union as a struct with one member set."""

    def __init__(self, form: WireForm) -> None:
        self._form = form

    def shape(self, kind: AvroType) -> Shape:
        match kind.kind:
            case "union":
                return self._union(kind)
            case "record":
                return self._record(kind)
            case "array":
                item = self.shape(kind.parts[0])
                return lambda values: [item(value) for value in _required(values)]
            case "map":
                entry = self.shape(kind.parts[0])
                return lambda pairs: {key: entry(value) for key, value in dict(_required(pairs)).items()}
            case "null":
                return _null
            case "enum":
                return lambda symbol: _symbol(kind, _required(symbol))
            case "fixed" if not logical_of(kind):
                return lambda raw: _sized(kind, _required(raw))
            case _:
                leaf = writing_leaf(kind)
                return _required if leaf is None else lambda value: leaf(_required(value))

    def _record(self, kind: AvroType) -> Shape:
        fields = [(field.name, self.shape(field.type), _default(field)) for field in kind.fields]

        def shape(row: Any) -> dict[str, Any]:
            record, name = {}, ""
            values = _required(row)
            try:
                for name, inner, absent in fields:
                    record[name] = inner(values[name]) if name in values else absent()
            except (ValueError, TypeError, OverflowError) as error:
                raise below(name, error) from None
            return record

        return shape

    def _union(self, union: AvroType) -> Shape:
        members, names = members_of(union), self._form.branch_names(union)
        shapes = [self.shape(member) for member in members]
        of_null = _null if len(members) < len(union.parts) else _required
        if not members:
            return _null
        if len(members) == 1:
            return lambda value: of_null(value) if value is None else (names[0], shapes[0](value))
        wide = wide_member(members)
        if wide is not None:
            number, branch = f"member{wide}", names[wide]
            return lambda value: of_null(value) if value is None else (branch, {number: value})

        def member(value: Any) -> Any:
            values = [] if value is None else [name for name, content in value.items() if content is not None]
            if not values:
                return of_null(None)
            if len(values) > 1:
                raise ValueError(f"{' and '.join(values)} are set: a union has one value")
            index = int(values[0].removeprefix("member"))
            return names[index], {values[0]: shapes[index](value[values[0]])}

        return member


def _default(field: AvroField) -> Callable[[], Any]:
    """Return the function that makes the value for rows without this column."""
    return cache(partial(default_of, field)) if field.has_default else _absent


def _absent() -> Any:
    raise ValueError("the rows do not have it, and its field has no default")


def _null(value: Any) -> None:
    if value is not None:
        raise ValueError(f"{value!r:.80} is not null, which its field always is")


def _required(value: Any) -> Any:
    if value is None:
        raise ValueError("it is null, and its field takes no null")
    return value


def _sized(kind: AvroType, raw: bytes) -> bytes:
    if len(raw) != kind.size:
        raise ValueError(f"it has {len(raw)} bytes, and {kind.name} has {kind.size}")
    return raw


def _symbol(kind: AvroType, symbol: str) -> int:
    if symbol not in kind.symbols:
        raise ValueError(f"{symbol!r:.80} is no symbol of {kind.name}: {', '.join(kind.symbols)}")
    return kind.symbols.index(symbol)

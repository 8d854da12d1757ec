"""Avro definitions, as of AVRO and JSON schemas: the types of Spark they have, and values between both.

fastavro resolves names and reads and writes Avro. What it gives for a type is what Arrow takes for the type of Spark,
but for unions of several types, which become a struct with ``member0``, ``member1``.. as in Spark's own Avro source.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from interpulse.spark.options.option import OptionError

__all__ = ["avro_shaper", "avro_type", "parse_definition", "with_values_as_defaults"]

_KINDS: Final[dict[str, DataType]] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
_LOGICAL: Final[dict[str, DataType]] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
_NUMBERS: Final = ({"int", "long"}, {"float", "double"})

Shape: TypeAlias = Callable[[Any], Any]
"""Makes what Arrow takes of one value that was read."""


def parse_definition(definition: bytes) -> Any:
    """The definition with names resolved, as fastavro wants it. Raises OptionError if it is none."""
    try:
        import fastavro
    except ImportError:
        raise OptionError(
            "the topic has an Avro definition, and package fastavro is not installed where Spark's Python runs: "
            "install interpulse[spark] there, or read with valueSchema=raw"
        ) from None
    try:
        body = json.loads(definition)
        return fastavro.parse_schema(_plain(body), named_schemas={}, _ignore_default_error=True)
    except Exception as error:  # noqa: BLE001 - fastavro answers a wrong structure with whatever it stumbles over
        raise OptionError(f"the topic's schema is no Avro definition: {error}; read with valueSchema=raw") from None


def _plain(schema: Any) -> Any:
    """Without the logical types that have no type of their own here: fastavro would make objects of them."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType" or _is_kept(schema)}
    for key in ("type", "items", "values"):
        if isinstance(kept.get(key), dict | list):
            kept[key] = _plain(kept[key])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [{**each, "type": _plain(each["type"])} for each in kept["fields"]]
    return kept


def _is_kept(schema: Mapping[str, Any]) -> bool:
    logical, kind = schema["logicalType"], schema.get("type")
    if logical == "decimal":
        return kind in ("bytes", "fixed") and 0 < schema.get("precision", 0) <= 38
    return logical in _LOGICAL and kind == ("int" if logical == "date" else "long")


class _Names:
    """The named types of one definition; a name stands for its definition, and no type may hold itself."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self._open: set[str] = set()

    def resolved(self, parsed: Any) -> Any:
        if isinstance(parsed, str):
            return self._known.get(parsed, {"type": parsed})
        if isinstance(parsed, dict) and "name" in parsed:
            self._known[parsed["name"]] = parsed
        return parsed

    def enter(self, name: str) -> None:
        if name in self._open:
            raise OptionError(f"record {name} holds itself, and no type of Spark does; read with valueSchema=raw")
        self._open.add(name)

    def leave(self, name: str) -> None:
        self._open.remove(name)


def avro_type(parsed: Any) -> DataType:
    """The type of Spark. Everything may be null: Pulsar's messages may have no value."""
    return _type_of(parsed, _Names())


def _type_of(parsed: Any, names: _Names) -> DataType:
    schema = names.resolved(parsed)
    if isinstance(schema, list):
        return _union_type(schema, names)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _type_of(kind, names)
    if schema.get("logicalType") == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    if "logicalType" in schema:
        return _LOGICAL[schema["logicalType"]]
    if kind == "array":
        return ArrayType(_type_of(schema["items"], names), True)
    if kind == "map":
        return MapType(StringType(), _type_of(schema["values"], names), True)
    if kind not in ("record", "error"):
        return _KINDS[kind]
    names.enter(schema["name"])
    fields = [StructField(each["name"], _type_of(each["type"], names), True) for each in schema["fields"]]
    names.leave(schema["name"])
    return StructType(fields)


def _branches(union: Sequence[Any]) -> list[Any]:
    return [branch for branch in union if branch != "null" and branch != {"type": "null"}]


def _union_type(union: Sequence[Any], names: _Names) -> DataType:
    branches = _branches(union)
    if not branches:
        return NullType()
    if len(branches) == 1:
        return _type_of(branches[0], names)
    if (wide := _wide_number(branches)) is not None:
        return _KINDS[wide]
    members = [StructField(f"member{index}", _type_of(branch, names)) for index, branch in enumerate(branches)]
    return StructType(members)


def _wide_number(branches: Sequence[Any]) -> str | None:
    """``int`` and ``long`` together are a long, ``float`` and ``double`` a double."""
    kinds = {branch if isinstance(branch, str) else "" for branch in branches}
    return next((max(pair) if "int" in pair else "double" for pair in _NUMBERS if kinds == pair), None)


# ---- What fastavro reads


def avro_shaper(parsed: Any) -> Shape | None:
    """What is left to do with a value that fastavro read; None for nothing."""
    return _avro_shape(parsed, _Names())


def _avro_shape(parsed: Any, names: _Names) -> Shape | None:
    schema = names.resolved(parsed)
    if isinstance(schema, list):
        return _union_shape(schema, names, _avro_shape)
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _avro_shape(kind, names)
    if kind == "array":
        return _list_shape(_avro_shape(schema["items"], names))
    if kind == "map":
        return _map_shape(_avro_shape(schema["values"], names))
    if kind in ("record", "error"):
        shapes = {each["name"]: _avro_shape(each["type"], names) for each in schema["fields"]}
        return _record_shape({name: shape for name, shape in shapes.items() if shape is not None})
    return None


def _list_shape(inner: Shape | None) -> Shape | None:
    if inner is None:
        return None
    return lambda values: None if values is None else [inner(value) for value in values]


def _map_shape(inner: Shape | None) -> Shape | None:
    if inner is None:
        return None
    return lambda values: None if values is None else {key: inner(value) for key, value in values.items()}


def _record_shape(shapes: Mapping[str, Shape]) -> Shape | None:
    if not shapes:
        return None

    def shape(record: dict[str, Any] | None) -> dict[str, Any] | None:
        if record is None:
            return None
        return record | {name: inner(record[name]) for name, inner in shapes.items() if record.get(name) is not None}

    return shape


def _union_shape(union: Sequence[Any], names: _Names, of_branch: Callable[[Any, _Names], Shape | None]) -> Shape | None:
    branches = _branches(union)
    shapes = [of_branch(branch, names) for branch in branches]
    if len(branches) <= 1 or _wide_number(branches) is not None:
        return shapes[0] if shapes else None
    tests = [_branch_test(branch, names) for branch in branches]

    def shape(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        for index, fits in enumerate(tests):
            if fits(value):
                inner = shapes[index]
                return {f"member{index}": value if inner is None else inner(value)}
        raise ValueError(f"{value!r:.80} is of none of the types of its union")

    return shape


_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float, Decimal),
    "double": (float, Decimal),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "array": (list,),
    "map": (dict,),
    "date": (date,),
    "decimal": (Decimal,),
}


def _branch_test(branch: Any, names: _Names) -> Callable[[Any], bool]:
    schema = names.resolved(branch)
    kind = schema["type"]
    if kind in ("record", "error"):
        fields = {each["name"] for each in schema["fields"]}
        return lambda value: isinstance(value, dict) and value.keys() <= fields
    if kind == "enum":
        symbols = frozenset(schema["symbols"])
        return lambda value: isinstance(value, str) and value in symbols
    logical = schema.get("logicalType")
    classes = (datetime,) if logical in _LOGICAL and logical != "date" else _CLASSES[logical or kind]
    return lambda value: isinstance(value, classes) and (isinstance(value, bool) == (kind == "boolean"))


def with_values_as_defaults(parsed: Any) -> Any:
    """The same with defaults as fastavro gives values: it hands a default through as the definition spells it."""
    if not isinstance(parsed, dict) or "fields" not in parsed:
        return parsed
    return {**parsed, "fields": [_with_value_as_default(each) for each in parsed["fields"]]}


def _with_value_as_default(field: Mapping[str, Any]) -> Mapping[str, Any]:
    kind = field["type"][0] if isinstance(field["type"], list) else field["type"]
    if "default" not in field or not (kind == "bytes" or (isinstance(kind, dict) and kind.get("type") in _KINDS)):
        return field
    stored = {key: value for key, value in kind.items() if key != "logicalType"} if isinstance(kind, dict) else kind
    default = field["default"]
    if isinstance(default, str) and (stored == "bytes" or stored["type"] in ("bytes", "fixed")):
        default = default.encode("latin-1")
    return {**field, "default": _reread(default, stored, kind)}


def _reread(value: Any, written: Any, read: Any) -> Any:
    import fastavro

    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, written, value)
    payload.seek(0)
    return fastavro.schemaless_reader(payload, read, None)

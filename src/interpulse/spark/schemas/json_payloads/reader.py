"""Payloads of JSON schemas as values for Arrow: objects, arrays, maps and unions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from interpulse.spark.schemas.avro_columns import non_null_branches, resolved_types
from interpulse.spark.schemas.json_payloads.definition import is_pairs, parse_json_definition
from interpulse.spark.schemas.json_payloads.values import Fraction, JsonMisfit, ReadValue, kind_name, value_reader

_JSON: Final = json.JSONDecoder(parse_float=Fraction)


def json_reader(definition: bytes) -> Callable[[bytes], Any]:
    """Return a reader of payloads by this definition. Missing fields are null, unknown fields are dropped.

    The reader raises ValueError for bytes that are no JSON, and JsonMisfit for a value that does not fit its field.
    """
    read = _reader(resolved_types(parse_json_definition(definition)))

    def decode(raw: bytes) -> Any:
        value = _JSON.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))
        return None if value is None else read(value)

    return decode


def _reader(schema: Any) -> ReadValue:
    if isinstance(schema, list):
        return _union_reader(schema)
    kind = schema["type"]
    if kind in ("record", "error"):
        return _record_reader(schema)
    if kind == "map":
        return _map_reader(_reader(schema["values"]))
    if kind == "array":
        items = _array_reader(_reader(schema["items"]))
        return _pairs_reader(schema["items"], items) if is_pairs(schema) else items
    return value_reader(schema)


def _record_reader(schema: Mapping[str, Any]) -> ReadValue:
    fields = [(field["name"], _reader(field["type"])) for field in schema["fields"]]

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise JsonMisfit(value, "STRUCT", "it takes an object")
        result: dict[str, Any] = {}
        name = ""
        try:
            for name, read_field in fields:
                item = value.get(name)
                result[name] = None if item is None else read_field(item)
        except JsonMisfit as error:
            raise error.inside(name) from None
        return result

    return read


def _array_reader(read_item: ReadValue) -> ReadValue:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise JsonMisfit(value, "ARRAY", "it takes an array")
        result: list[Any] = []
        try:
            for item in value:
                result.append(None if item is None else read_item(item))  # noqa: PERF401 - errors name their place
        except JsonMisfit as error:
            raise error.inside(f"[{len(result)}]") from None
        return result

    return read


def _map_reader(read_entry: ReadValue) -> ReadValue:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise JsonMisfit(value, "MAP", "it takes an object")
        result: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                result[key] = None if item is None else read_entry(item)
        except JsonMisfit as error:
            raise error.inside(f"[{key}]") from None
        return result

    return read


def _pairs_reader(pair: Mapping[str, Any], read_items: ReadValue) -> ReadValue:
    """Return a reader of a Java ``Map`` whose keys are not strings: an object, or an array of pairs as defined."""
    read_key, read_value = (_reader(field["type"]) for field in pair["fields"])
    read_entries = _map_reader(read_value)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            return read_items(value)
        result = [{"key": read_key(key), "value": item} for key, item in read_entries(value).items()]
        if any(item["key"] is None for item in result):
            raise JsonMisfit(value, "MAP", "each entry has a key")
        return result

    return read


# ---- Unions


def _union_reader(union: Sequence[Any]) -> ReadValue:
    branches = non_null_branches(union)
    for narrow, wide in (("int", "long"), ("float", "double")):
        if len(branches) == 2 and {"type": narrow} in branches and {"type": wide} in branches:
            return value_reader({"type": wide})
    readers = [_reader(branch) for branch in branches]
    if len(readers) == 1:
        return readers[0]
    names = [kind_name(branch) if "name" not in branch else branch["name"] for branch in branches]

    def read(value: Any) -> dict[str, Any] | None:
        fitting = [index for index, branch in enumerate(branches) if _fits(value, branch, readers[index])]
        if len(fitting) > 1 and type(value) is int:
            fitting = [index for index in fitting if branches[index]["type"] in ("int", "long")]
        if len(fitting) != 1:
            rule = f"it fits {' and '.join(names[index] for index in fitting)}" if fitting else "it fits none of them"
            raise JsonMisfit(value, f"the union of {', '.join(names)}", f"{rule}, and JSON does not say which is meant")
        return {f"member{fitting[0]}": readers[fitting[0]](value)}

    return read if branches else value_reader({"type": "null"})


_NO_FINITE: Final = ("NaN", "Infinity", "-Infinity")
_SPELLINGS: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    **dict.fromkeys(("int", "long"), (int,)),
    **dict.fromkeys(("float", "double"), (int, float, Fraction)),
    "decimal": (int, Fraction),
    **dict.fromkeys(("string", "enum", "bytes", "fixed"), (str,)),
    "array": (list,),
    **dict.fromkeys(("map", "record", "error"), (dict,)),
    "date": (int, list, str),
    "timestamp": (int, Fraction, str),
    "local-timestamp": (int, list, str),
}


def _fits(value: Any, branch: Mapping[str, Any], read: ReadValue) -> bool:
    """Return True for a value in the notation of this type. Inside a union, text is not a number."""
    logical = branch.get("logicalType", branch["type"]).removesuffix("-millis").removesuffix("-micros")
    spelling = _SPELLINGS.get(logical, (int,))
    if type(value) not in spelling and not (logical in ("float", "double") and value in _NO_FINITE):
        return False
    if type(value) is dict and "fields" in branch:
        fields = branch["fields"]
        needed = {field["name"] for field in fields if "default" not in field and not _takes_null(field["type"])}
        if not needed <= value.keys() <= {field["name"] for field in fields}:
            return False
    try:
        return read(value) is not None
    except JsonMisfit:
        return False


def _takes_null(schema: Any) -> bool:
    return any(branch["type"] == "null" for branch in (schema if isinstance(schema, list) else [schema]))

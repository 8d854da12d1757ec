"""Rows as payloads of JSON schemas: text that Java's client reads, with each number as exact as its column."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache, partial
from typing import Any, Final, TypeAlias

from interpulse.spark.schemas.avro_columns import non_null_branches, resolved_types
from interpulse.spark.schemas.json_payloads.definition import JAVA_SECONDS, is_pairs, parse_json_definition
from interpulse.spark.schemas.json_payloads.values import JsonMisfit, kind_name

_Write: TypeAlias = Callable[[Any], str]
"""Function that writes the JSON of a value other than null. Raises JsonMisfit."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_EXACT: Final = Context(prec=38)
_ABSENT: Final = object()
_text: Final = json.JSONEncoder(ensure_ascii=False).encode


def json_writer(definition: bytes, *, for_java: bool) -> Callable[[Any], bytes]:
    """Return a writer of values by this definition. The writer raises JsonMisfit.

    Times are written in the definition's unit. With ``for_java``, for definitions that Java's client derived from its
    classes, they are written as these classes read them: seconds with a fraction, and arrays.
    """
    write = _Writers(for_java=for_java).of(resolved_types(parse_json_definition(definition)))
    return lambda value: write(value).encode()


class _Writers:
    def __init__(self, *, for_java: bool) -> None:
        self._for_java = for_java

    def of(self, schema: Any) -> _Write:
        """Return a writer of a type, which writes null if the type is a union with null."""
        branches = non_null_branches(schema)
        takes_null = len(branches) < (len(schema) if isinstance(schema, list) else 1)
        write = self._of_type(branches[0]) if len(branches) == 1 else self._of_union(branches)
        kind = kind_name(branches[0]) if len(branches) == 1 else "UNION"

        def write_any(value: Any) -> str:
            if value is not None:
                return write(value)
            if takes_null:
                return "null"
            raise JsonMisfit(None, kind, "the schema takes no null there")

        return write_any

    def _of_type(self, schema: Mapping[str, Any]) -> _Write:
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._of_record(schema)
        if kind == "map":
            return self._of_map(self.of(schema["values"]))
        if kind == "array":
            if is_pairs(schema):
                return self._of_pairs(*(field["type"] for field in schema["items"]["fields"]))
            return self._of_array(self.of(schema["items"]))
        return self._of_value(schema)

    def _of_record(self, schema: Mapping[str, Any]) -> _Write:
        fields = [(field["name"], f"{_text(field['name'])}:", self._of_field(field)) for field in schema["fields"]]

        def write(row: Mapping[str, Any]) -> str:
            parts = []
            name = ""
            try:
                for name, head, write_field in fields:
                    text = write_field(row.get(name, _ABSENT))
                    if text:
                        parts.append(head + text)
            except JsonMisfit as error:
                raise error.inside(name) from None
            return "{" + ",".join(parts) + "}"

        return write

    def _of_field(self, field: Mapping[str, Any]) -> _Write:
        """Return a writer of a field that also handles rows without the column: the default, or nothing for null."""
        write = self.of(field["type"])
        is_null = field.get("default") is None and any(branch["type"] == "null" for branch in _branches(field["type"]))
        default = cache(lambda: write(_value_of_default(field["type"], field["default"])))

        def write_field(value: Any) -> str:
            if value is not _ABSENT:
                return write(value)
            if is_null:
                return ""
            if "default" not in field:
                raise JsonMisfit(None, "the schema", "the rows have no such column, and the field has no default")
            return default()

        return write_field

    def _of_array(self, write_item: _Write) -> _Write:
        def write(values: Sequence[Any]) -> str:
            parts: list[str] = []
            try:
                for value in values:
                    parts.append(write_item(value))  # noqa: PERF401 - errors name their place
            except JsonMisfit as error:
                raise error.inside(f"[{len(parts)}]") from None
            return "[" + ",".join(parts) + "]"

        return write

    def _of_map(self, write_entry: _Write) -> _Write:
        def write(pairs: Any) -> str:
            parts = []
            key = ""
            try:
                for key, value in dict(pairs).items():
                    parts.append(f"{_text(key)}:{write_entry(value)}")
            except JsonMisfit as error:
                raise error.inside(f"[{key}]") from None
            return "{" + ",".join(parts) + "}"

        return write

    def _of_pairs(self, key: Any, value: Any) -> _Write:
        write_key, write_map = self.of(key), self._of_map(self.of(value))

        def write(pairs: Sequence[Mapping[str, Any]]) -> str:
            texts = [write_key(pair["key"]) for pair in pairs]
            names = [json.loads(text) if text.startswith('"') else text for text in texts]
            return write_map(zip(names, (pair["value"] for pair in pairs), strict=True))

        return write

    def _of_union(self, branches: Sequence[Any]) -> _Write:
        writers = [self._of_type(branch) for branch in branches]

        def write(value: Any) -> str:
            if not isinstance(value, dict):
                return writers[-1](value)  # several widths of one number
            members = [name for name, member in value.items() if member is not None]
            if len(members) != 1:
                said = " and ".join(members) or "none of its members"
                raise JsonMisfit(value, "UNION", f"one member has a value, and here {said}")
            return writers[int(members[0].removeprefix("member"))](value[members[0]])

        return write

    def _of_value(self, schema: Mapping[str, Any]) -> _Write:
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return "{:f}".format
        if logical == "date":
            return _write_date_array if self._for_java else _write_days
        if logical is not None:
            return self._of_moment(logical, schema.get("java-class"))
        if kind == "enum":
            return partial(_write_symbol, schema["symbols"])
        if kind == "fixed":
            return partial(_write_fixed, schema["size"], kind_name(schema))
        if "dayTicks" in schema and self._for_java:
            return partial(_write_time_array, schema["dayTicks"])
        return _WRITERS[kind]

    def _of_moment(self, logical: str, java_class: str | None) -> _Write:
        per_tick = 1000 if logical.endswith("millis") else 1
        if logical.startswith("local"):
            return _write_local_array if self._for_java else partial(_write_ticks, per_tick)
        in_seconds = self._for_java if java_class is None else java_class in JAVA_SECONDS
        return _write_seconds if in_seconds else partial(_write_ticks, per_tick)


def _branches(schema: Any) -> list[Any]:
    return schema if isinstance(schema, list) else [schema]


def _value_of_default(schema: Any, default: Any) -> Any:
    """Return the value of a default, which has Avro's own JSON notation. A union's default has its first type."""
    branches = _branches(schema)
    first = branches[0]
    if default is None:
        return None  # which Java lets stand where the type takes no null
    kind, logical = first["type"], first.get("logicalType")
    if kind in ("bytes", "fixed"):
        value: Any = default.encode("latin-1")
        if logical == "decimal":
            value = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-first.get("scale", 0), _EXACT)
    elif kind == "array":
        value = [_value_of_default(first["items"], item) for item in default]
    elif kind == "map":
        value = {key: _value_of_default(first["values"], item) for key, item in default.items()}
    elif kind in ("record", "error"):
        value = {
            field["name"]: _value_of_default(field["type"], default.get(field["name"], field.get("default")))
            for field in first["fields"]
        }
    elif logical == "date":
        value = _EPOCH.date() + timedelta(days=default)
    elif logical is not None:
        value = _EPOCH + timedelta(microseconds=default * (1000 if logical.endswith("millis") else 1))
    else:
        value = default
    return {"member0": value} if len(non_null_branches(schema)) > 1 and value is not None else value


# ---- Single values


def _write_real(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')


def _write_bytes(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _write_fixed(size: int, kind: str, value: bytes) -> str:
    if len(value) != size:
        raise JsonMisfit(value, kind, f"it takes {size} bytes, not {len(value)}")
    return _write_bytes(value)


def _write_symbol(symbols: Sequence[str], value: str) -> str:
    if value not in symbols:
        raise JsonMisfit(value, "ENUM", f"its symbols are {', '.join(symbols)}")
    return _text(value)


def _write_days(value: date) -> str:
    return str((value - _EPOCH.date()).days)


def _write_date_array(value: date) -> str:
    return f"[{value.year},{value.month},{value.day}]"


def _micros(value: datetime) -> int:
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def _write_ticks(per_tick: int, value: datetime) -> str:
    return str(_micros(value) // per_tick)


def _write_seconds(value: datetime) -> str:
    micros = _micros(value)
    seconds, rest = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{seconds}.{rest:06}000"


def _write_local_array(value: datetime) -> str:
    moment = f"{value.year},{value.month},{value.day},{value.hour},{value.minute},{value.second}"
    return f"[{moment},{value.microsecond * 1000}]"


def _write_time_array(ticks: int, value: int) -> str:
    seconds, rest = divmod(value, ticks)
    if not 0 <= seconds < 86_400:
        raise JsonMisfit(value, "TIME", f"a day has {86_400 * ticks} of its ticks")
    return f"[{seconds // 3600},{seconds // 60 % 60},{seconds % 60},{rest * (1_000_000_000 // ticks)}]"


_WRITERS: Final[Mapping[str, _Write]] = {
    "null": lambda value: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": _write_real,
    "double": _write_real,
    "string": _text,
    "bytes": _write_bytes,
}

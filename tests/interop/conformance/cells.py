"""The cell of Spark that a value of the Java client has to be, and the other way round."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from decimal import MAX_PREC, Context, Decimal
from typing import Any, Final

from tests.interop.conformance.avro_types import Type, kind_of, number_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=MAX_PREC)
_WIDE: Final = ({"int", "long"}, {"float", "double"})


class NoCell(ValueError):
    """Spark, or Python for it, has no such value."""


def logical_of(kind: Type) -> str:
    """The logical type, where Spark has a type for it."""
    logical = kind.get("logicalType", "") if isinstance(kind, dict) else ""
    if logical != "decimal":
        return logical if logical == "date" or "timestamp" in logical else ""
    digits = (8 * kind["size"] - 1) * 3_010_299_956 // 10_000_000_000 if kind["type"] == "fixed" else 38
    return logical if kind["scale"] <= kind["precision"] <= min(digits, 38) else ""


def is_wide(union: list[Type]) -> bool:
    """One column for two widths of a number."""
    kinds = [kind_of(branch) for branch in union if branch != "null"]
    return set(kinds) in _WIDE and not any("logicalType" in branch for branch in union)


def has_wide_union(kind: Type) -> bool:
    """The branch that such a value is written as is no concern of its reader."""
    if isinstance(kind, list):
        return is_wide(kind) or any(has_wide_union(branch) for branch in kind)
    if not isinstance(kind, dict):
        return False
    inner = [kind.get("items"), kind.get("values"), *(item["type"] for item in kind.get("fields", ()))]
    return any(has_wide_union(part) for part in inner if part is not None)


def cell_of(kind: Type, value: Any) -> Any:
    """As ``Array.to_pylist`` gives it. Raises NoCell."""
    match kind_of(kind):
        case "union":
            return _of_union(kind, value)
        case "record":
            return {item["name"]: cell_of(item["type"], value[item["name"]]) for item in kind["fields"]}
        case "array":
            return [cell_of(kind["items"], item) for item in value]
        case "map":
            return [(key, cell_of(kind["values"], item)) for key, item in value]
        case "float":
            return number_of(value, "f")
        case "double":
            return number_of(value, "d")
        case "bytes" | "fixed":
            raw = value.encode("latin-1")
            return _decimal(kind, raw) if logical_of(kind) else raw
        case "int" | "long" if logical_of(kind):
            return _moment(logical_of(kind), value)
        case _:
            return value


def _of_union(kind: list[Type], value: Any) -> Any:
    if value is None:
        return None
    ((index, content),) = value.items()
    branch, members = kind[int(index)], [part for part in kind if part != "null"]
    cell = cell_of(branch, content)
    if len(members) == 1 or is_wide(kind):
        return cell
    chosen = int(index) - ("null" in kind[: int(index)])
    return {f"member{place}": cell if place == chosen else None for place in range(len(members))}


def _decimal(kind: Type, raw: bytes) -> Decimal:
    unscaled = int.from_bytes(raw, "big", signed=True)
    if abs(unscaled) >= 10 ** kind["precision"]:
        raise NoCell(f"{unscaled} has more digits than {kind}")
    return Decimal(unscaled).scaleb(-kind["scale"], _EXACT)


def _moment(logical: str, ticks: int) -> Any:
    unit = {"date": timedelta(days=1)}.get(logical, timedelta(microseconds=1000 if logical.endswith("millis") else 1))
    try:
        moment = _EPOCH + ticks * unit
    except OverflowError:
        raise NoCell(f"{ticks} of {logical} is beyond the year 9999") from None
    if logical == "date":
        return moment.date()
    return moment.replace(tzinfo=None) if logical.startswith("local") else moment


def same(one: Any, other: Any) -> bool:
    """Equal to the bit: -0.0 is not 0.0, and NaN is NaN. The entries of a map, which are tuples, have no order."""
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if one and other and isinstance(one[0], tuple) and isinstance(other[0], tuple):
            one, other = sorted(one, key=_key), sorted(other, key=_key)
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other and str(one) == str(other)


def _key(entry: tuple[str, Any]) -> str:
    return entry[0]

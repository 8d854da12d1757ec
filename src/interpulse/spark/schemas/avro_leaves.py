"""Values of logical types, between their stored form in Avro and Arrow, and the error of a value that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_PREC, Context, Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from interpulse.rules.schema_compatibility.avro_types import AvroType
from interpulse.spark.schemas.avro_columns import is_logical

Shape: TypeAlias = Callable[[Any], Any]
"""Conversion of one value. Raises ValueError for a value that does not fit. None stands for no conversion."""

DAYS: Final = (-719_162, 2_932_896)
MICROS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Smallest and largest time of Python's calendar, from year 1 to year 9999."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_EXACT: Final = Context(prec=MAX_PREC)


class Unfit(ValueError):
    """A value that does not fit its type, with its column."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)}: {self.reason}" if self.path else self.reason


def below(name: str, error: Exception) -> Unfit:
    """Return the same error one level up, where its column is a part of the column ``name``."""
    return Unfit(error.reason, (name, *error.path)) if isinstance(error, Unfit) else Unfit(str(error), (name,))


def in_column(name: str, convert: Shape) -> Shape:
    """Return the same conversion for values of the column ``name``, which its errors name."""

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except Unfit as error:
            raise below(name, error) from None

    return converted


def logical_of(kind: AvroType) -> str:
    """Return the logical type; the empty string for none and for one that has no type of Spark."""
    known = kind.logical and is_logical({"type": kind.kind, "size": kind.size, **kind.logical})
    return str(kind.logical["logicalType"]) if known else ""


def reading_leaf(written: AvroType, wanted: AvroType) -> Shape | None:
    """Return the shape that turns a value stored as ``written`` into one of ``wanted`` for Arrow.

    Times and decimals keep their meaning: where both types have a unit or a scale, that of the writer counts.
    """
    logical, origin = logical_of(wanted), logical_of(written)
    if logical == "decimal":
        scale = written.logical.get("scale", 0) if origin == "decimal" else wanted.logical.get("scale", 0)
        return partial(_decimal, scale, wanted.logical["precision"], wanted.logical.get("scale", 0))
    if logical == "date":
        return _day
    if logical:
        unit = origin if "timestamp" in origin else logical
        return _millis if unit.endswith("millis") else _micros
    return None


def _decimal(scale: int, precision_max: int, scale_max: int, stored: bytes) -> Decimal:
    unscaled = int.from_bytes(stored, "big", signed=True)
    value = Decimal(unscaled).scaleb(-scale, _EXACT)
    fitting = unscaled * 10**scale_max // 10**scale
    if abs(fitting) >= 10**precision_max or fitting * 10**scale != unscaled * 10**scale_max:
        raise ValueError(f"{value} does not fit DECIMAL({precision_max},{scale_max})")
    return value


def _day(days: int) -> int:
    return _within(days, 1, DAYS, "days")


def _millis(ticks: int) -> int:
    return _within(ticks, 1000, MICROS, "milliseconds") * 1000


def _micros(ticks: int) -> int:
    return _within(ticks, 1, MICROS, "microseconds")


def _within(ticks: int, factor: int, limits: tuple[int, int], unit: str) -> int:
    if not limits[0] <= ticks * factor <= limits[1]:
        raise ValueError(f"{ticks} {unit} from 1970 are before the year 1 or after the year 9999")
    return ticks


def writing_leaf(kind: AvroType) -> Shape | None:
    """Return the shape that turns a value of Arrow into what Avro stores."""
    logical = logical_of(kind)
    if logical == "decimal":
        return partial(_stored_decimal, kind.logical.get("scale", 0), kind.size if kind.kind == "fixed" else None)
    if logical == "date":
        return _stored_day
    return partial(_ticks, _TICKS[logical.rpartition("-")[2]]) if logical else None


_TICKS: Final[Mapping[str, timedelta]] = {"millis": timedelta(milliseconds=1), "micros": _MICROSECOND}


def _stored_decimal(scale: int, size: int | None, value: Decimal) -> bytes:
    unscaled = int(value.scaleb(scale, _EXACT))
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1 if size is None else size, "big", signed=True)


def _stored_day(value: date) -> int:
    return (value - _EPOCH.date()).days


def _ticks(tick: timedelta, value: datetime) -> int:
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH) // tick

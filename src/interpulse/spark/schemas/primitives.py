"""Primitive schemas of Pulsar, with their Spark types and bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from interpulse.model.schemas import SchemaType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_LOCAL: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = date(1970, 1, 1)
_DAY_MS: Final = 86_400_000
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Primitive(NamedTuple):
    """One primitive schema. ``decode`` raises ValueError or struct.error for invalid bytes."""

    type: DataType
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    comment: str = ""
    """Content of the column, if its type does not say it."""


def _packed(layout: str, kind: DataType) -> Primitive:
    packing = struct.Struct(layout)
    return Primitive(kind, lambda raw: packing.unpack(raw)[0], packing.pack)


def _time(kind: DataType, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Primitive:
    """Return a primitive whose values may be in years that Spark lacks."""

    def checked(raw: bytes) -> Any:
        try:
            return decode(raw)
        except OverflowError:
            shown = f"0x{raw.hex()} does not fit {kind.simpleString().upper()}"
            raise ValueError(f"column value: {shown}: times of columns go from the year 1 to 9999") from None

    return Primitive(kind, checked, encode)


_LONG: Final = struct.Struct(">q")
_SECONDS_NANOS: Final = struct.Struct(">qi")
_DAYS_NANOS: Final = struct.Struct(">qq")


def _long(raw: bytes) -> int:
    return int(_LONG.unpack(raw)[0])


def _days(per_day: int) -> Primitive:
    return _time(
        DateType(),
        lambda raw: _EPOCH_DAY + timedelta(days=_long(raw) // per_day),
        lambda day: _LONG.pack((day - _EPOCH_DAY).days * per_day),
    )


def _instant(raw: bytes) -> datetime:
    seconds, nanos = _SECONDS_NANOS.unpack(raw)
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _instant_bytes(value: datetime) -> bytes:
    seconds, rest = divmod(value - _EPOCH, timedelta(seconds=1))
    return _SECONDS_NANOS.pack(seconds, rest.microseconds * 1000)


def _local_date_time(raw: bytes) -> datetime:
    days, nanos = _DAYS_NANOS.unpack(raw)
    return _EPOCH_LOCAL + timedelta(days=days, microseconds=nanos // 1000)


def _local_date_time_bytes(value: datetime) -> bytes:
    days, rest = divmod(value - _EPOCH_LOCAL, timedelta(days=1))
    return _DAYS_NANOS.pack(days, rest // _MICROSECOND * 1000)


PRIMITIVES: Final[dict[SchemaType, Primitive]] = {
    SchemaType.NONE: Primitive(BinaryType(), bytes, bytes),
    SchemaType.STRING: Primitive(StringType(), lambda raw: str(raw, "utf-8"), lambda text: str(text).encode()),
    SchemaType.BOOLEAN: _packed(">?", BooleanType()),
    SchemaType.INT8: _packed(">b", ByteType()),
    SchemaType.INT16: _packed(">h", ShortType()),
    SchemaType.INT32: _packed(">i", IntegerType()),
    SchemaType.INT64: _packed(">q", LongType()),
    SchemaType.FLOAT: _packed(">f", FloatType()),
    SchemaType.DOUBLE: _packed(">d", DoubleType()),
    SchemaType.DATE: _days(_DAY_MS),
    SchemaType.LOCAL_DATE: _days(1),
    SchemaType.TIMESTAMP: _time(
        TimestampType(),
        lambda raw: _EPOCH + timedelta(milliseconds=_long(raw)),
        lambda moment: _LONG.pack((moment - _EPOCH) // _MILLISECOND),
    ),
    SchemaType.INSTANT: _time(TimestampType(), _instant, _instant_bytes),
    SchemaType.LOCAL_DATE_TIME: _time(TimestampNTZType(), _local_date_time, _local_date_time_bytes),
    SchemaType.TIME: Primitive(
        LongType(),
        lambda raw: _long(raw) % _DAY_MS * 1000,
        lambda micros: _LONG.pack(micros // 1000),
        "microseconds of the day (UTC)",
    ),
    SchemaType.LOCAL_TIME: Primitive(LongType(), _long, _LONG.pack, "nanoseconds of the day"),
}
"""Primitives by schema type. NONE stands for plain bytes, as in a part of KEY_VALUE."""

"""The bytes of primitive schemas, as the Java client writes them."""

from datetime import UTC, date, datetime

import pytest

from interpulse.model.schemas import SchemaType
from interpulse.spark.schemas.primitives import PRIMITIVES


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        (SchemaType.NONE, b"\x00", "00"),
        (SchemaType.STRING, "ü", "c3bc"),
        (SchemaType.BOOLEAN, True, "01"),
        (SchemaType.INT8, -1, "ff"),
        (SchemaType.INT16, 2, "0002"),
        (SchemaType.INT32, -3, "fffffffd"),
        (SchemaType.INT64, 4, "0000000000000004"),
        (SchemaType.FLOAT, 0.5, "3f000000"),
        (SchemaType.DOUBLE, 0.25, "3fd0000000000000"),
        (SchemaType.DATE, date(1970, 1, 2), "0000000005265c00"),
        (SchemaType.LOCAL_DATE, date(1969, 12, 31), "ffffffffffffffff"),
        (SchemaType.TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), "00000000000005dc"),
        (SchemaType.INSTANT, datetime(1969, 12, 31, 23, 59, 59, 5, UTC), "ffffffffffffffff00001388"),
        (SchemaType.LOCAL_DATE_TIME, datetime(1970, 1, 2, 0, 0, 0, 1), "000000000000000100000000000003e8"),
        (SchemaType.TIME, 7000, "0000000000000007"),
        (SchemaType.LOCAL_TIME, 5, "0000000000000005"),
    ],
)
def test_value_and_its_bytes(kind, value, raw):
    assert PRIMITIVES[kind].encode(value).hex() == raw
    assert PRIMITIVES[kind].decode(bytes.fromhex(raw)) == value


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (SchemaType.DATE, "7fffffffffffffff"),
        (SchemaType.LOCAL_DATE, "00000000002cc0a1"),
        (SchemaType.TIMESTAMP, "0000e677d21fdc00"),
        (SchemaType.INSTANT, "7fffffffffffffff00000000"),
        (SchemaType.LOCAL_DATE_TIME, "8000000000000000" + "0" * 16),
    ],
)
def test_time_of_a_year_that_spark_does_not_have_is_named(kind, raw):
    with pytest.raises(
        ValueError, match=f"column value: 0x{raw} does not fit [A-Z_]+: times of columns go from the year 1"
    ):
        PRIMITIVES[kind].decode(bytes.fromhex(raw))

"""Values as payloads of JSON schemas. Java's client (Pulsar 5.0.0-M1) reads each."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan

import pytest

from interpulse.spark.schemas.json_payloads.values import JsonMisfit
from interpulse.spark.schemas.json_payloads.writer import json_writer
from tests.support.json_definitions import COLOUR, DATE, MOMENT, POINT, pairs, record

AT = datetime(2024, 2, 3, 4, 5, 6, 789_012, UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 58, 500_000, UTC)
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
TIME = {"type": "int", "logicalType": "time-millis"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
FIXED = {"type": "fixed", "name": "Two", "size": 2}
UTIL_DATE = {"type": "record", "name": "Date", "namespace": "java.util", "fields": []}
ZONED = {"type": "record", "name": "ZonedDateTime", "namespace": "java.time", "fields": []}
DIGITS = "123456789012345678901234567890123456.78"


def written(kind, value, *, for_java=False):
    return json_writer(json.dumps(kind).encode(), for_java=for_java)(value).decode()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (record(a="double", b="float"), {"a": nan, "b": -inf}, '{"a":"NaN","b":"-Infinity"}'),
        (record(a="double"), {"a": inf}, '{"a":"Infinity"}'),
        (record(a="double"), {"a": 1e300}, '{"a":1e+300}'),
        (record(a=MONEY), {"a": Decimal(DIGITS)}, f'{{"a":{DIGITS}}}'),
        (record(a=MONEY), {"a": Decimal("-0.10")}, '{"a":-0.10}'),
        (record(a="string"), {"a": 'ä"\n'}, '{"a":"ä\\"\\n"}'),
        (record(a="bytes", b=FIXED), {"a": b"\0", "b": b"\0\xff"}, '{"a":"AA==","b":"AP8="}'),
        (record(a=["null", "int"]), {"a": None}, '{"a":null}'),
        (record(a=["null", "int"], b="int"), {"b": 1}, '{"b":1}'),
        (record(a={"type": "map", "values": "long"}), {"a": [("k", 1)]}, '{"a":{"k":1}}'),
        (record(a=pairs("int", "string")), {"a": [{"key": 7, "value": "x"}]}, '{"a":{"7":"x"}}'),
        (record(a=pairs(COLOUR, "int")), {"a": [{"key": "RED", "value": 1}]}, '{"a":{"RED":1}}'),
        (
            record(a=MOMENT, b=LOCAL),
            {"a": AT, "b": AT.replace(tzinfo=None)},
            '{"a":1706933106789,"b":1706933106789012}',
        ),
        (record(a=DATE, b=TIME), {"a": date(2024, 2, 3), "b": 14_706_789}, '{"a":19756,"b":14706789}'),
        (record(a=UTIL_DATE, b=ZONED), {"a": AT, "b": AT}, '{"a":1706933106789,"b":1706933106.789012000}'),
        (["null", "int", "long"], 3000000000, "3000000000"),
        (["null", "string", POINT], {"member0": None, "member1": {"x": 1}}, '{"x":1}'),
    ],
)
def test_value_as_text(kind, value, text):
    assert written(kind, value) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (MOMENT, AT, "1706933106.789012000"),
        (MOMENT, BEFORE, "-1.500000000"),
        (LOCAL, AT.replace(tzinfo=None), "[2024,2,3,4,5,6,789012000]"),
        (DATE, date(2024, 2, 3), "[2024,2,3]"),
        (TIME, 14_706_789, "[4,5,6,789000000]"),
        (UTIL_DATE, AT, "1706933106789"),
    ],
)
def test_times_of_a_schema_that_java_made_are_what_its_classes_read(kind, value, text):
    assert written(kind, value, for_java=True) == text


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (record(a="int"), {"a": None}, "column a: null does not fit INT: the schema takes no null there"),
        (record(a=POINT), {"a": {"x": None}}, "column a.x: null does not fit INT"),
        (record(a={"type": "array", "items": "int"}), {"a": [1, None]}, "column a[1]: null does not fit INT"),
        (record(a={"type": "map", "values": "int"}), {"a": [("k", None)]}, "column a[k]: null does not fit INT"),
        (record(a=["int", "string"]), {"a": None}, "column a: null does not fit UNION"),
        (record(a="int"), {}, "column a: null does not fit the schema: the rows have no such column"),
        (record(a=COLOUR), {"a": "BLUE"}, 'column a: "BLUE" does not fit ENUM: its symbols are RED, GREEN'),
        (record(a=FIXED), {"a": b"\0"}, "column a: 0x00 does not fit fixed(2): it takes 2 bytes, not 1"),
        (
            record(a=["int", "string"]),
            {"a": {"member0": 1, "member1": "x"}},
            "one member has a value, and here member0 and member1",
        ),
    ],
)
def test_value_that_does_not_fit_is_named(kind, value, said):
    with pytest.raises(JsonMisfit) as refused:
        written(kind, value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "default", "text"),
    [
        ("int", 5, '{"a":5}'),
        ("bytes", "\u00ff", '{"a":"/w=="}'),
        (MONEY, "\u0001", '{"a":0.01}'),
        (MOMENT, 1000, '{"a":1000}'),
        (POINT, {"x": 1}, '{"a":{"x":1}}'),
        ({"type": "map", "values": "bytes"}, {"k": "\u0000"}, '{"a":{"k":"AA=="}}'),
        (["int", "string"], 7, '{"a":7}'),
        (["null", "int"], None, "{}"),
    ],
)
def test_column_that_the_rows_lack_has_its_default(kind, default, text):
    fields = [{"name": "a", "type": kind, "default": default}]
    assert written({"type": "record", "name": "R", "fields": fields}, {}) == text


def test_default_that_is_no_value_of_its_field_is_refused_where_it_is_needed():
    kind = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string", "default": None}]}
    assert written(kind, {"a": "x"}) == '{"a":"x"}'
    with pytest.raises(JsonMisfit, match="column a: null does not fit STRING: the schema takes no null there"):
        written(kind, {})

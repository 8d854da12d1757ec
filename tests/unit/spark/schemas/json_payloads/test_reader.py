"""Payloads of JSON schemas as values. What is of Java was written and read by its client (Pulsar 5.0.0-M1)."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from interpulse.spark.schemas.avro_columns import avro_type
from interpulse.spark.schemas.json_payloads.definition import parse_json_definition
from interpulse.spark.schemas.json_payloads.reader import json_reader
from interpulse.spark.schemas.json_payloads.values import JsonMisfit
from tests.support.json_definitions import COLOUR, DATE, OTHER_POINT, PLACE, POINT, pairs, record


def read(kind, payload):
    return json_reader(json.dumps(kind).encode())(payload if isinstance(payload, bytes) else payload.encode())


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ({"type": "map", "values": "bytes"}, '{"a": "AA==", "b": null}', {"a": b"\x00", "b": None}),
        ({"type": "array", "items": DATE}, "[[2024,2,3], null]", [date(2024, 2, 3), None]),
        ({"type": "array", "items": "int"}, '[1, "2"]', [1, 2]),
        (record(b=["null", "bytes"], c="int"), '{"c": 1, "more": [NaN]}', {"b": None, "c": 1}),
        (record(a=POINT, b="Point"), '{"a": {"x": 1}, "b": {"x": 2}}', {"a": {"x": 1}, "b": {"x": 2}}),
        (record(x="int"), '{"x": 1, "x": 2}', {"x": 2}),
        (record(x="int"), '{"x": 1}'.encode("utf-16"), {"x": 1}),
        (pairs("int", "string"), '{"7": "x", "-1": null}', [{"key": 7, "value": "x"}, {"key": -1, "value": None}]),
        (pairs("long", POINT), '{"7": {"x": 1}}', [{"key": 7, "value": {"x": 1}}]),
        (pairs(COLOUR, "int"), '{"RED": 1}', [{"key": "RED", "value": 1}]),
        (pairs("int", "string"), '[{"key": 7, "value": "x"}]', [{"key": 7, "value": "x"}]),
        (["null", "int", "long"], "3000000000", 3000000000),
        (["float", "double"], '"NaN"', "nan"),
        (["null", "int", "string"], '"a"', {"member1": "a"}),
        (["null", "int", "string"], '"7"', {"member1": "7"}),
        (["null", "boolean", "int"], "1", {"member1": 1}),
        (["int", "double"], "1", {"member0": 1}),
        (["int", "double"], "1.5", {"member1": 1.5}),
        (["string", COLOUR], '"BLUE"', {"member0": "BLUE"}),
        ([POINT, PLACE], '{"x": 1}', {"member0": {"x": 1}}),
        ([POINT, PLACE], '{"x": 1, "y": 2}', {"member1": {"x": 1, "y": 2}}),
        ([POINT, {"type": "map", "values": "string"}], '{"a": "b"}', {"member1": {"a": "b"}}),
        ({"type": "array", "items": ["null", POINT, "string"]}, '[{"x": 1}, null]', [{"member0": {"x": 1}}, None]),
    ],
)
def test_payload_as_a_value(kind, payload, value):
    found = read(kind, payload)
    assert found == value or repr(found) == value


@pytest.mark.parametrize(
    ("kind", "payload", "said"),
    [
        (record(a=POINT), '{"a": {"x": "y"}}', 'column a.x: "y" does not fit INT'),
        (
            record(a={"type": "array", "items": POINT}),
            '{"a": [{"x": 1}, {"x": 1.5}]}',
            "column a[1].x: 1.5 does not fit",
        ),
        (record(a={"type": "map", "values": "int"}), '{"a": {"k": []}}', "column a[k]: [] does not fit INT"),
        (record(a=POINT), '{"a": 5}', "column a: 5 does not fit STRUCT: it takes an object"),
        (record(a={"type": "array", "items": "int"}), '{"a": "5"}', 'column a: "5" does not fit ARRAY'),
        (record(a={"type": "map", "values": "int"}), '{"a": []}', "column a: [] does not fit MAP"),
        (record(a=pairs("int", "string")), '{"a": {"x": "y"}}', 'column a: "x" does not fit INT'),
        (record(a=pairs("int", "string")), '{"a": {"": "y"}}', "does not fit MAP: each entry has a key"),
        (record(a=[POINT, OTHER_POINT]), '{"a": {"x": 1}}', "it fits Point and Other, and JSON does not say which"),
        (record(a=["string", COLOUR]), '{"a": "RED"}', "it fits STRING and Colour"),
        (record(a=["string", "bytes"]), '{"a": "AA=="}', "it fits STRING and BINARY"),
        (record(a=["int", "string"]), '{"a": true}', "does not fit the union of INT, STRING: it fits none of them"),
        (record(a=[POINT, {"type": "map", "values": "int"}]), '{"a": {"x": 1}}', "it fits Point and MAP"),
        (record(a="int"), "5", "5 does not fit STRUCT"),
    ],
)
def test_value_that_does_not_fit_is_named(kind, payload, said):
    with pytest.raises(JsonMisfit) as refused:
        read(kind, payload)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("java.util.Date", "1706933106789"),
        ("java.sql.Timestamp", "1706933106789"),
        ("java.time.OffsetDateTime", "1706933106.789000000"),
    ],
)
def test_moments_of_java_are_timestamps_wherever_their_names_stand(name, spelled):
    namespace, _, short = name.rpartition(".")
    kind = {"type": "record", "name": short, "namespace": namespace, "fields": []}
    definition = json.dumps(record(a=["null", kind], b=["null", name])).encode()
    assert avro_type(parse_json_definition(definition)).simpleString() == "struct<a:timestamp,b:timestamp>"
    at = datetime(2024, 2, 3, 4, 5, 6, 789_000, UTC)
    assert json_reader(definition)(f'{{"a": {spelled}, "b": {spelled}}}'.encode()) == {"a": at, "b": at}


def test_decimals_beside_doubles():
    money = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    assert read(record(m=money, x="double"), '{"m": 1.25, "x": 1.5}') == {"m": Decimal("1.25"), "x": 1.5}

"""Avro records read and written as columns are what fastavro makes of them row by row."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.avro_arrays import record_reader, record_writer
from interpulse.spark.schemas.avro_columns import parse_definition
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_encoder import RowEncoder

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
KINDS: dict[str, tuple[Any, Any]] = {
    "flag": ("boolean", st.booleans()),
    "small": ("int", INTS),
    "large": ("long", LONGS),
    "half": ("float", st.floats(width=32, allow_nan=False)),
    "whole": ("double", st.floats(allow_nan=False)),
    "raw": ("bytes", st.binary(max_size=5)),
    "text": ("string", st.text(max_size=200)),
    "day": ({"type": "int", "logicalType": "date"}, st.dates()),
    "moment": ({"type": "long", "logicalType": "timestamp-micros"}, TIMES),
    "local": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    ),
}
FIELDS = [
    *({"name": name, "type": kind} for name, (kind, _) in KINDS.items()),
    *({"name": f"no_{name}", "type": ["null", kind], "default": None} for name, (kind, _) in KINDS.items()),
    *({"name": f"{name}_or_null", "type": [kind, "null"]} for name, (kind, _) in KINDS.items()),
]
VALUES = st.fixed_dictionaries(
    {
        **{name: values for name, (_, values) in KINDS.items()},
        **{f"no_{name}": st.none() | values for name, (_, values) in KINDS.items()},
        **{f"{name}_or_null": st.none() | values for name, (_, values) in KINDS.items()},
    }
)


def definition(fields: list[dict[str, Any]]) -> bytes:
    return json.dumps({"type": "record", "name": "Row", "fields": fields}).encode()


def columns_of(fields: list[dict[str, Any]]) -> pa.Schema:
    return to_arrow_schema(spark_columns(fields), timezone="UTC")


def spark_columns(fields: list[dict[str, Any]]) -> StructType:
    found = payload_fields(SchemaInfo(SchemaType.AVRO, definition(fields)))
    assert found is not None
    return found


def avro(fields: list[dict[str, Any]], value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse_definition(definition(fields)), value)
    return out.getvalue()


@given(rows=st.lists(VALUES, min_size=1, max_size=5), skipped=st.integers(0, 2))
def test_records_are_read_as_row_by_row(rows, skipped):
    read = record_reader(parse_definition(definition(FIELDS)), columns_of(FIELDS))
    assert read is not None
    encoded = pa.array([b"-"] * skipped + [avro(FIELDS, row) for row in rows], pa.binary()).slice(skipped)
    columns = read(encoded)
    for column, field in zip(columns, columns_of(FIELDS), strict=True):
        assert column.type == field.type
        column.validate(full=True)
        assert column.to_pylist() == [row[field.name] for row in rows]


@given(rows=st.lists(VALUES, min_size=1, max_size=5), skipped=st.integers(0, 2))
def test_records_are_written_as_row_by_row(rows, skipped):
    schema = SchemaInfo(SchemaType.AVRO, definition(FIELDS))
    encoder = RowEncoder("t", schema, spark_columns(FIELDS))
    batch = pa.RecordBatch.from_pylist([*rows[:1] * skipped, *rows], columns_of(FIELDS)).slice(skipped)
    written = encoder.encode_all(batch)
    assert written is not None
    assert written.to_pylist() == [encoder.encode(row).value for row in batch.to_pylist()]


PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "floor", "type": "int"}, {"name": "room", "type": "string"}],
}
OTHER: list[Any] = [
    {"name": "place", "type": PLACE},
    {"name": "next", "type": ["null", "Place"]},
    {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
    {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 3}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
]


def test_nested_records_enumerations_and_fixed_are_read():
    rows = [
        {"place": {"floor": -1, "room": "a"}, "next": None, "colour": "GREEN", "id": b"abc", "at": None},
        {
            "place": {"floor": 2, "room": ""},
            "next": {"floor": 3, "room": "b"},
            "colour": "RED",
            "id": b"xyz",
            "at": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        },
    ]
    read = record_reader(parse_definition(definition(OTHER)), columns_of(OTHER))
    assert read is not None
    found = read(pa.array([avro(OTHER, row) for row in rows]))
    assert pa.Table.from_arrays(found, names=columns_of(OTHER).names).to_pylist() == rows


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        ["int", "string"],
        ["null", "int", "string"],
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    ],
)
def test_other_types_have_no_such_way(kind):
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": kind}]
    assert record_reader(parse_definition(definition(fields)), columns_of(fields)) is None
    assert record_writer(parse_definition(definition(fields)), ["a", "b"]) is None


TEXT = [{"name": "text", "type": "string"}]


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        (TEXT, b""),
        (TEXT, b"\x04a"),
        (TEXT, b"\x02ab"),
        (TEXT, b"\x01"),
        (TEXT, b"\x02\xff"),
        (TEXT, b"\xfe" * 9 + b"\x01"),
        ([{"name": "n", "type": "long"}], b"\x80"),
        ([{"name": "n", "type": "long"}], b"\xff" * 9 + b"\x02"),
        ([{"name": "n", "type": "int"}], b"\xff\xff\xff\xff\x7f"),
        ([{"name": "n", "type": "double"}], b"\0" * 7),
        ([{"name": "n", "type": "boolean"}], b"\x02"),
        ([{"name": "n", "type": ["null", "int"]}], b"\x04\x02"),
        ([{"name": "n", "type": ["null", "int"]}], b"\x01"),
        ([{"name": "n", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}], b"\x02"),
        ([{"name": "n", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}], b"\x01"),
        ([{"name": "n", "type": {"type": "int", "logicalType": "date"}}], b"\xff\xff\xff\xff\x0f"),
    ],
)
@pytest.mark.parametrize("neighbours", [0, 1])
def test_odd_payloads_are_refused(fields, payload, neighbours):
    read = record_reader(parse_definition(definition(fields)), columns_of(fields))
    assert read is not None
    with pytest.raises((ValueError, IndexError)):
        read(pa.array([payload, *[b"\0"] * neighbours], pa.binary()))


def test_null_in_a_field_without_null_is_left_to_the_row_by_row_way():
    fields = [{"name": "n", "type": "long"}]
    encoder = RowEncoder("t", SchemaInfo(SchemaType.AVRO, definition(fields)), spark_columns(fields))
    assert encoder.encode_all(pa.record_batch({"n": pa.array([1, None], pa.int64())})) is None

"""Payloads of another version read in columns are what they are row by row."""

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

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.schemas.avro_columns import parse_definition
from interpulse.spark.schemas.avro_reading import avro_decoder
from interpulse.spark.schemas.avro_versions import version_reader
from interpulse.spark.schemas.payload_columns import payload_fields

INTS, LONGS = st.integers(-(2**24), 2**24), st.integers(-(2**53), 2**53)
FLOATS = st.floats(width=32, allow_nan=False)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
SCALE = {"type": "enum", "name": "Scale", "symbols": ["C", "F"]}
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "floor", "type": "int"}]}
WIDER = {"type": "record", "name": "Place", "fields": [{"name": "floor", "type": ["null", "long"]}]}
CHANGES: dict[str, tuple[Any, Any, Any]] = {
    "same": ("string", "string", st.text(max_size=5)),
    "wide": ("int", "long", INTS),
    "half": ("int", "float", INTS),
    "whole": ("long", "double", LONGS),
    "double": ("float", "double", FLOATS),
    "raw": ("string", "bytes", st.text(max_size=5)),
    "text": ("bytes", "string", st.text(max_size=5).map(str.encode)),
    "optional": ("int", ["null", "int"], INTS),
    "swapped": (["null", "int"], ["long", "null"], st.none() | INTS),
    "finer": (MILLIS, MICROS, MOMENTS),
    "coarser": (["null", MICROS], ["null", MILLIS], st.none() | MOMENTS),
    "scale": (SCALE, ["null", SCALE], st.sampled_from(["C", "F"])),
    "place": (PLACE, WIDER, st.fixed_dictionaries({"floor": INTS})),
}
OLD: list[dict[str, Any]] = [
    *({"name": name, "type": old} for name, (old, _, _) in CHANGES.items()),
    {"name": "gone", "type": ["null", "string"]},
    {"name": "was", "type": "int"},
]
NEW: list[dict[str, Any]] = [
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "is", "type": "long", "aliases": ["was"]},
    *({"name": name, "type": new} for name, (_, new, _) in reversed(CHANGES.items())),
    {"name": "added", "type": MILLIS, "default": 1000},
    {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
]
VALUES = st.fixed_dictionaries(
    {
        **{name: values for name, (_, _, values) in CHANGES.items()},
        "gone": st.none() | st.text(max_size=5),
        "was": INTS,
    }
)


def definition(fields: list[dict[str, Any]]) -> bytes:
    return json.dumps({"type": "record", "name": "Row", "fields": fields}).encode()


def columns_of(fields: list[dict[str, Any]]) -> pa.Schema:
    found = payload_fields(SchemaInfo(SchemaType.AVRO, definition(fields)))
    assert found is not None
    return to_arrow_schema(found, timezone="UTC")


def avro(fields: list[dict[str, Any]], value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse_definition(definition(fields)), value)
    return out.getvalue()


def row_by_row(old: list[Any], new: list[Any], payloads: list[bytes]) -> list[Any]:
    decode = avro_decoder(definition(old), definition(new))
    return pa.array([decode(payload) for payload in payloads], pa.struct(list(columns_of(new)))).to_pylist()


@given(rows=st.lists(VALUES, max_size=5), wanted=st.sets(st.sampled_from([field["name"] for field in NEW])))
def test_older_rows_are_read_as_row_by_row(rows, wanted):
    columns = pa.schema([column for column in columns_of(NEW) if column.name in wanted])
    read = version_reader(definition(OLD), definition(NEW), columns)
    assert read is not None
    payloads = [avro(OLD, row) for row in rows]
    arrays = read(pa.array(payloads, pa.binary()))
    expected = row_by_row(OLD, NEW, payloads)
    for column, array in zip(columns, arrays, strict=True):
        assert array.type == column.type
        assert array.to_pylist() == [row[column.name] for row in expected], column.name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("long", "int"),
        ("string", "int"),
        ("long", MILLIS),
        (MILLIS, "long"),
        (["null", "int"], "int"),
        (["int", "string"], ["int", "string"]),
        (SCALE, {**SCALE, "symbols": ["F", "C"]}),
        (SCALE, "string"),
        (PLACE, {**PLACE, "fields": [*PLACE["fields"], {"name": "room", "type": "int", "default": 0}]}),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "int"}),
    ],
)
def test_change_that_columns_do_not_know_has_no_reader(old, new):
    old_fields, new_fields = ([{"name": "a", "type": kind}, {"name": "b", "type": "int"}] for kind in (old, new))
    read = version_reader(definition(old_fields), definition([*new_fields, {"name": "c", "type": "int", "default": 1}]),
                          columns_of(new_fields))  # fmt: skip
    assert read is None


@pytest.mark.parametrize("added", [{}, {"default": "text"}], ids=["no-default", "default-of-another-type"])
def test_field_without_usable_default_has_no_reader(added):
    old, new = [{"name": "a", "type": "int"}], [{"name": "a", "type": "int"}, {"name": "b", "type": "int", **added}]
    assert version_reader(definition(old), definition(new), columns_of(old)) is None


def test_aliases_that_give_two_fields_one_name_have_no_reader():
    old = [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}]
    new = [{"name": "a", "type": "int", "aliases": ["b"]}]
    assert version_reader(definition(old), definition(new), columns_of(new)) is None


@pytest.mark.parametrize("number", [2**24 + 1, 2**53 + 1])
def test_number_that_its_new_type_has_not_exactly_is_refused(number):
    old, new = ([{"name": "a", "type": kind}] for kind in ("long", "double" if number > 2**50 else "float"))
    read = version_reader(definition(old), definition(new), columns_of(new))
    assert read is not None
    with pytest.raises(pa.ArrowInvalid):
        read(pa.array([avro(old, {"a": number})], pa.binary()))

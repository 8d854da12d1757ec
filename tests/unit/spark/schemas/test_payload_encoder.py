"""Rows as payloads: what is encoded is what the decoder reads."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from interpulse.model.errors import IncompatibleSchema, InvalidRequest
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder
from interpulse.spark.schemas.payload_encoder import RowEncoder

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "raw", "type": "bytes"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    {"name": "place", "type": ["null", POINT], "default": None},
    {"name": "from", "type": ["null", "Point"], "default": None},
    {"name": "any", "type": ["null", "string", "long"], "default": None},
]
ROW = {
    "id": 7,
    "at": datetime(2024, 1, 2, tzinfo=UTC),
    "day": date(2024, 2, 29),
    "raw": b"\x00\xff",
    "price": Decimal("1.25"),
    "tags": [("a", [1, 2])],
    "place": {"x": 1},
    "from": None,
    "any": {"member0": None, "member1": 3},
}


def record(kind=SchemaType.AVRO, fields=FIELDS):
    return SchemaInfo(kind, json.dumps({"type": "record", "name": "R", "fields": fields}).encode())


def columns(**types):
    return StructType([StructField(name, kind) for name, kind in types.items()])


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_what_is_encoded_is_what_the_decoder_reads(kind):
    schema = record(kind)
    fields = payload_fields(schema)
    assert fields is not None
    value = RowEncoder("t", schema, fields).encode(ROW).value
    decoder = PayloadDecoder(schema, fields, lambda topic, version: None)
    found = {
        name: column.to_pylist()[0]
        for name, column in decoder.arrays([Payload("t", (1, 1, -1), b"", value, None)]).items()
    }
    assert found == ROW


def pair(encoding):
    properties = {"key.schema.type": "STRING", "value.schema.type": "INT32", "kv.encoding.type": encoding}
    definition = definition_from_text(SchemaType.KEY_VALUE, '{"key": "", "value": ""}')
    return SchemaInfo(SchemaType.KEY_VALUE, definition, properties)


def test_pairs():
    wanted = columns(key=StringType(), value=IntegerType())
    inline, apart = (RowEncoder("t", pair(encoding), wanted) for encoding in ("INLINE", "SEPARATED"))
    assert inline.encode({"key": "k", "value": 7}) == (b"\0\0\0\1k\0\0\0\4\0\0\0\7", None)
    assert inline.encode({"key": None, "value": 7}) == (b"\xff\xff\xff\xff\0\0\0\4\0\0\0\7", None)
    assert apart.encode({"key": "k", "value": 7}) == (b"\0\0\0\7", b"k")
    assert apart.encode({"key": "k", "value": None}) == (None, b"k")


def test_narrower_numbers_and_fewer_columns_fit():
    fields = [
        {"name": "a", "type": "long"},
        {"name": "b", "type": "double"},
        {"name": "c", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "d", "type": ["null", "string"], "default": None},
    ]
    encoder = RowEncoder("t", record(fields=fields), columns(a=IntegerType(), b=FloatType(), c=DecimalType(5, 1)))
    assert encoder.encode({"a": 1, "b": 0.5, "c": Decimal("1.5")}).value is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (columns(id=LongType(), colour=StringType()), "it has no field colour"),
        (columns(id=StringType()), "column id is STRING, its field BIGINT: cast it"),
        (columns(place=columns(x=LongType())), "column place.x is BIGINT, its field INT: cast it"),
        (columns(tags=MapType(StringType(), ArrayType(DoubleType()))), "column tags is MAP"),
        (columns(price=DecimalType(9, 3)), "column price is DECIMAL"),
    ],
)
def test_columns_that_do_not_fit_are_named(given, said):
    with pytest.raises(IncompatibleSchema, match=f"do not fit the schema of t: .*{said}"):
        RowEncoder("t", record(), given)


@pytest.mark.parametrize("row", [{"id": None}, {"id": 7}])
def test_row_that_does_not_fit_is_told(row):
    with pytest.raises(InvalidRequest, match="a row does not fit the AVRO schema of t"):
        RowEncoder("t", record(), columns(id=LongType())).encode(row)


def test_bytes_of_protobuf_are_encoded_by_the_user():
    with pytest.raises(IncompatibleSchema, match="type PROTOBUF: encode rows for it"):
        RowEncoder("t", SchemaInfo(SchemaType.PROTOBUF), columns(a=LongType()))

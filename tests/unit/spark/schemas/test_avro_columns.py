"""Avro definitions as types of Spark."""

import json

import pytest

from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.avro_columns import avro_type, parse_definition

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}


def parsed(kind):
    return parse_definition(json.dumps(kind).encode())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("bytes", "binary"),
        ("string", "string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "fixed", "name": "F", "size": 4}, "binary"),
        (DECIMAL, "decimal(9,2)"),
        ({**DECIMAL, "precision": 39}, "binary"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "long", "logicalType": "time-micros"}, "bigint"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp_ntz"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "array", "items": ["null", "long"]}, "array<bigint>"),
        ({"type": "map", "values": "double"}, "map<string,double>"),
        (["null", "string"], "string"),
        (["int", "long", "null"], "bigint"),
        (["double", "float"], "double"),
        (["null", "string", "int"], "struct<member0:string,member1:int>"),
        (
            {**POINT, "name": "P", "fields": [{"name": "a", "type": POINT}, {"name": "b", "type": ["null", "Point"]}]},
            "struct<a:struct<x:int>,b:struct<x:int>>",
        ),
    ],
)
def test_type_of_spark(kind, expected):
    assert avro_type(parsed(kind)).simpleString() == expected


def test_record_that_holds_itself_has_no_type():
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
    with pytest.raises(OptionError, match=r"record Tree holds itself.*valueSchema=raw"):
        avro_type(parsed(tree))


def test_what_is_no_definition_is_refused():
    with pytest.raises(OptionError, match=r"no Avro definition.*valueSchema=raw"):
        parse_definition(b'{"type": "object"}')

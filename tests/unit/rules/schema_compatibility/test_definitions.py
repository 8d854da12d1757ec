"""Definitions by type; the many shapes of Avro ones are in `test_avro_types.py` and `test_real_answers.py`."""

from __future__ import annotations

import pytest

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility import check_definition
from tests.schema_pairs.cases import Schema, avro, pair, record

TEXT = Schema("STRING", "")


@pytest.mark.parametrize(
    "schema", [TEXT, Schema("STRING", "null"), Schema("INT64", ""), avro(record()), pair(TEXT, avro(record(), "JSON"))]
)
def test_definition_when_good_then_passes(schema: Schema) -> None:
    check_definition(schema.info)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (avro(record(), "JSON").info, None),
        (SchemaInfo(SchemaType.JSON, b"{"), "Invalid schema definition data for JSON schema: Invalid Avro definition"),
        (SchemaInfo(SchemaType.AVRO, b'["int"]'), r"Avro schema typed \[UNION\] is not supported"),
        (SchemaInfo(SchemaType.INT8, b"x"), "INT8 schema: a primitive type has none, but 1 bytes are given"),
        (SchemaInfo(SchemaType.AUTO_CONSUME), "AUTO_CONSUME is a client-side schema type"),
        (SchemaInfo(SchemaType.PROTOBUF_NATIVE), "Invalid PROTOBUF_NATIVE definition"),
        (pair(TEXT, avro("Nope")).info, "the type Nope is not defined|Expecting value"),
        (SchemaInfo(SchemaType.KEY_VALUE), "cut short"),
    ],
)
def test_definition_when_wrong_then_refused_naming_its_type(schema: SchemaInfo, sentence: str | None) -> None:
    if sentence is None:
        check_definition(schema)
        return
    with pytest.raises(InvalidSchemaDefinition, match=sentence):
        check_definition(schema)

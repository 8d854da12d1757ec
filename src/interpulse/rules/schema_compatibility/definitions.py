"""Checks that a schema definition matches its type."""

from __future__ import annotations

from typing import Final

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schema_compatibility.avro_types import parse_avro
from interpulse.rules.schema_compatibility.key_value import key_value_parts
from interpulse.rules.schema_compatibility.protobuf_native import root_message

AVRO_DEFINED: Final = frozenset({SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF})
"""Types whose definitions are in Avro's language."""


def check_definition(schema: SchemaInfo) -> None:
    """Raise InvalidSchemaDefinition unless the schema can decode messages."""
    match schema.type:
        case SchemaType.AVRO | SchemaType.JSON | SchemaType.PROTOBUF:
            _check_avro(schema)
        case SchemaType.PROTOBUF_NATIVE:
            root_message(schema.definition)
        case SchemaType.KEY_VALUE:
            for part in key_value_parts(schema):
                check_definition(part)
        case SchemaType.NONE | SchemaType.EXTERNAL:
            pass  # plain bytes, as a part of KEY_VALUE; the definition belongs to a registry elsewhere
        case SchemaType.AUTO_CONSUME:
            raise InvalidSchemaDefinition("Schema AUTO_CONSUME is a client-side schema type")
        case _:
            _check_primitive(schema)


def _check_avro(schema: SchemaInfo) -> None:
    try:
        parsed = parse_avro(schema.definition)
    except InvalidSchemaDefinition as error:
        raise InvalidSchemaDefinition(
            f"Invalid schema definition data for {schema.type.name} schema: {error}"
        ) from None
    if schema.type is SchemaType.AVRO and parsed.kind == "union":
        raise InvalidSchemaDefinition("Avro schema typed [UNION] is not supported")


def _check_primitive(schema: SchemaInfo) -> None:
    # Old Python clients define a string as "null".
    if schema.definition and not (schema.type is SchemaType.STRING and schema.definition == b"null"):
        raise InvalidSchemaDefinition(
            f"Invalid schema definition data for {schema.type.name} schema: a primitive type has none, "
            f"but {len(schema.definition)} bytes are given"
        )

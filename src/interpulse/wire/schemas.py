"""Schemas, converted to and from their form on the wire."""

from __future__ import annotations

from typing import cast

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError


def schema_to_wire(schema: SchemaInfo) -> pb.Schema:
    """Return the schema in the form of commands."""
    properties = [pb.KeyValue(key=key, value=value) for key, value in schema.properties.items()]
    kind = cast(pb.Schema.Type.ValueType, int(schema.type))
    return pb.Schema(name=schema.name, schema_data=schema.definition, type=kind, properties=properties)


def schema_from_wire(schema: pb.Schema) -> SchemaInfo:
    """Return the schema of a command. Raise RemoteProtocolError for a type that this release does not know.

    Protobuf leaves such a type out, and its default would make it a schema of plain bytes.
    """
    if not schema.HasField("type"):
        raise RemoteProtocolError(f"schema {schema.name} has no type, or one that this release does not know")
    properties = {pair.key: pair.value for pair in schema.properties}
    return SchemaInfo(SchemaType(schema.type), schema.schema_data, properties, schema.name)

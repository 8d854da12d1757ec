"""Requests for schemas, and their registration."""

from __future__ import annotations

from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import encode, error_code
from interpulse.wire.schemas import schema_to_wire


def get_schema(request_id: int, topic: str, version: bytes | None = None) -> bytes:
    """Ask for a schema. ``version`` None is the latest."""
    return encode(pb.CommandGetSchema(request_id=request_id, topic=topic, schema_version=version))


def get_schema_response(request_id: int, schema: SchemaInfo, version: bytes) -> bytes:
    return encode(
        pb.CommandGetSchemaResponse(request_id=request_id, schema=schema_to_wire(schema), schema_version=version)
    )


def get_schema_error(request_id: int, code: int, message: str) -> bytes:
    return encode(
        pb.CommandGetSchemaResponse(request_id=request_id, error_code=error_code(code), error_message=message)
    )


def get_or_create_schema(request_id: int, topic: str, schema: SchemaInfo, *, producer_name: str | None = None) -> bytes:
    return encode(
        pb.CommandGetOrCreateSchema(
            request_id=request_id, topic=topic, schema=schema_to_wire(schema), producerName=producer_name
        )
    )


def get_or_create_schema_response(request_id: int, version: bytes) -> bytes:
    return encode(pb.CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=version))


def get_or_create_schema_error(request_id: int, code: int, message: str) -> bytes:
    return encode(
        pb.CommandGetOrCreateSchemaResponse(request_id=request_id, error_code=error_code(code), error_message=message)
    )

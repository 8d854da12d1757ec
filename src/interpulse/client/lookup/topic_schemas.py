"""Schema of a topic, read from and stored at the broker that serves it."""

from __future__ import annotations

from typing import NamedTuple

from interpulse.client.transport.connection import Connection
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.schemas import schema_from_wire, schema_to_wire


class VersionedSchema(NamedTuple):
    """Schema with its version in the topic, in the form that messages carry."""

    schema: SchemaInfo
    version: bytes


async def fetch_schema(connection: Connection, topic: TopicName, version: bytes | None) -> VersionedSchema | None:
    """Return the schema from the broker that serves the topic; None if there is none or not in that version."""
    try:
        answer = await connection.request(pb.CommandGetSchema(topic=str(topic), schema_version=version))
    except TopicNotFound:
        return None
    response = answer.getSchemaResponse
    return VersionedSchema(schema_from_wire(response.schema), response.schema_version)


async def store_schema(
    connection: Connection, topic: TopicName, schema: SchemaInfo, *, producer_name: str | None = None
) -> bytes:
    """Register ``schema`` and return its version. Raise IncompatibleSchema.

    The broker adds a new schema only if its policies allow it. ``producer_name`` names the producer: replicators may
    have other rights than producers (PIP-433).
    """
    answer = await connection.request(
        pb.CommandGetOrCreateSchema(topic=str(topic), schema=schema_to_wire(schema), producerName=producer_name)
    )
    return answer.getOrCreateSchemaResponse.schema_version

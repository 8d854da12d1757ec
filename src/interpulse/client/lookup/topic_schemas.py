"""The schema of a topic, asked of the broker that serves it and stored there."""

from __future__ import annotations

from typing import NamedTuple

from interpulse.client.transport.connection import Connection
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import commands
from interpulse.wire.schemas import schema_from_wire

__all__ = ["VersionedSchema", "fetch_schema", "store_schema"]


class VersionedSchema(NamedTuple):
    """A schema and the version under which the topic knows it, as it travels in messages."""

    schema: SchemaInfo
    version: bytes


async def fetch_schema(connection: Connection, topic: TopicName, version: bytes | None) -> VersionedSchema | None:
    """Ask the broker that serves the topic; None if the topic has no schema, or not in that version."""
    try:
        answer = await connection.request(lambda request_id: commands.get_schema(request_id, str(topic), version))
    except TopicNotFound:
        return None
    response = answer.getSchemaResponse
    return VersionedSchema(schema_from_wire(response.schema), response.schema_version)


async def store_schema(
    connection: Connection, topic: TopicName, schema: SchemaInfo, *, producer_name: str | None = None
) -> bytes:
    """The version of ``schema``, which the broker adds if its policies allow. Raises IncompatibleSchema.

    ``producer_name``: of the asking producer; replicators may be allowed what producers are not (PIP-433).
    """
    answer = await connection.request(
        lambda request_id: commands.get_or_create_schema(request_id, str(topic), schema, producer_name=producer_name)
    )
    return answer.getOrCreateSchemaResponse.schema_version

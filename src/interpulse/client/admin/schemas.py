"""Admin calls for schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from interpulse.client.admin.calls import ask
from interpulse.client.json_readers import Read, boolean, made_by, record, records, string
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import TopicName
from interpulse.model.operations import Schemas
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text, definition_to_text

T = TypeVar("T")


class SchemaVersion(NamedTuple):
    """One entry of a topic's schema history."""

    version: int
    schema: SchemaInfo
    created_ms: int


class SchemaCompatibility(NamedTuple):
    """Verdict on a schema, and the compatibility strategy that was applied."""

    compatible: bool
    strategy: str


class SchemasAdmin:
    """Schema history of a topic, shared by its partitions."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def get(self, topic: TopicName | str, version: int | None = None) -> SchemaVersion:
        """Return the newest schema, or the one of ``version``. Raise SchemaNotFound."""
        return await self._get(topic, version, made_by(_schema_version))

    async def get_json(self, topic: TopicName | str, version: int | None = None) -> dict[str, Any]:
        """Return the schema like :meth:`get`, with every field that the broker sent."""
        return await self._get(topic, version, record)

    async def _get(self, topic: TopicName | str, version: int | None, read: Read[T]) -> T:
        if version is None:
            return await ask(self._http, Schemas.GET, topic, read=read)
        return await ask(self._http, Schemas.GET_VERSION, topic, version, read=read)

    async def history(self, topic: TopicName | str) -> list[SchemaVersion]:
        """Return all versions, oldest first. Empty if the topic has no schema or does not exist."""
        return await ask(self._http, Schemas.GET_HISTORY, topic, read=made_by(_history))

    async def upload(self, topic: TopicName | str, schema: SchemaInfo) -> int:
        """Register a schema and return its version. An equal schema keeps its version. Raise IncompatibleSchema."""
        return await ask(self._http, Schemas.UPLOAD, topic, read=made_by(_version_number), body=_body(schema))

    async def test_compatibility(self, topic: TopicName | str, schema: SchemaInfo) -> SchemaCompatibility:
        """Check if a schema could be registered now, and return the verdict.

        Raise NamespaceNotFound, and Unprocessable for an invalid definition. Apache Pulsar answers an incompatible
        schema with status 500, which raises UnknownError with the reason.
        """
        read = made_by(_compatibility)
        return await ask(self._http, Schemas.TEST_COMPATIBILITY, topic, read=read, body=_body(schema))

    async def delete(self, topic: TopicName | str, *, force: bool = False) -> int:
        """Add a deletion marker and return its version. ``force`` deletes the whole history instead."""
        return await ask(self._http, Schemas.DELETE, topic, read=made_by(_version_number), query={"force": force})


def _body(schema: SchemaInfo) -> dict[str, Any]:
    return {"type": schema.type.name, "schema": definition_to_text(schema), "properties": dict(schema.properties)}


def _version_number(body: Mapping[str, Any]) -> int:
    """Read a version number. Registering returns it inside an object of the same name, deleting returns it bare."""
    value = body["version"]
    return int(value["version"] if isinstance(value, dict) else value)


def _compatibility(body: Mapping[str, Any]) -> SchemaCompatibility:
    return SchemaCompatibility(boolean(body["compatibility"]), string(body["schemaCompatibilityStrategy"]))


def _history(body: Mapping[str, Any]) -> list[SchemaVersion]:
    return [_schema_version(item) for item in records(body["getSchemaResponses"])]


def _schema_version(body: Mapping[str, Any]) -> SchemaVersion:
    schema_type = SchemaType[body["type"]]
    definition = definition_from_text(schema_type, body.get("data") or "")
    schema = SchemaInfo(schema_type, definition, dict(body.get("properties") or {}))
    return SchemaVersion(int(body["version"]), schema, int(body.get("timestamp") or 0))

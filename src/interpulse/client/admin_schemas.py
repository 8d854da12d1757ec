"""Admin calls about schemas."""

from __future__ import annotations

from typing import Any, NamedTuple

from interpulse.client.http import HttpSession
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text, definition_to_text

__all__ = ["SchemaCompatibility", "SchemaVersion", "SchemasAdmin"]


class SchemaVersion(NamedTuple):
    """One entry of a topic's schema history."""

    version: int
    schema: SchemaInfo
    created_ms: int


class SchemaCompatibility(NamedTuple):
    """Whether a schema fits those of a topic, and the strategy that was asked."""

    compatible: bool
    strategy: str


class SchemasAdmin:
    """The schema history of a topic, which its partitions share."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def get(self, topic: TopicName | str, version: int | None = None) -> SchemaVersion:
        """The newest schema, or the one of a version. Raises SchemaNotFound."""
        return _schema_version(await self.get_json(topic, version))

    async def get_json(self, topic: TopicName | str, version: int | None = None) -> dict[str, Any]:
        """As :meth:`get`, with every field as the broker sent it."""
        path = _path(topic, "schema") + ("" if version is None else f"/{version}")
        return dict(await self._http.get(path, kind="schema"))

    async def history(self, topic: TopicName | str) -> list[SchemaVersion]:
        """All versions, oldest first. Raises SchemaNotFound if there never was one."""
        body = await self._http.get(_path(topic, "schemas"), kind="schema")
        return [_schema_version(item) for item in body["getSchemaResponses"]]

    async def upload(self, topic: TopicName | str, schema: SchemaInfo) -> int:
        """Register a schema and return its version; an equal one keeps its version. Raises IncompatibleSchema."""
        answer = await self._http.post(_path(topic, "schema"), _body(schema), kind="schema")
        return _version_number(answer["version"])

    async def test_compatibility(self, topic: TopicName | str, schema: SchemaInfo) -> SchemaCompatibility:
        """Whether a schema could be registered now. Raises NamespaceNotFound, and Unprocessable for a wrong definition.

        Apache Pulsar answers an incompatible schema with status 500, which raises UnknownError with the reason.
        """
        answer = await self._http.post(_path(topic, "compatibility"), _body(schema), kind="schema")
        return SchemaCompatibility(answer["compatibility"], answer["schemaCompatibilityStrategy"])

    async def delete(self, topic: TopicName | str, *, force: bool = False) -> int:
        """Put a deletion marker and return its version; ``force`` erases the whole history."""
        answer = await self._http.delete(_path(topic, "schema"), kind="schema", query={"force": force})
        return _version_number(answer["version"])


def _body(schema: SchemaInfo) -> dict[str, Any]:
    return {"type": schema.type.name, "schema": definition_to_text(schema), "properties": dict(schema.properties)}


def _path(topic: TopicName | str, last: str) -> str:
    name = TopicName.parse(str(topic)).base
    return f"/admin/v2/schemas/{name.tenant}/{name.namespace}/{name.encoded}/{last}"


def _version_number(value: int | dict[str, int]) -> int:
    """Registering answers the number inside an object of the same name, deleting answers it bare."""
    return value["version"] if isinstance(value, dict) else int(value)


def _schema_version(body: dict[str, Any]) -> SchemaVersion:
    schema_type = SchemaType[body["type"]]
    definition = definition_from_text(schema_type, body.get("data") or "")
    schema = SchemaInfo(schema_type, definition, dict(body.get("properties") or {}))
    return SchemaVersion(int(body["version"]), schema, int(body.get("timestamp") or 0))

"""REST calls about the schemas of topics."""

from __future__ import annotations

from typing import Any, Final

from interpulse.broker.rest.http.bodies import SCHEMA
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.model.errors import (
    IncompatibleSchema,
    InvalidSchemaDefinition,
    SchemaNotFound,
    Unprocessable,
)
from interpulse.model.operations import Schemas
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text, definition_to_text
from interpulse.model.topics import Requester
from interpulse.rules.schemas import SchemaVersion, live_versions


async def get_schema(call: Call) -> Answer:
    """Return the latest schema, or the one of the version in the path."""
    topic = call.topic
    wanted = call.number("version") if "version" in call.params else None
    shown = [
        live_version
        for live_version in live_versions(await call.context.schemas.versions(topic))
        if wanted in (None, live_version.version)
    ]
    if not shown:
        raise SchemaNotFound("Schema not found")
    return answer_json(_show(shown[-1]))


async def get_history(call: Call) -> Answer:
    """Return all versions; an empty list, as in Pulsar, if there are none."""
    versions = live_versions(await call.context.schemas.versions(call.topic))
    return answer_json({"getSchemaResponses": [_show(version) for version in versions]})


async def post_schema(call: Call) -> Answer:
    version = await call.context.schemas.register(call.topic, _schema(call), by=Requester.ADMIN)
    return answer_json({"version": {"version": version}})


async def delete_schema(call: Call) -> Answer:
    topic = call.topic
    await call.context.namespaces.get_policies(topic.namespace_name)
    version = await call.context.schemas.delete(topic, force=call.flag("force"))
    return answer_json({"version": version})


async def find_version(call: Call) -> Answer:
    version = await call.context.schemas.version_of(call.topic, _schema(call))
    return answer_json({"version": -1 if version is None else version})


async def test_compatibility(call: Call) -> Answer:
    """Report if a schema could be registered now. Real Pulsar answers 500 if it could not."""
    topic, schema = call.topic, _schema(call)
    try:
        strategy = await call.context.schemas.check(topic, schema)
    except InvalidSchemaDefinition:
        raise
    except IncompatibleSchema:
        strategy = await call.context.schemas.strategy(topic)
        return answer_json({"schemaCompatibilityStrategy": strategy, "compatibility": False})
    return answer_json({"schemaCompatibilityStrategy": strategy, "compatibility": True}, status=202)


def _schema(call: Call) -> SchemaInfo:
    body = call.object(SCHEMA)
    kind, definition, properties = body.get("type"), body.get("schema", ""), body.get("properties", {})
    if kind == "BYTES":  # Java clients send it for no schema; real Pulsar stores it
        kind = SchemaType.NONE.name
    if kind not in SchemaType.__members__:
        raise Unprocessable(f"Unknown schema type {kind}; known are {', '.join(SchemaType.__members__)}")
    schema_type = SchemaType[str(kind)]
    return SchemaInfo(schema_type, _definition(schema_type, definition), properties)


def _definition(schema_type: SchemaType, text: str) -> bytes:
    try:
        return definition_from_text(schema_type, text)
    except (ValueError, RecursionError) as error:
        raise Unprocessable(f"Invalid schema definition data for {schema_type.name} schema: {error}") from None


def _show(version: SchemaVersion) -> dict[str, Any]:
    schema = version.schema
    assert schema is not None, "deletion markers are not shown"
    return {
        "version": version.version,
        "type": schema.type.name,
        "timestamp": version.created_ms,
        "data": definition_to_text(schema),
        "properties": dict(schema.properties),
    }


ROUTES: Final = (
    Route(Schemas.GET, get_schema),
    Route(Schemas.GET_VERSION, get_schema),
    Route(Schemas.GET_HISTORY, get_history),
    Route(Schemas.UPLOAD, post_schema),
    Route(Schemas.DELETE, delete_schema),
    Route(Schemas.FIND_VERSION, find_version),
    Route(Schemas.TEST_COMPATIBILITY, test_compatibility),
)

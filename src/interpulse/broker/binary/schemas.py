"""GET_SCHEMA, GET_OR_CREATE_SCHEMA, and the schemas inside PRODUCER and SUBSCRIBE."""

from __future__ import annotations

from interpulse.broker.binary.transport.context import CommandConnection
from interpulse.model.errors import IncompatibleSchema, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType, version_from_bytes, version_to_bytes
from interpulse.model.topics import Requester, TopicKind
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.schemas import schema_from_wire


def requested_schema(
    request: pb.CommandProducer | pb.CommandSubscribe | pb.CommandGetOrCreateSchema,
) -> SchemaInfo | None:
    """Return the schema of a command. None if it has none, which Go's bytes express with the type None."""
    if not request.HasField("schema"):
        return None
    schema = schema_from_wire(request.schema)
    return None if schema.type is SchemaType.NONE else schema


async def on_get_schema(connection: CommandConnection, request: pb.CommandGetSchema) -> None:
    topic = TopicName.parse(request.topic)
    if request.HasField("schema_version") and not request.schema_version:
        # Go requests the version that it got for its bytes (see on_get_or_create_schema) and put into its messages.
        connection.output.send(commands.get_schema_response(request.request_id, SchemaInfo(SchemaType.NONE), b""))
        return
    version = None
    if request.HasField("schema_version"):
        try:
            version = version_from_bytes(request.schema_version)
        except ValueError as error:
            raise IncompatibleSchema(f"Invalid schema version: {error}") from None
    schema, version_sent = await connection.context.schemas.get(topic, version)
    connection.output.send(commands.get_schema_response(request.request_id, schema, version_to_bytes(version_sent)))


async def on_get_or_create_schema(connection: CommandConnection, request: pb.CommandGetOrCreateSchema) -> None:
    topic = TopicName.parse(request.topic)
    context = connection.context
    if (await context.lifecycle.existence(topic)).kind is TopicKind.ABSENT:
        raise TopicNotFound(f"Topic not found: {topic}")
    schema = requested_schema(request)
    version = b""  # Java's dead letters and Go's bytes ask with "no schema": an error would stop their messages
    if schema is not None:
        names = [request.producerName]  # older replicators do not send the name of their producer
        if not request.producerName:
            producers = connection.producers.values()
            names = [opened.producer.name for opened in producers if opened.topic.name.base == topic.base]
        by = Requester.REPLICATOR if any(map(connection.calls_itself_replicator, names)) else Requester.CLIENT
        version = version_to_bytes(await context.schemas.register(topic, schema, by=by))
    connection.output.send(
        commands.encode(pb.CommandGetOrCreateSchemaResponse(request_id=request.request_id, schema_version=version))
    )

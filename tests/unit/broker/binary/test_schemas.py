"""The two schema commands."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.errors import ServerError
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType, version_to_bytes
from interpulse.model.topics import Requester
from tests.support import commands

STRING = SchemaInfo(SchemaType.STRING)
TOPIC = "persistent://public/default/t-partition-3"


async def test_get_when_found_then_schema_and_version(client: Any) -> None:
    answer = await client.ask(commands.get_schema(3, TOPIC, version_to_bytes(2)))
    assert (answer.request_id, answer.schema_version) == (3, version_to_bytes(2))
    assert answer.schema.type == SchemaType.STRING
    assert not answer.HasField("error_code")


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (version_to_bytes(9), ServerError.TopicNotFound),
        (b"1", ServerError.IncompatibleSchema),
    ],
)
async def test_get_when_version_does_not_do_then_typed_error(client: Any, version: bytes, code: ServerError) -> None:
    answer = await client.ask(commands.get_schema(3, TOPIC, version))
    assert (answer.request_id, answer.error_code) == (3, code)
    assert answer.error_message
    assert not answer.HasField("schema")


async def test_get_when_version_is_empty_then_no_schema(client: Any) -> None:
    answer = await client.ask(commands.get_schema(3, TOPIC, b""))
    assert (answer.request_id, answer.schema.type, answer.schema.schema_data) == (3, SchemaType.NONE, b"")
    assert (answer.HasField("error_code"), answer.schema_version) == (False, b"")


async def test_create_when_topic_exists_then_version(client: Any) -> None:
    answer = await client.ask(commands.get_or_create_schema(3, TOPIC, STRING))
    assert answer.schema_version == version_to_bytes(6)
    assert client.context.registered == [(TopicName.parse(TOPIC), STRING, Requester.CLIENT)]


async def test_create_when_topic_is_absent_then_typed_topic_not_found(client: Any) -> None:
    answer = await client.ask(commands.get_or_create_schema(3, "public/default/missing", STRING))
    assert (answer.request_id, answer.error_code) == (3, ServerError.TopicNotFound)


async def test_create_when_type_is_none_then_an_empty_version_and_nothing_is_registered(client: Any) -> None:
    answer = await client.ask(commands.get_or_create_schema(3, TOPIC, SchemaInfo(SchemaType.NONE)))
    assert (answer.HasField("error_code"), answer.HasField("schema_version"), answer.schema_version) == (
        False,
        True,
        b"",
    )
    assert client.context.registered == []


async def test_create_when_producer_name_is_a_replicators_then_asked_as_one(client: Any) -> None:
    await client.ask(commands.get_or_create_schema(3, TOPIC, STRING, producer_name="pulsar.repl.a-->b"))
    assert client.context.registered[-1][2] is Requester.REPLICATOR


async def test_create_when_name_is_left_out_then_the_connections_own_producer_decides(client: Any) -> None:
    await client.open_producer(name="pulsar.repl.a")
    await client.ask(commands.get_or_create_schema(3, TOPIC, STRING))
    assert client.context.registered[-1][2] is Requester.REPLICATOR

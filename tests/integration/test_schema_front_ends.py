"""Schemas through every front end: PRODUCER, SUBSCRIBE, GET_OR_CREATE_SCHEMA and REST take and refuse the same ones."""

from __future__ import annotations

import aiohttp
import pytest

from interpulse.client import Client
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import IncompatibleSchema, SchemaNotFound, Unprocessable
from interpulse.model.schemas import SchemaInfo, SchemaType, version_to_bytes
from interpulse.testing import InProcessBroker
from tests.schema_pairs.cases import Schema, avro, fld, pair, record

TOPIC = "persistent://public/default/t"
FIRST = avro(record(fld("int", "a")))
GROWN = avro(record(fld("int", "a"), fld("int", "b", default=0)))
TEXT = Schema("STRING", "")

# name: (the topic's schema, the new one, what is said of it; None where it is taken)
ROWS = {
    "grown": (FIRST, GROWN, None),
    "retyped": (FIRST, avro(record(fld("string", "a"))), "strategy FULL: Unable to read schema"),
    "grown-with-wrong-default": (
        FIRST,
        avro(record(fld("int", "a"), fld("int", "b", default="x"))),
        'the field b is not written and its default "x" is no int',
    ),
    "wrong-default-not-needed": (
        avro(record(fld("int", "a"), fld("string", "b", default=None))),
        avro(record(fld("int", "a"), fld("string", "b", default=0))),
        None,
    ),
    "other-type": (FIRST, TEXT, "exists schema type AVRO, new schema type STRING"),
    "pair-grown": (pair(TEXT, FIRST), pair(TEXT, GROWN), None),
    "pair-retyped": (pair(TEXT, FIRST), pair(TEXT, avro(record(fld("string", "a")))), "value schema: Unable to read"),
    "pair-of-others": (pair(TEXT, FIRST), pair(FIRST, FIRST), "Key schema type or value schema type is different"),
}
BROKEN = {
    "no-json": (SchemaInfo(SchemaType.AVRO, b"{"), "Invalid schema definition data for AVRO schema"),
    "unknown-type": (avro(record(fld("Nope"))).info, "the type Nope is not defined"),
    "wrong-default": (avro(record(fld("float", default="x"))).info, 'the default "x" of the field f is no float'),
    "text-with-definition": (SchemaInfo(SchemaType.STRING, b"x"), "a primitive type has none"),
}


@pytest.mark.parametrize("name", ROWS)
async def test_schema_when_it_comes_second_then_every_front_end_says_the_same(
    pulsar_broker: InProcessBroker, name: str
) -> None:
    first, second, sentence = ROWS[name]
    said = await answers(pulsar_broker, first.info, second.info)
    if sentence is None:
        assert said == dict.fromkeys(said, "taken")
    else:
        assert not [front_end for front_end, each in said.items() if "IncompatibleSchemaException" not in each]
        assert not [front_end for front_end, each in said.items() if sentence not in each]


async def answers(broker: InProcessBroker, first: SchemaInfo, second: SchemaInfo) -> dict[str, str]:
    said = {}
    async with Client(broker.service_url) as client, AdminClient(broker.web_url) as admin:
        for front_end in ("subscribe", "producer", "per message", "rest"):
            topic = f"{TOPIC}-{front_end.replace(' ', '-')}"
            await client.create_producer(topic, schema=first)
            calls = {
                "subscribe": lambda name: client.subscribe(name, "s", schema=second),
                "producer": lambda name: client.create_producer(name, schema=second),
                "per message": lambda name: client.register_schema(name, second),
                "rest": lambda name: admin.schemas.upload(name, second),
            }
            try:
                await calls[front_end](topic)
                said[front_end] = "taken"
            except IncompatibleSchema as refusal:
                said[front_end] = str(refusal)
    return said


@pytest.mark.parametrize("name", BROKEN)
async def test_definition_when_it_is_none_then_every_front_end_refuses_with_what_is_wrong(
    pulsar_broker: InProcessBroker, name: str
) -> None:
    schema, sentence = BROKEN[name]
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        await client.create_producer(TOPIC)
        with pytest.raises(IncompatibleSchema, match=sentence):
            await client.create_producer(TOPIC, schema=schema)
        with pytest.raises(IncompatibleSchema, match=sentence):
            await client.register_schema(TOPIC, schema)
        with pytest.raises(Unprocessable, match=sentence):
            await admin.schemas.upload(TOPIC, schema)
        with pytest.raises(Unprocessable, match=sentence):
            await admin.schemas.test_compatibility(TOPIC, schema)
        with pytest.raises(SchemaNotFound):
            await admin.schemas.get(TOPIC)


async def test_schema_of_bytes_is_none_for_rest(pulsar_broker: InProcessBroker) -> None:
    body = {"type": "BYTES", "schema": "", "properties": {}}
    url = f"{pulsar_broker.web_url}/admin/v2/schemas/public/default/t/schema"
    async with aiohttp.ClientSession() as http, AdminClient(pulsar_broker.web_url) as admin:
        async with http.post(url, json=body) as answer:
            assert (answer.status, await answer.json()) == (200, {"version": {"version": 0}})
        assert (await admin.schemas.get(TOPIC)).schema.type is SchemaType.NONE


async def test_versions_when_a_deletion_lies_between_then_only_later_ones_are_compared_and_found(
    pulsar_broker: InProcessBroker,
) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        await client.create_producer(TOPIC, schema=FIRST.info)
        assert await client.register_schema(TOPIC, GROWN.info) == version_to_bytes(1)
        assert await admin.schemas.delete(TOPIC) == 2
        assert await admin.schemas.upload(TOPIC, TEXT.info) == 3
        assert await client.get_schema(TOPIC, version_to_bytes(0)) is None
        found = await client.get_schema(TOPIC, version_to_bytes(3))
        assert found is not None
        assert found.schema.type is SchemaType.STRING
        with pytest.raises(IncompatibleSchema, match="exists schema type STRING"):
            await client.create_producer(TOPIC, schema=FIRST.info)


@pytest.mark.pulsar_settings(isAllowAutoUpdateSchemaEnabled="false", isSchemaValidationEnforced="true")
async def test_schemas_when_updates_are_off_then_an_administrator_adds_them_and_producers_need_one(
    pulsar_broker: InProcessBroker,
) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        with pytest.raises(IncompatibleSchema, match="schema auto updating is disabled"):
            await client.create_producer(TOPIC, schema=FIRST.info)
        await admin.schemas.upload(TOPIC, FIRST.info)
        await client.create_producer(TOPIC, schema=FIRST.info)
        with pytest.raises(IncompatibleSchema, match="schema auto updating is disabled"):
            await client.create_producer(TOPIC, schema=GROWN.info)
        with pytest.raises(IncompatibleSchema, match="without a schema"):
            await client.create_producer(TOPIC)

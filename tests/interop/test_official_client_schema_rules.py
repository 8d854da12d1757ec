"""What the official client's schemas may and may not do; the same on our broker and on a real Pulsar."""

from __future__ import annotations

import uuid

import _pulsar
import pulsar
import pytest
from pulsar import schema

from tests.support.official_client import RECEIVE_MS, connected

pytestmark = pytest.mark.interop


class Flight(schema.Record):
    carrier = schema.String()
    delay = schema.Integer()


class Grown(schema.Record):
    carrier = schema.String()
    delay = schema.Integer()
    gate = schema.String(default="A1", required_default=True)


class Broken(schema.Record):
    carrier = schema.String()
    delay = schema.Boolean()


class Automatic(schema.Schema):
    """The types the client has without a class of their own: whatever the topic holds, as bytes."""

    def __init__(self, kind: _pulsar.SchemaType) -> None:
        self._schema_info = _pulsar.SchemaInfo(kind, "automatic", "")

    def encode(self, obj: bytes) -> bytes:
        return obj

    def decode(self, data: bytes) -> bytes:
        return data


KINDS = [schema.AvroSchema, schema.JsonSchema]


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.slow)])
def service_url(request: pytest.FixtureRequest) -> str:
    """Of our broker, and of a real one."""
    fixture = "pulsar_broker" if request.param == "ours" else "real_pulsar"
    return str(request.getfixturevalue(fixture).service_url)


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/schema-{uuid.uuid4().hex}"


@pytest.mark.parametrize("kind", KINDS)
def test_producers_when_schema_grows_with_a_default_then_taken_and_read_by_old_and_new(
    service_url: str, topic: str, kind: type
) -> None:
    with connected(service_url) as client:
        old = client.create_producer(topic, schema=kind(Flight))
        new = client.create_producer(topic, schema=kind(Grown))
        consumer = client.subscribe(topic, "s", schema=kind(Flight), initial_position=pulsar.InitialPosition.Earliest)
        old.send(Flight(carrier="UA", delay=1))
        new.send(Grown(carrier="DL", delay=2, gate="B"))
        messages = [consumer.receive(RECEIVE_MS) for _ in range(2)]
        assert len({message.schema_version() for message in messages}) == 2
        assert [(message.value().carrier, message.value().delay) for message in messages] == [("UA", 1), ("DL", 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_clients_when_a_field_changes_its_type_then_refused(service_url: str, topic: str, kind: type) -> None:
    with connected(service_url) as client:
        client.create_producer(topic, schema=kind(Flight))
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=kind(Broken))
        with pytest.raises(pulsar.IncompatibleSchema):
            client.subscribe(topic, "s", schema=kind(Broken))


def test_consumer_when_it_takes_any_schema_then_gets_what_is_there(service_url: str, topic: str) -> None:
    with connected(service_url) as client:
        producer = client.create_producer(topic, schema=schema.AvroSchema(Flight))
        consumer = client.subscribe(topic, "s", schema=Automatic(_pulsar.SchemaType.AUTO_CONSUME))
        producer.send(Flight(carrier="UA", delay=1))
        assert consumer.receive(RECEIVE_MS).data() == schema.AvroSchema(Flight).encode(Flight(carrier="UA", delay=1))


def test_producer_when_it_takes_any_schema_then_sends_under_the_topics_own(service_url: str, topic: str) -> None:
    with connected(service_url) as client:
        consumer = client.subscribe(topic, "s", schema=schema.AvroSchema(Flight))
        producer = client.create_producer(topic, schema=Automatic(_pulsar.SchemaType.AUTO_PUBLISH))
        producer.send(schema.AvroSchema(Flight).encode(Flight(carrier="DL", delay=2)))
        message = consumer.receive(RECEIVE_MS)
        assert (message.value().carrier, message.value().delay) == ("DL", 2)


def test_producer_when_it_takes_any_schema_and_there_is_none_then_taken(service_url: str, topic: str) -> None:
    with connected(service_url) as client:
        client.create_producer(topic, schema=Automatic(_pulsar.SchemaType.AUTO_PUBLISH)).send(b"x")

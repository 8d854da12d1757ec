"""Schemas of the official client: Avro, JSON, primitive ones; what does not fit is refused."""

from __future__ import annotations

import pulsar
import pytest
from pulsar import schema

from interpulse.testing import InProcessBroker
from tests.support.official_client import connected

pytestmark = pytest.mark.interop


class Flight(schema.Record):
    carrier = schema.String()
    delay = schema.Integer()


class Ship(schema.Record):
    carrier = schema.String()
    delay = schema.Integer()
    name = schema.String(default=None, required_default=True)


@pytest.mark.parametrize("kind", [schema.AvroSchema, schema.JsonSchema])
def test_records_when_typed_then_values_come_back(pulsar_broker: InProcessBroker, kind: type) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s", schema=kind(Flight))
        producer = client.create_producer("t", schema=kind(Flight))
        producer.send(Flight(carrier="UA", delay=-3))
        message = consumer.receive(60_000)
        value = message.value()
        assert (value.carrier, value.delay) == ("UA", -3)
        assert message.schema_version() is not None


def test_schema_when_type_differs_then_incompatible(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        client.create_producer("t", schema=schema.AvroSchema(Flight))
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer("t", schema=schema.StringSchema())
        with pytest.raises(pulsar.IncompatibleSchema):
            client.subscribe("t", "s", schema=schema.JsonSchema(Flight))


def test_schema_when_registered_again_then_same_version(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        for record in (Flight, Ship, Flight):
            kind = schema.AvroSchema(record)
            producer = client.create_producer("t", schema=kind)
            producer.send(record(carrier="UA", delay=1))
        versions = [consumer.receive(60_000).schema_version() for _ in range(3)]
    assert versions[0] == versions[2] != versions[1]


@pytest.mark.pulsar_settings(isAllowAutoUpdateSchemaEnabled="false")
def test_schema_when_updates_are_off_then_refused(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer("t", schema=schema.AvroSchema(Flight))
        client.create_producer("t")


def test_producer_without_schema_when_topic_has_one_then_accepted(pulsar_broker: InProcessBroker) -> None:
    with connected(pulsar_broker.service_url) as client:
        client.create_producer("t", schema=schema.StringSchema())
        client.create_producer("t").send(b"raw")

"""Typed rows of the data source and typed messages of the official Python client: one writes, the other reads."""

from __future__ import annotations

import uuid
from typing import Any

import pulsar
import pytest
from pulsar.schema import AvroSchema, Boolean, Double, JsonSchema, Long, Record, String
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.support.official_client import connected, receive
from tests.support.spark_source import columns_of, read_batch, write_batch

pytestmark = pytest.mark.interop

COLUMNS = columns_of(device=StringType(), celsius=DoubleType(), count=LongType(), ok=BooleanType())
ROW = ("attic", 31.5, 7, True)


class Reading(Record):
    device = String()
    celsius = Double()
    count = Long()
    ok = Boolean()


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_official_client_and_spark_read_each_other_on_our_broker(pulsar_broker: InProcessBroker, schema: Any) -> None:
    check_both_ways(pulsar_broker.service_url, schema)


@pytest.mark.slow
@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_official_client_and_spark_read_each_other_on_a_real_pulsar(real_pulsar: Address, schema: Any) -> None:
    check_both_ways(real_pulsar.service_url, schema)


def check_both_ways(service_url: str, schema: Any) -> None:
    topic = f"persistent://public/default/both-ways-{uuid.uuid4().hex[:8]}"
    options = {"service.url": service_url, "topic": topic}
    with connected(service_url) as client:
        consumer = client.subscribe(
            topic, "keep", schema=schema(Reading), initial_position=pulsar.InitialPosition.Earliest
        )
        producer = client.create_producer(topic, schema=schema(Reading))
        for count in range(20):  # a batch that is read column by column
            producer.send_async(Reading(device="cellar", celsius=12.5, count=count, ok=False), lambda *_: None)
        producer.flush()
        rows = read_batch({**options, "includeColumns": "device,celsius,count,ok"})
        assert rows == [{"device": "cellar", "celsius": 12.5, "count": n, "ok": False} for n in range(20)]
        write_batch(options, COLUMNS, ROW)
        last = receive(consumer, 21)[-1].value()
        assert (last.device, last.celsius, last.count, last.ok) == ROW

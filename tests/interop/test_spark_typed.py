"""Typed rows of the data source and typed messages of the Java client: one writes, the other reads, on both brokers."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.options.option import OptionError
from interpulse.testing import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.support.spark_source import columns_of, read_batch, write_batch

pytestmark = [pytest.mark.interop, pytest.mark.slow]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLIGHT = {"carrier": "UA", "delay": -3}
READ: dict[str, list[dict[str, Any]]] = {
    "versions": [{**_FLIGHT, "gate": None}, {"carrier": "DL", "delay": 0, "gate": "A1"}],
    "json": [_FLIGHT],
    "INT8": [{"value": -1}],
    "INT16": [{"value": 2}],
    "INT32": [{"value": 3}],
    "INT64": [{"value": 4}],
    "FLOAT": [{"value": 0.5}],
    "DOUBLE": [{"value": 0.25}],
    "BOOLEAN": [{"value": True}],
    "LOCAL_DATE": [{"value": date(1970, 1, 1)}],
    "DATE": [{"value": date(1970, 1, 1)}],
    "INSTANT": [{"value": _EPOCH}],
    "TIMESTAMP": [{"value": _EPOCH.replace(microsecond=6000)}],
    "LOCAL_TIME": [{"value": 12 * 3600 * 10**9}],
    "TIME": [{"value": 7000}],
    "LOCAL_DATE_TIME": [{"value": _EPOCH.replace(tzinfo=None)}],
}
"""By topic of ``Schemas.java``."""


def test_what_the_java_client_wrote_on_our_broker_has_typed_columns(
    pulsar_broker: InProcessBroker, java_check: JavaCheck
) -> None:
    java_check("Schemas.java", pulsar_broker.service_url, pulsar_broker.web_url, "public/default")
    check_reading(pulsar_broker.service_url, "public/default")


async def test_java_client_reads_the_rows_that_are_written_on_our_broker(
    pulsar_broker: InProcessBroker, java_check: JavaCheck
) -> None:
    await check_writing(Cluster(pulsar_broker.service_url, pulsar_broker.web_url), java_check)


async def test_java_client_reads_the_rows_that_are_written_on_a_real_pulsar(
    real_pulsar: Address, java_check: JavaCheck
) -> None:
    await check_writing(Cluster(real_pulsar.service_url, real_pulsar.web_url), java_check)


async def test_what_the_java_client_wrote_on_a_real_pulsar_has_typed_columns(
    real_pulsar: Address, java_check: JavaCheck
) -> None:
    namespace = f"public/typed-{uuid.uuid4().hex[:8]}"
    async with AdminClient(real_pulsar.web_url) as admin:
        await admin.namespaces.create(namespace)
    java_check("Schemas.java", real_pulsar.service_url, real_pulsar.web_url, namespace)
    check_reading(real_pulsar.service_url, namespace)


def check_reading(service_url: str, namespace: str) -> None:
    def read(*names: str) -> list[dict[str, Any]]:
        topics = ",".join(f"persistent://{namespace}/{name}" for name in names)
        return read_batch({"service.url": service_url, "topics": topics, "includeColumns": "none"})

    assert {name: read(name) for name in READ} == READ
    for name in ("pair-INLINE", "pair-SEPARATED"):
        assert read(name) == [{"key": "k", "value": {**_FLIGHT, "gate": None}}]
    assert read("native")[0]["value"] == b"\x08\x07"
    with pytest.raises(OptionError, match=r"/json has JSON \(.*/versions has AVRO \("):
        read("versions", "json")


ROW = columns_of(
    name=StringType(),
    size=LongType(),
    tags=ArrayType(StringType()),
    place=StructType([StructField("x", DoubleType())]),
)
VALUES = ("a", 7, ["b", "c"], {"x": 1.5})
SHOWN = "name=a size=7 tags=[b, c] place=x=1.5"
SHOWN_OF_JSON = 'name=a size=7 tags=["b","c"] place=x=1.5'


async def check_writing(cluster: Cluster, java_check: JavaCheck) -> None:
    namespace = f"public/written-{uuid.uuid4().hex[:8]}"
    topics = [f"persistent://{namespace}/{name}" for name in ("avro", "json", "number", "INLINE", "SEPARATED")]
    pair = columns_of(key=StringType(), value=LongType())
    async with AdminClient(cluster.web_url) as admin:
        await admin.namespaces.create(namespace)
        for topic in topics:
            await admin.topics.create(topic)
            await admin.topics.create_subscription(topic, "keep", MessageId.of(EARLIEST))
        for topic in topics[3:]:
            types = {
                "key.schema.type": "STRING",
                "value.schema.type": "INT64",
                "kv.encoding.type": topic.rpartition("/")[2],
            }
            definition = definition_from_text(SchemaType.KEY_VALUE, '{"key": "", "value": ""}')
            await admin.schemas.upload(topic, SchemaInfo(SchemaType.KEY_VALUE, definition, types))

    def write(topic: str, columns: StructType, values: tuple[Any, ...], **options: str) -> None:
        write_batch({"service.url": cluster.service_url, "topic": topic, **options}, columns, values)

    write(topics[0], ROW, VALUES)
    write(topics[1], ROW, VALUES, schemaType="JSON")
    write(topics[2], columns_of(value=LongType()), (7,))
    write(topics[3], pair, ("k", 7))
    write(topics[4], pair, ("k", 7))
    assert java_check("TypedRows.java", cluster.service_url, *topics).splitlines() == [
        SHOWN,
        SHOWN_OF_JSON,
        "7",
        "k->7",
        "k->7",
    ]

"""Typed columns in a local Spark."""

import io
import json

import fastavro
import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark import register_functions

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

FIELDS = [
    {"name": "name", "type": "string"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "at", "type": {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "double"}]}},
]


def avro(*fields):
    return SchemaInfo(SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": list(fields)}).encode())


OLD = avro(*FIELDS)
NEW = avro(*FIELDS, {"name": "size", "type": ["null", "long"], "default": None})


def publish_typed(client, topic, schema, *values):
    with client.create_producer(topic, schema=schema) as producer:
        for value in values:
            payload = io.BytesIO()
            fastavro.schemaless_writer(payload, json.loads(schema.definition), value)
            producer.send(payload.getvalue())


def test_typed_columns_of_two_versions_in_batch_and_stream(spark, client, options, topic):
    publish_typed(client, topic, OLD, {"name": "old", "tags": ["a", "b"], "at": {"x": 1.5}})
    publish_typed(client, topic, NEW, {"name": "new", "tags": [], "at": {"x": 2.5}, "size": 7})
    frame = spark.read.format("pulsar").options(**options).load()
    assert frame.columns[:5] == ["name", "tags", "at", "size", "__key"]
    rows = frame.selectExpr("name", "tags", "at.x", "size").orderBy("name").collect()
    assert [tuple(row) for row in rows] == [("new", [], 2.5, 7), ("old", ["a", "b"], 1.5, None)]

    some = spark.read.format("pulsar").schema("size BIGINT, __publishTime TIMESTAMP").options(**options).load()
    assert sorted(row["size"] or 0 for row in some.collect()) == [0, 7]

    stream = spark.readStream.format("pulsar").options(**options, startingOffsets="earliest").load()
    query = stream.select("name").writeStream.format("memory").queryName("typed").trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(row["name"] for row in spark.table("typed").collect()) == ["new", "old"]


def test_columns_in_the_style_of_kafka(spark, client, options, topic):
    publish_typed(client, topic, OLD, {"name": "a", "tags": [], "at": {"x": 0.0}})
    frame = spark.read.format("pulsar").options(**options, columnStyle="kafka", includeHeaders="true").load()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    row = frame.collect()[0]
    assert (row["topic"], row["value"][:2], row["headers"]) == (topic, b"\x02a", None)


def test_typed_rows_are_written_and_read(spark, options, topic):
    rows = spark.createDataFrame([("a", 1.5, "k"), ("b", None, "k")], "name STRING, celsius DOUBLE, __key STRING")
    rows.write.format("pulsar").options(**options).mode("append").save()
    back = spark.read.format("pulsar").options(**options, includeColumns="name,celsius").load()
    assert [tuple(row) for row in back.orderBy("name").collect()] == [("a", 1.5), ("b", None)]
    with pytest.raises(Exception, match="it has no field colour"):
        rows.withColumnRenamed("name", "colour").write.format("pulsar").options(**options).mode("append").save()


def test_table_function_reads_typed_columns_from_a_start_to_an_end(spark, client, options, topic):
    publish_typed(client, topic, OLD, {"name": "old", "tags": ["a"], "at": {"x": 1.5}})
    register_functions(spark)
    call = f"read_pulsar('{options['service.url']}', topic => '{topic}', includeColumns => '{{}}')"
    (first,) = spark.sql(f"SELECT name, tags, at.x, __messageId FROM {call.format('__messageId')}").collect()
    publish_typed(client, topic, NEW, *({"name": f"n{index}", "tags": [], "at": {"x": 2.5}} for index in range(20)))
    frame = spark.sql(f"SELECT * FROM {call.format('none')} WHERE name <> 'n7'")
    assert frame.columns == ["name", "tags", "at", "size"]
    assert sorted(row["name"] for row in frame.collect()) == sorted(
        {"old", *(f"n{each}" for each in range(20))} - {"n7"}
    )
    assert tuple(first)[:3] == ("old", ["a"], 1.5)
    later = spark.sql(f"SELECT name FROM {call.format('none')[:-1]}, endingTime => 1)")
    assert later.collect() == []
    with pytest.raises(Exception, match="did you mean topics"):
        spark.sql(f"SELECT * FROM read_pulsar('{options['service.url']}', topc => 'x')")

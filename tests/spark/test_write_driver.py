"""Writes without a JVM: where rows go, the columns of Kafka, how long receipts may take."""

import pytest
from pyspark.sql.types import ArrayType, BinaryType, StringType

from interpulse.model.errors import InvalidRequest, OperationTimeout
from interpulse.spark.options.option import OptionError
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import java_string_hash, murmur3_hash
from tests.support.spark_source import columns_of, read_batch, write_batch, write_batches

PLACES = columns_of(value=BinaryType(), __topic=StringType())


def places(options):
    """The partitions of the messages."""
    return {row["value"].decode(): int(row["__topic"][-1]) for row in read_batch(options, PLACES)}


@pytest.mark.parametrize(
    ("scheme", "hashed"),
    [("Murmur3_32Hash", lambda key: murmur3_hash(key.encode())), ("JavaStringHash", java_string_hash)],
)
def test_keys_choose_the_partition_by_the_hash_that_is_asked_for(options, scheme, hashed):
    rows = [(key, key) for key in ("attic", "cellar", "garden", "roof", "stairs")]
    write_batch({**options, "hashingScheme": scheme}, columns_of(__key=StringType(), value=StringType()), *rows)
    assert places(options) == {key: hashed(key) % 4 for key, _ in rows}


@pytest.mark.parametrize(("mode", "used"), [("RoundRobinPartition", 4), ("SinglePartition", 1)])
def test_rows_without_key_take_turns_by_batch_or_stay(options, mode, used):
    columns = columns_of(value=StringType())
    write_batches({**options, "messageRoutingMode": mode}, columns, *[[(f"{batch}",)] * 10 for batch in range(8)])
    found = {(row["value"], row["__topic"]) for row in read_batch(options, PLACES)}
    assert len(found) == 8
    assert len({topic for _, topic in found}) == used


def test_rows_that_go_to_some_clusters_only_are_entries_of_their_own(options):
    columns = columns_of(__key=StringType(), value=StringType(), __replicateTo=ArrayType(StringType()))
    clusters = {"a": None, "b": ["west"], "c": ["west", "north"], "d": [], "e": ["__local__"]}
    write_batch(options, columns, *[("k", value, given) for value, given in clusters.items()])
    entries = read_batch({**options, "mode": "entry"})
    metadata = [
        pb.MessageMetadata.FromString(row["__metadata"]) for row in sorted(entries, key=lambda row: row["__entryId"])
    ]
    assert [list(each.replicate_to) for each in metadata] == [[], ["west"], ["west", "north"], [], ["__local__"]]
    with pytest.raises(InvalidRequest, match="names a cluster without a name"):
        write_batch(options, columns, ("k", "f", ["west", None]))


def test_rows_of_kafka_are_written_and_read_back(options):
    columns = columns_of(key=StringType(), value=BinaryType())
    write_batch({**options, "columnStyle": "kafka"}, columns, ("attic", b"31"), (None, b"12"))
    rows = read_batch({**options, "columnStyle": "kafka"})
    assert sorted((row["key"], row["value"]) for row in rows if row["key"]) == [(b"attic", b"31")]
    assert len(rows) == 2


def test_receipt_that_does_not_come_ends_the_task(broker, options):
    patience = {"sendTimeoutMs": "200", "operationTimeoutMs": "5000"}  # closing waits for an answer, too
    with broker.faults.delay("SEND", 60), pytest.raises(OperationTimeout, match="no receipt within"):
        write_batch({**options, **patience}, columns_of(value=StringType()), ("a",))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"blockIfQueueFull": "false"}, "blockIfQueueFull: false would lose rows"),
        ({"messageRoutingMode": "CustomPartition"}, "put the partition of each row into the column __partition"),
        ({"messageRoutingMode": "any"}, "'any' is not one of roundrobinpartition, singlepartition"),
        ({"hashingScheme": "md5"}, "'md5' is not one of javastringhash, murmur3_32hash"),
        ({"mode": "entry", "hashingScheme": "JavaStringHash"}, "hashingScheme only counts with mode=message"),
        ({"columnStyle": "kafka", "valueSchema": "auto"}, "valueSchema only counts with columnStyle=pulsar"),
    ],
)
def test_options_of_writes_that_cannot_be_used(given, said):
    with pytest.raises(OptionError, match=said):
        parse_write_options({"service.url": "pulsar://x:1", "topic": "t", **given})


def test_names_of_the_java_client_are_taken():
    given = {
        "pulsar.producer.blockIfQueueFull": "true",
        "pulsar.producer.sendTimeoutMs": "5000",
        "pulsar.producer.hashingScheme": "JavaStringHash",
        "pulsar.producer.messageRoutingMode": "RoundRobinPartition",
    }
    options = parse_write_options({"service.url": "pulsar://x:1", "topic": "t", **given})
    assert (options.send_timeout_ms, options.hashing_scheme, options.routing_mode) == (
        5000,
        "java-string",
        "round-robin",
    )

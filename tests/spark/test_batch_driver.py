"""Batches without a JVM: filters that are pushed down, tasks, what the admin API tells."""

import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, LessThan, LessThanOrEqual
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType

from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.spark.options.option import OptionError
from interpulse.spark.reading.narrowing import CLOCK_SLACK_MS
from interpulse.sync import AdminClient, Client
from interpulse.wire import pulsar_api_pb2 as pb
from tests.spark.stream_driver import CheckpointLog, StreamDriver
from tests.spark.test_stream_driver import FAST, Seen, drain
from tests.support.numbered_messages import publish
from tests.support.spark_source import columns_of, planned_reader, read_batch, write_batch

PUSHED = {"filterPushdown": "true"}


def numbers(rows):
    return sorted(int(row["value"]) for row in rows)


def read_topics(options, *filters):
    """The partitions that would be read."""
    _, tasks = planned_reader(options, None, *filters)
    return sorted(int(item.topic[-1]) for ranges in tasks for item in ranges)


def test_filter_on_topic_or_partition_reads_no_other(client, options, topic):
    publish(client, topic, range(100), batching_enabled=False)
    given = {**options, **PUSHED}
    assert read_topics(given) == [0, 1, 2, 3]
    assert read_topics(given, EqualTo(("__topic",), f"{topic}-partition-2")) == [2]
    assert read_topics(given, GreaterThan(("__partition",), 1), LessThan(("__partition",), 3)) == [1, 2, 3]
    assert read_topics({**given, "columnStyle": "kafka"}, EqualTo(("topic",), topic)) == [0, 1, 2, 3]


def test_filter_on_key_reads_the_partitions_it_may_be_in(client, options, topic):
    publish(client, topic, range(100), batching_enabled=False)
    given = {**options, **PUSHED, "keyRouting": "hash"}
    rows = read_batch(given, None, EqualTo(("__key",), b"k3"))
    assert {value for value in range(100) if value % 7 == 3} <= set(numbers(rows))


def test_filter_on_position_reads_these_entries(client, options, topic):
    publish(client, topic, range(100), batching_enabled=False)
    given = {**options, **PUSHED}
    wanted = columns_of(
        value=BinaryType(),
        __partition=IntegerType(),
        __ledgerId=LongType(),
        __entryId=LongType(),
        __messageId=BinaryType(),
    )
    everything = read_batch(given, wanted)
    one = next(row for row in everything if row["__partition"] == 1 and row["__entryId"] == 3)
    ledger = one["__ledgerId"]
    assert [row["value"] for row in read_batch(given, wanted, EqualTo(("__messageId",), one["__messageId"]))] == [
        one["value"]
    ]
    bounds = [EqualTo(("__ledgerId",), ledger), GreaterThan(("__entryId",), 3), LessThanOrEqual(("__entryId",), 6)]
    found = read_batch(given, wanted, *bounds)
    assert sorted(row["__entryId"] for row in found if row["__ledgerId"] == ledger) == [3, 4, 5, 6]
    assert len(found) <= 4


def old_entries(service_url, topic, *ages):
    """Entries that were published some minutes ago, by their producer's clock."""
    entries = columns_of(
        __topic=StringType(),
        __ledgerId=LongType(),
        __entryId=LongType(),
        __metadata=BinaryType(),
        __payload=BinaryType(),
    )
    now = time.time_ns() // 1_000_000
    rows = [
        (
            f"{topic}-partition-0",
            0,
            index,
            pb.MessageMetadata(
                producer_name="p", sequence_id=index, publish_time=now - age * 60_000
            ).SerializeToString(),
            str(age).encode(),
        )
        for index, age in enumerate(ages)
    ]
    write_batch({"service.url": service_url, "mode": "entry"}, entries, *rows)


def test_filter_on_time_reads_what_clocks_may_have_put_there(broker, options, topic):
    old_entries(broker.service_url, topic, 60, 40, 33, 20, 1)
    now = datetime.now(UTC)
    given = {**options, **PUSHED}
    since = GreaterThan(("__publishTime",), now - timedelta(minutes=30))
    assert numbers(read_batch(given, None, since)) == [1, 20, 33]
    until = LessThan(("__publishTime",), now - timedelta(minutes=36))
    assert numbers(read_batch(given, None, until)) == [33, 40, 60]
    assert CLOCK_SLACK_MS == 300_000


@pytest.mark.parametrize("planner", ["binary", "admin", "auto"])
def test_partitions_are_split_and_everything_is_read_once(broker, client, options, topic, planner):
    publish(client, topic, range(400), batching_enabled=False)
    given = {**options, "planner": planner, "admin.url": broker.web_url}
    assert len(planned_reader({**given, "minPartitions": "12"})[1]) >= 10
    rows = read_batch({**given, "minPartitions": "12"})
    assert numbers(rows) == list(range(400))
    assert len(planned_reader({**given, "maxEntriesPerPartition": "10"})[1]) >= 40
    assert len(planned_reader({**given, "maxEntriesPerPartition": "10", "maxPartitions": "5"})[1]) == 5
    assert len(planned_reader({**given, "maxBytesPerPartition": "2k"})[1]) > 4
    assert len(planned_reader(given)[1]) == 4


def test_admin_api_that_does_not_answer_is_needed_by_planner_admin_alone(client, options, topic, caplog):
    publish(client, topic, range(10))
    dead = {**options, "admin.url": "http://127.0.0.1:1", "minPartitions": "8", "operationTimeoutMs": "2s"}
    assert numbers(read_batch(dead)) == list(range(10))
    assert "the admin API does not tell how large topics are" in caplog.text
    with pytest.raises(PulsarError):
        read_batch({**dead, "planner": "admin"})


def test_pattern_over_several_namespaces(broker, client, topic):
    base = {"service.url": broker.service_url, "topicsPattern": ".*/both-.*"}
    for name in ("public/east", "public/west"):
        with AdminClient(broker.web_url) as admin:
            admin.namespaces.create(name)
        publish(client, f"persistent://{name}/both-{name[-4:]}", range(5))
    rows = read_batch({**base, "namespaces": "public/east, public/west"})
    assert numbers(rows) == sorted([*range(5), *range(5)])
    with pytest.raises(OptionError, match="list them with namespaces"):
        read_batch(base)


def test_stream_waits_for_a_topic_that_does_not_exist_yet(broker, client, options, topic):
    later = f"{topic}-later"
    log, seen = CheckpointLog(), Seen()
    given = {**options, **FAST, "topics": f"{topic},{later}", "waitingForNonExistedTopic": "true"}
    del given["topic"]
    driver = StreamDriver(given, log, seen)
    drain(driver)
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(later), 2))
    publish(client, later, range(10))
    publish(client, topic, range(10, 20))
    drain(driver)
    assert sorted(seen.values) == list(range(20))
    with pytest.raises(PulsarError):
        StreamDriver({**given, "topics": f"{topic}-never", "waitingForNonExistedTopic": "false"}, log, seen)


def test_stream_splits_partitions_where_order_may_go(client, options, topic):
    log, seen = CheckpointLog(), Seen()
    given = {**options, **FAST, "startingOffsets": "earliest", "preserveOrder": "false", "minPartitions": "12"}
    publish(client, topic, range(200), batching_enabled=False)
    driver = StreamDriver(given, log, seen)
    drain(driver)
    assert sorted(seen.values) == list(range(200))
    last = json.loads(log.offsets[max(log.offsets)])
    assert len(driver.reader.partitions({"n": 16, "o": {}, "v": 1}, last)) > 8


def test_stream_waits_until_enough_bytes_are_there(client, options, topic):
    log, seen = CheckpointLog(), Seen()
    driver = StreamDriver({**options, **FAST, "minBytesPerTrigger": "20k"}, log, seen)
    drain(driver)
    publish(client, topic, [7] * 10, batching_enabled=False)
    drain(driver)
    assert seen.values == []
    with Client(options["service.url"]) as other, other.create_producer(topic, batching_enabled=False) as producer:
        for value in range(40):
            producer.send(f"{value:01000d}".encode())
    drain(driver)
    assert len(seen.values) == 50

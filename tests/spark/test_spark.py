"""The data source in a local Spark."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from interpulse.spark import register
from interpulse.spark.processes.workers import WORKER_DAEMON
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS
from interpulse.spark.session import starting_a_query
from interpulse.sync import Client
from tests.support.numbered_messages import publish

# Every read and write starts interpreters; one that is given up for its time takes the session of all others along.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def values_of(frame):
    return sorted(int(row.value) for row in frame.select("value").collect())


def test_batch_read_has_the_columns_people_know(spark, client, options, topic):
    publish(client, topic, range(50))
    publish(client, topic, range(50, 60), batching_enabled=False)
    frame = spark.read.format("pulsar").options(**options).load()
    assert frame.columns == [
        "value",
        "__key",
        "__topic",
        "__messageId",
        "__publishTime",
        "__eventTime",
        "__messageProperties",
    ]
    assert values_of(frame) == list(range(60))
    row = frame.where("cast(value as string) = '55'").collect()[0]
    assert row["__key"] == b"k6"
    assert row["__messageProperties"] == {"n": "55"}
    assert row["__eventTime"].timestamp() == 1.055


def test_batch_read_of_named_columns_reads_no_others(spark, client, options, topic):
    publish(client, topic, range(5))
    frame = spark.read.format("pulsar").options(**options).option("includeColumns", "__PARTITION,__batchIndex").load()
    assert frame.columns == ["value", "__partition", "__batchIndex"]
    assert values_of(frame) == list(range(5))


def test_batch_read_with_a_schema_of_the_user(spark, client, options, topic):
    publish(client, topic, range(5))
    frame = spark.read.format("pulsar").schema("__key BINARY, value BINARY").options(**options).load()
    assert frame.columns == ["__key", "value"]
    assert values_of(frame) == list(range(5))


def test_source_registered_by_hand_has_a_name_of_its_own_too(spark, client, options, topic):
    publish(client, topic, range(3))
    register(spark)
    assert [values_of(spark.read.format(name).options(**options).load()) for name in ("interpulse", "pulsar")] == [
        [0, 1, 2],
        [0, 1, 2],
    ]


def test_batch_read_from_a_position_to_a_position(spark, client, options, topic):
    publish(client, topic, range(100), batching_enabled=False)
    partition = f"{topic}-partition-0"
    entries = spark.read.format("pulsar").options(**options).option("mode", "entry").load()
    ledger = entries.where(f"__topic = '{partition}'").first()["__ledgerId"]
    part = (
        spark.read.format("pulsar")
        .options(**{**options, "topic": partition})
        .option("startingOffsets", f'{{"{partition}": "{ledger}:2"}}')
        .option("endingOffsets", f'{{"{partition}": "{ledger}:4"}}')
        .load()
    )
    assert part.count() == 3


def test_unknown_option_is_refused_with_the_nearest_name(spark, options):
    with pytest.raises(Exception, match="did you mean startingOffsets"):
        spark.read.format("pulsar").options(**options).option("startOffsets", "earliest").load()


def test_absent_topic_is_an_error_and_is_not_created(spark, broker, options):
    absent = "persistent://public/default/absent"
    with pytest.raises(Exception, match="TopicNotFound"):
        spark.read.format("pulsar").options(**{**options, "topic": absent}).load().count()
    with Client(broker.service_url) as client, pytest.raises(Exception, match="absent"):
        client.get_partitions_for_topic(absent, create=False)


@pytest.mark.slow
def test_stream_reads_what_is_there_now_and_goes_on_after_a_restart(spark, client, options, topic, tmp_path):
    seen = []

    def run():
        rows = spark.readStream.format("pulsar").options(**options).option("startingOffsets", "earliest")
        rows = rows.option("maxEntriesPerTrigger", "7").load()

        def take(frame, batch):
            seen.extend(values_of(frame))

        query = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    publish(client, topic, range(30), batching_enabled=False)
    run()
    assert sorted(seen) == list(range(30))
    publish(client, topic, range(30, 40))
    run()
    assert sorted(seen) == list(range(40))


def test_stream_that_runs_once_on_a_new_checkpoint_reads_what_is_there(spark, client, options, topic, tmp_path):
    publish(client, topic, range(20))
    seen = []
    rows = spark.readStream.format("pulsar").options(**options).option("startingOffsets", "earliest")
    query = rows.load().writeStream.foreachBatch(lambda frame, batch: seen.extend(values_of(frame)))
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(once=True)
    query.start().awaitTermination()
    assert sorted(seen) == list(range(20))
    publish(client, topic, range(20, 30))
    query.start().awaitTermination()
    assert sorted(seen) == list(range(30))


def test_batch_write_publishes_keys_properties_and_times(spark, client, options, topic):
    rows = spark.sql(
        "select cast(id as string) value, concat('k', id % 3) __key, timestamp_millis(5000 + id) __eventTime, "
        "map('n', cast(id as string)) __messageProperties from range(100)"
    )
    rows.write.format("pulsar").options(**options).mode("append").save()
    back = spark.read.format("pulsar").options(**options).load()
    assert values_of(back) == list(range(100))
    row = back.where("cast(value as string) = '7'").collect()[0]
    assert (row["__key"], row["__messageProperties"]) == (b"k1", {"n": "7"})
    assert row["__eventTime"].timestamp() == 5.007
    partitions = back.groupBy("__key").agg({"__topic": "collect_set"}).collect()
    assert all(len(row[1]) == 1 for row in partitions)


def test_overwriting_is_refused(spark, options):
    with pytest.raises(Exception, match="append"):
        spark.range(1).selectExpr("cast(id as string) value").write.format("pulsar").options(**options).mode(
            "overwrite"
        ).save()


def test_entries_are_copied_as_they_are(spark, broker, client, options, topic):
    publish(client, topic, range(100))
    target = f"{topic}-restored"
    broker.call(lambda app: app.lifecycle.create_partitioned(_name(target), 4))
    entries = spark.read.format("pulsar").options(**options).option("mode", "entry").load()
    renamed = entries.selectExpr(
        f"replace(__topic, '{topic}', '{target}') __topic", "__ledgerId", "__entryId", "__metadata", "__payload"
    )
    writer = renamed.write.format("pulsar").option("service.url", broker.service_url)
    writer.option("mode", "entry").mode("append").save()
    assert values_of(spark.read.format("pulsar").options(**{**options, "topic": target}).load()) == list(range(100))


@pytest.mark.slow
def test_stream_write_exactly_once_continues_from_its_checkpoint(spark, broker, client, options, topic, tmp_path):
    target = f"{topic}-copy"
    broker.call(lambda app: app.lifecycle.create_partitioned(_name(target), 4))

    def run():
        rows = spark.readStream.format("pulsar").options(**options).option("startingOffsets", "earliest")
        rows = rows.option("mode", "entry").option("includeColumns", ",".join(ENTRY_WRITE_COLUMNS)).load()
        rows = rows.selectExpr(f"replace(__topic, '{topic}', '{target}') __topic", *ENTRY_WRITE_COLUMNS[1:])
        writer = rows.writeStream.format("pulsar").option("service.url", broker.service_url).option("mode", "entry")
        writer = writer.option("deliveryGuarantee", "exactly-once").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    publish(client, topic, range(50))
    run()
    publish(client, topic, range(50, 100), batching_enabled=False)
    run()
    assert values_of(spark.read.format("pulsar").options(**{**options, "topic": target}).load()) == list(range(100))


def _name(text):
    from interpulse.model.names import TopicName

    return TopicName.parse(text)


@pytest.mark.slow
def test_thread_that_did_not_begin_the_session_writes_once_it_is_active_there(spark, options, topic):
    frame = spark.range(3).selectExpr("cast(id as string) as value")

    def write():
        frame.write.format("pulsar").options(**options).mode("append").save()

    def write_as_one_query():
        with starting_a_query(spark):
            write()

    with ThreadPoolExecutor(1) as thread:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            thread.submit(write).result()
        thread.submit(write_as_one_query).result()
    assert values_of(spark.read.format("pulsar").options(**options).load()) == [0, 1, 2]


def test_queries_share_no_environment(spark):
    """Spark changes the one it was given without a lock; two streams that began together broke it for good."""
    jvm, manager = spark.sparkContext._jvm, spark._jsparkSession.sessionState().dataSourceManager()

    def environment():
        with starting_a_query(spark):
            return manager.lookupDataSource("pulsar").dataSourceCls().envVars()

    with ThreadPoolExecutor(4) as threads:
        found = [each.result() for each in [threads.submit(environment) for _ in range(4)]]
    assert len({jvm.System.identityHashCode(each) for each in found}) == 4


def test_workers_that_the_daemon_forks_are_known_by_its_name(spark):
    """Between two tasks the daemon looks for garbage in its workers; ``workers.py`` cuts that short there alone."""

    def name_of_main(batches):
        import sys

        import pyarrow as pa

        spec = sys.modules["__main__"].__spec__
        yield from (pa.RecordBatch.from_pydict({"name": [spec and spec.name]}) for _ in batches)

    rows = spark.range(1).mapInArrow(name_of_main, "name string").collect()
    assert {row.name for row in rows} == {WORKER_DAEMON}

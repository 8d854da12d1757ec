"""A cluster that is away while a query runs, without a JVM: the query waits, tells, and goes on by itself."""

import logging
import threading
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType

from interpulse.model.errors import NotConnected, OperationTimeout, PersistenceError
from interpulse.model.names import TopicName
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.spark.stream_driver import CheckpointLog, StreamDriver, StreamSink
from tests.support.numbered_messages import publish_to
from tests.support.spark_source import columns_of, source_of
from tests.support.waiting import until

TOPIC, COPY = "persistent://public/default/lasting", "persistent://public/default/lasting-copy"
SETTINGS = {
    "brokerDeduplicationEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "retentionCheckIntervalInSeconds": "3600",
}


@pytest.fixture
def cluster(tmp_path):
    """A broker of the test's own, with a hundred messages in a topic."""
    with InProcessBroker(tmp_path / "broker", SETTINGS) as cluster:
        for topic in (TOPIC, COPY):
            create(cluster, TopicName.parse(topic))
        publish_to(cluster.service_url, TOPIC, range(100), batching_enabled=False)
        yield cluster


def create(cluster, name):
    cluster.call(lambda app: app.lifecycle.create_partitioned(name, 2))


def values_of(cluster, topic):
    with Client(cluster.service_url) as client:
        found = []
        for name in client.get_partitions_for_topic(topic, create=False):
            with client.create_reader(name) as reader:
                while reader.has_message_available():
                    found.append(int(reader.read_next(60_000).content or b""))
    return found


def options(cluster, **more):
    return {"service.url": cluster.service_url, "topic": TOPIC, "operationTimeoutMs": "5000", **more}


class Absence:
    """The cluster is away from now on, until the query has noticed."""

    def __init__(self, cluster, caplog):
        cluster.stop()
        self._back = threading.Thread(target=self._return, args=(cluster, caplog))
        self._back.start()

    def _return(self, cluster, caplog):
        until(
            lambda: any(
                "cannot reconnect yet" in each.getMessage() or "waiting for it" in each.getMessage()
                for each in list(caplog.records)
            )
        )
        cluster.restart()

    def over(self):
        self._back.join()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "interpulse.client")
    return caplog


@pytest.fixture
def impatient(monkeypatch):
    """An outage is told at once."""
    monkeypatch.setattr("interpulse.client.outages._LOGGED_AFTER_S", 0.0)


def test_batch_read_goes_on_when_the_cluster_is_back(cluster, told):
    given = options(cluster, arrowBatchRows="5", fetchBufferBytes="64k", maxPartitions="1", rangeConcurrency="1")
    padded = "{:1000}"  # more bytes than the reader fetches ahead, however long the first row is looked at
    for begin in range(100, 6_000, 500):  # so many may be without receipt
        numbers = range(begin, min(begin + 500, 6_000))
        publish_to(cluster.service_url, TOPIC, numbers, text=padded, batching_enabled=False)
    source = source_of(given)
    reader = source.reader(schema=source.schema())
    (task,) = reader.partitions()
    rows = reader.read(task)
    first = next(rows)
    absence = Absence(cluster, told)
    values = [int(value) for batch in (first, *rows) for value in batch.column("value").to_pylist()]
    absence.over()
    assert sorted(values) == list(range(6_000))


def test_batch_read_that_begins_while_the_cluster_is_away_waits_for_it(cluster, told, impatient):
    source = source_of(options(cluster))
    reader = source.reader(schema=source.schema())
    tasks = reader.partitions()
    absence = Absence(cluster, told)
    batches = [batch for task in tasks for batch in reader.read(task) if isinstance(batch, pa.RecordBatch)]
    values = [int(value) for batch in batches for value in batch.column("value").to_pylist()]
    absence.over()
    assert sorted(values) == list(range(100))
    waited = [record for record in told.records if "waiting for it" in record.getMessage()]
    assert waited
    assert waited[0].levelno == logging.WARNING
    assert f"place={cluster.service_url}" in waited[0].getMessage()


def test_read_ends_when_the_outage_is_longer_than_is_waited(cluster):
    source = source_of(options(cluster, outageTimeoutMs="1500"))
    reader = source.reader(schema=source.schema())
    tasks = reader.partitions()
    cluster.stop()
    with pytest.raises((NotConnected, OperationTimeout)):
        list(reader.read(tasks[0]))
    cluster.restart()


def test_stream_that_copies_exactly_once_goes_on_when_the_cluster_is_back(cluster, told, impatient, tmp_path):
    writing = {
        "service.url": cluster.service_url,
        "topic": COPY,
        "operationTimeoutMs": "5000",
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": str(tmp_path),
    }
    absences: list[Any] = []

    def change(rows):
        """Away at the first row: the first half of a chunk is sent afterwards."""
        if not absences and rows.num_rows:
            absences.append(Absence(cluster, told))
        return rows.select(["value", "__key"])

    sink = StreamSink(writing, columns_of(value=BinaryType(), __key=BinaryType()), query_id="q", change=change)
    given = options(cluster, startingOffsets="earliest", offsetPollIntervalMs="1")
    driver = StreamDriver(given, CheckpointLog(), sink)
    drain(driver)
    for absence in absences:
        absence.over()
    assert absences
    assert f"failed and healed within a task place={cluster.service_url}" in told.text
    assert sorted(values_of(cluster, COPY)) == list(range(100))
    cluster.stop()
    for _ in range(3):
        assert not driver.run_batch(), "a source that is away is no news"
    waiting = until(lambda: (driver.run_batch(), driver.reader.reportLatestOffset().get("waiting"))[1])
    assert waiting["remedy"].startswith("start the cluster")
    cluster.restart()
    publish_to(cluster.service_url, TOPIC, range(100, 150), batching_enabled=False)
    until(lambda: (driver.run_batch(), len(values_of(cluster, COPY)) >= 150)[1])
    assert sorted(values_of(cluster, COPY)) == list(range(150))


@pytest.mark.parametrize("trouble", ["unload", "cut", "restart"])
def test_stream_loses_and_repeats_nothing_when_its_connections_go(cluster, tmp_path, trouble):
    """In the middle of a micro-batch, for reading and writing at once, and again between two of them."""
    writing = {"service.url": cluster.service_url, "topic": COPY, "deliveryGuarantee": "exactly-once"}
    troubles = []

    def make():
        troubles.append(trouble)
        if trouble == "restart":
            cluster.stop()
            cluster.restart()
        elif trouble == "cut":
            assert cluster.faults.drop_connections() > 0
        else:
            for topic in (TOPIC, COPY):
                cluster.call(lambda app, topic=topic: app.registry.unload(TopicName.parse(topic).partition(0)))

    def change(rows):
        if not troubles and rows.num_rows:
            make()
        return rows.select(["value", "__key"])

    schema = columns_of(value=BinaryType(), __key=BinaryType())
    sink = StreamSink({**writing, "checkpointLocation": str(tmp_path)}, schema, query_id="q", change=change)
    given = options(cluster, startingOffsets="earliest", offsetPollIntervalMs="1", operationTimeoutMs="10000")
    driver = StreamDriver(given, CheckpointLog(), sink)
    drain(driver)
    make()
    publish_to(cluster.service_url, TOPIC, range(100, 150), batching_enabled=False)
    until(lambda: (driver.run_batch(), len(values_of(cluster, COPY)) >= 150)[1])
    assert len(troubles) == 2
    assert sorted(values_of(cluster, COPY)) == list(range(150))


def test_stream_to_a_cluster_whose_disk_is_full_goes_on_when_there_is_room(cluster, told, impatient, tmp_path):
    """What is on its way when the disk gets full fails its task; the next attempt waits for room."""
    writing = {"service.url": cluster.service_url, "topic": COPY, "deliveryGuarantee": "exactly-once"}
    rooms: list[Any] = []

    def change(rows):
        if not rooms and rows.num_rows:
            full = cluster.faults.disk_full()
            rooms.append(threading.Thread(target=make_room, args=(full,)))
        return rows.select(["value", "__key"])

    def make_room(full):
        until(lambda: any("out of room" in each.getMessage() for each in list(told.records)))
        full.end()

    schema = columns_of(value=BinaryType(), __key=BinaryType())
    sink = StreamSink({**writing, "checkpointLocation": str(tmp_path)}, schema, query_id="q", change=change)
    given, log = options(cluster, startingOffsets="earliest"), CheckpointLog()
    with pytest.raises(PersistenceError, match="no room left"):
        drain(StreamDriver(given, log, sink))
    rooms[0].start()
    drain(StreamDriver(given, log, sink))
    rooms[0].join()
    assert sorted(values_of(cluster, COPY)) == list(range(100))


def drain(driver):
    while driver.run_batch():
        continue

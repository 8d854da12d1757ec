"""Streams without a JVM: restarts at every step, growth, limits."""

import time

import pytest

from interpulse.client.transport.connection import Connection
from interpulse.model.errors import DataLoss
from interpulse.model.names import TopicName
from interpulse.spark.reading import planner, source_view
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing.sink import write_rows
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.sync import AdminClient
from tests.scenarios.client import Cluster
from tests.scenarios.spark_ends import (
    LIMITS,
    checkpoint_beyond_the_end_of_a_ledger_goes_on,
    compacted_reads_end_where_compaction_left_the_topic,
    limited_stream_reads_all_ledgers,
    loss_is_reported_at_the_start,
)
from tests.scenarios.spark_losses import LOSSES, assert_loss_is_told, trimmed_ledger_of_read_entries_is_no_loss
from tests.scenarios.spark_times import read_between_times
from tests.spark.stream_driver import CheckpointLog, Killed, StreamDriver
from tests.support.numbered_messages import publish
from tests.support.spark_source import read_batch
from tests.support.waiting import until

FAST = {"offsetPollIntervalMs": "1", "partitionDiscoveryIntervalMs": "1"}


def values_of(chunks):
    return [int(value) for chunk in chunks for value in chunk.column("value").to_pylist()]


class Seen(list):
    """A sink at least once: replaces what a replayed batch had delivered."""

    def __init__(self):
        self.batches = {}

    def __call__(self, batch, tasks):
        self.batches[batch] = [value for chunks in tasks for value in values_of(chunks)]

    @property
    def values(self):
        return [value for batch in sorted(self.batches) for value in self.batches[batch]]


def drain(driver):
    """Run until two batches had nothing to do: discovery and positions are cached for a millisecond."""
    idle = 0
    while idle < 2:
        idle = 0 if driver.run_batch() else idle + 1
        time.sleep(0.002)


@pytest.mark.parametrize("kill_at", ["initial", "planned", "read", "written"])
def test_stream_when_killed_at_any_step_then_reads_everything_once(client, options, topic, kill_at):
    publish(client, topic, range(100))
    log, seen = CheckpointLog(), Seen()
    given = {**options, **FAST, "startingOffsets": "earliest", "maxEntriesPerTrigger": "30"}
    with pytest.raises(Killed):
        drain(StreamDriver(given, log, seen, kill_at=kill_at))
    drain(StreamDriver(given, log, seen))
    assert sorted(seen.values) == list(range(100))


def test_stream_from_latest_when_killed_before_the_anchor_then_starts_at_the_next_latest(client, options, topic):
    log, seen = CheckpointLog(), Seen()
    drain(StreamDriver({**options, **FAST}, log, seen))
    publish(client, topic, range(10))
    drain(StreamDriver({**options, **FAST}, log, seen))
    assert sorted(seen.values) == list(range(10))


def test_stream_when_a_topic_grows_then_reads_the_new_partitions(broker, client, options, topic):
    log, seen = CheckpointLog(), Seen()
    driver = StreamDriver({**options, **FAST, "startingOffsets": "earliest"}, log, seen)
    publish(client, topic, range(20))
    drain(driver)
    broker.call(lambda app: app.lifecycle.expand(TopicName.parse(topic), 6))
    publish(client, topic, range(20, 60))
    drain(driver)
    assert sorted(seen.values) == list(range(60))


def test_stream_with_a_subscription_moves_it_behind_the_stream(broker, client, options, topic):
    log, seen = CheckpointLog(), Seen()
    given = {**options, **FAST, "startingOffsets": "earliest", "predefinedSubscription": "spark"}
    driver = StreamDriver(given, log, seen)
    publish(client, topic, range(20))

    async def backlogs(app):
        topics = [app.registry.get(TopicName.parse(topic).partition(index)) for index in range(4)]
        return [topic.stats()["subscriptions"]["spark"]["msgBacklog"] for topic in topics]

    drain(driver)
    deadline = time.monotonic() + 60
    while broker.call(backlogs) != [0, 0, 0, 0]:  # the subscription is advanced once a second
        assert time.monotonic() < deadline, broker.call(backlogs)
        drain(driver)


def lane_options(broker, state_path):
    return parse_write_options(
        {
            "service.url": broker.service_url,
            "admin.url": broker.web_url,
            "mode": "entry",
            "deliveryGuarantee": "exactly-once",
            "producerName": "lane",
            "replicatedFrom": "east",
            "targetCluster": "west",
            "statePath": str(state_path),
        }
    )


class LaneSink:
    """What the stream writer does, without Spark; every row goes to ``-copy`` of its topic."""

    def __init__(self, broker, state_path, topic):
        self.options = lane_options(broker, state_path)
        self.files = LaneFiles(str(state_path))
        self.topic = topic
        self.killed_once = False
        self.kill_after_write = False

    def __call__(self, batch, tasks):
        renamed = [self.renamed(chunk) for chunks in tasks for chunk in chunks]
        _, states = self.files.newest(below=batch)
        written = write_rows(self.options, iter(renamed), states)
        if self.kill_after_write and not self.killed_once and written:
            self.killed_once = True
            raise Killed("after the last receipt")
        self.files.commit(batch, {each.topic: each.state for each in written if each.is_recorded})

    def renamed(self, chunk):
        import pyarrow as pa

        names = [name.replace(self.topic, f"{self.topic}-copy") for name in chunk.column("__topic").to_pylist()]
        return chunk.set_column(0, "__topic", pa.array(names))


@pytest.mark.parametrize("kill_at", ["planned", "read", "written", "after-write"])
def test_copy_when_killed_at_any_step_then_holds_everything_exactly_once(
    broker, client, options, topic, tmp_path, kill_at
):
    copy = f"{topic}-copy"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(copy), 4))
    publish(client, topic, range(200), batching_enabled=False)
    publish(client, topic, range(200, 400))
    given = {
        **options,
        **FAST,
        "startingOffsets": "earliest",
        "mode": "entry",
        "includeColumns": ",".join(ENTRY_WRITE_COLUMNS),
        "maxEntriesPerTrigger": "90",
    }
    log, sink = CheckpointLog(), LaneSink(broker, tmp_path, topic)
    sink.kill_after_write = kill_at == "after-write"
    with pytest.raises(Killed):
        drain(StreamDriver(given, log, sink, kill_at=kill_at))
    drain(StreamDriver(given, log, sink))
    copied = read_all(client, copy)
    assert sorted(copied) == list(range(400))
    for remainder in range(7):
        keyed = [value for value in copied if value % 7 == remainder]
        assert keyed == sorted(keyed)


def read_all(client, topic):
    found = []
    for index in range(4):
        with client.create_reader(f"{topic}-partition-{index}") as reader:
            while reader.has_message_available():
                found.append(int(reader.read_next(60_000).content))
    return found


@pytest.mark.parametrize("loss", LOSSES)
def test_entries_that_are_deleted_before_they_are_read_are_told(broker, loss, caplog):
    assert_loss_is_told(loss, Cluster(broker.service_url, broker.web_url), caplog)


def test_trimmed_ledger_of_read_entries_is_no_loss(broker):
    trimmed_ledger_of_read_entries_is_no_loss(Cluster(broker.service_url, broker.web_url))


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_limited_stream_reads_all_ledgers(broker, limit):
    limited_stream_reads_all_ledgers(Cluster(broker.service_url, broker.web_url), limit)


def test_checkpoint_beyond_the_end_of_a_ledger_goes_on(broker):
    checkpoint_beyond_the_end_of_a_ledger_goes_on(Cluster(broker.service_url, broker.web_url))


def test_compacted_reads_end_where_compaction_left_the_topic(broker):
    compacted_reads_end_where_compaction_left_the_topic(Cluster(broker.service_url, broker.web_url))


def test_loss_before_a_restart_is_reported_at_the_start(broker, caplog):
    cluster = Cluster(broker.service_url, broker.web_url)
    with pytest.raises(DataLoss, match=r"2 or more entries behind .* are gone, none is there.*failOnDataLoss=false"):
        loss_is_reported_at_the_start(cluster)
    loss_is_reported_at_the_start(cluster, lenient=True)
    assert len([record for record in caplog.records if record.message.startswith("data loss reason=")]) == 1
    loss_is_reported_at_the_start(cluster, read=6)


async def test_batch_read_between_times(broker):
    await read_between_times(Cluster(broker.service_url, broker.web_url))


def test_stream_from_a_time_reads_what_was_published_since(client, options, topic):
    publish(client, topic, range(5))
    seen = Seen()
    drain(StreamDriver({**options, **FAST, "startingTime": "1000"}, CheckpointLog(), seen))
    assert sorted(seen.values) == list(range(5))


def test_batch_read_of_assigned_partitions(client, options, topic):
    publish(client, topic, range(40))
    parts = [
        read_batch({"service.url": options["service.url"], "assign": f'{{"{topic}": [{index}]}}'}) for index in (0, 3)
    ]
    named = [{row["__topic"] for row in rows} for rows in parts]
    assert named == [{f"{topic}-partition-0"}, {f"{topic}-partition-3"}]


def test_batch_read_of_what_is_compacted(broker, client, options):
    topic = "persistent://public/default/compacted"
    publish(client, topic, range(20))
    with AdminClient(broker.web_url) as admin:
        admin.topics.compact(topic)
        until(lambda: admin.topics.compaction_status(topic)["status"] == "SUCCESS")
    rows = read_batch({"service.url": options["service.url"], "topic": topic, "readCompacted": "true"})
    assert sorted(int(row["value"]) for row in rows) == list(range(13, 20))


def test_reads_that_start_and_end_inside_a_batch(client, options):
    topic = "persistent://public/default/inside-a-batch"
    publish(client, topic, range(5))
    given = {"service.url": options["service.url"], "topic": topic}
    first = read_batch({**given, "includeColumns": "__ledgerId,__entryId"})[0]
    place = f"{first['__ledgerId']}:{first['__entryId']}"

    def point(index):
        return f'{{"{topic}": "{place}:{index}"}}'

    rows = read_batch({**given, "startingOffsets": point(1), "endingOffsets": point(3)})
    assert [int(row["value"]) for row in rows] == [1, 2, 3]
    seen = Seen()
    drain(StreamDriver({**given, **FAST, "startingOffsets": point(3)}, CheckpointLog(), seen))
    assert seen.values == [3, 4]


@pytest.mark.parametrize(("first", "then", "expected"), [(None, 4, range(10)), (4, None, range(4, 10))])
def test_checkpoint_says_alone_where_in_a_batch_a_stream_starts(client, options, first, then, expected):
    """The stream is stopped after its empty first batch, and its options are changed."""
    topic = f"persistent://public/default/start-in-a-batch-{first}"
    publish(client, topic, range(10))
    given = {"service.url": options["service.url"], "topic": topic}
    row = read_batch({**given, "includeColumns": "__ledgerId,__entryId"})[0]
    place = f"{row['__ledgerId']}:{row['__entryId']}"
    given |= FAST

    def starting(index):
        return {"startingOffsets": "earliest" if index is None else f'{{"{topic}": "{place}:{index}"}}'}

    log, seen = CheckpointLog(), Seen()
    StreamDriver({**given, **starting(first)}, log, seen).run_batch()
    drain(StreamDriver({**given, **starting(then)}, log, seen))
    assert seen.values == list(expected)


@pytest.mark.parametrize("kill_at", ["", "initial", "planned", "read", "written"])
def test_stream_that_runs_once_reads_what_is_there_and_the_next_run_what_came(client, options, topic, kill_at):
    publish(client, topic, range(40))
    log, seen = CheckpointLog(), Seen()
    given = {**options, **FAST, "startingOffsets": "earliest", "maxEntriesPerTrigger": "1"}
    if kill_at:
        with pytest.raises(Killed):
            StreamDriver(given, log, seen, once=True, kill_at=kill_at).run_batch()
    publish(client, topic, range(40, 50))
    StreamDriver(given, log, seen, once=True).run_batch()
    replayed = kill_at in ("planned", "read", "written")
    assert sorted(seen.values) == list(range(40 if replayed else 50))
    publish(client, topic, range(50, 60))
    StreamDriver(given, log, seen, once=True).run_batch()
    assert sorted(seen.values) == list(range(60))


def test_topic_that_is_taken_out_of_the_list_and_named_again_goes_on_at_its_place(client, options):
    base = "persistent://public/default/named-again"
    names = [f"{base}-{letter}" for letter in "ab"]
    given = {"service.url": options["service.url"], **FAST, "startingOffsets": "earliest"}
    log, seen = CheckpointLog(), Seen()
    for number, listed in enumerate([names, names[:1], names]):
        for name in names:
            publish(client, name, [10 * number + names.index(name)])
        drain(StreamDriver({**given, "topics": ",".join(listed)}, log, seen))
    assert sorted(seen.values) == [0, 1, 10, 11, 20, 21]


@pytest.fixture
def requests(monkeypatch):
    """How many were made."""
    made = []
    original = Connection.request

    def request(connection, *given, **options):
        made.append(given)
        return original(connection, *given, **options)

    monkeypatch.setattr(Connection, "request", request)
    return made


@pytest.mark.parametrize("kind", ["passing", "durable"])
@pytest.mark.parametrize("how", ["published", "disconnected"])
def test_idle_partitions_of_many_are_not_asked_and_what_comes_is_noticed(
    broker, client, options, topic, monkeypatch, requests, how, kind
):
    monkeypatch.setattr(source_view, "MANY_TOPICS", 4)
    monkeypatch.setattr(planner, "MANY_TOPICS", 4)
    log, seen = CheckpointLog(), Seen()
    given = {**options, "offsetPollIntervalMs": "1", "partitionDiscoveryIntervalMs": "0", "startingOffsets": "earliest"}
    if kind == "durable":
        given["predefinedSubscription"] = "stream"
    driver = StreamDriver(given, log, seen)
    publish(client, topic, range(20))
    drain(driver)

    def asked_in(polls):
        before = len(requests)
        for _ in range(polls):
            driver.run_batch()
        return len(requests) - before

    until(lambda: asked_in(50) == 0)
    if how == "disconnected":
        with AdminClient(broker.web_url) as admin:
            for index in range(4):
                admin.topics.unload(f"{topic}-partition-{index}")
        until(lambda: asked_in(50) > 0)
    publish(client, topic, range(20, 40))
    until(lambda: driver.run_batch() or len(seen.values) == 40)
    drain(driver)
    assert sorted(seen.values) == list(range(40))
    until(lambda: asked_in(50) == 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_partitions_in_one_query(broker, client, options):
    topic = TopicName.parse("persistent://public/default/ten-thousand")
    with AdminClient(broker.web_url) as admin:
        admin.topics.create_partitioned(str(topic), 10_000)
    log, seen = CheckpointLog(), Seen()
    driver = StreamDriver({**options, "topic": str(topic), "operationTimeoutMs": "120000"}, log, seen)
    driver.run_batch()
    for index in range(0, 10_000, 500):
        with client.create_producer(str(topic.partition(index))) as producer:
            producer.send(str(index).encode())
    tasks = []
    plan = driver.reader.partitions

    def noted(start, end):
        tasks.append(plan(start, end))
        return tasks[-1]

    driver.reader.partitions = noted
    until(lambda: driver.run_batch() and len(seen.values) == 20, seconds=400)
    assert sorted(seen.values) == list(range(0, 10_000, 500))
    assert max(len(each) for each in tasks) <= 16

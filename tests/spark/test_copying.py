"""Tasks that copy from broker to broker, without a JVM: killed at every step, refused topics, damaged ranges."""

import asyncio
import json
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from interpulse.client import DefaultCryptoKeyReader
from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.model.errors import ChecksumError, CryptoError, NotConnected
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.replication.position_runs import PositionRuns
from interpulse.spark.copying.copy_reader import ReportCommit
from interpulse.spark.copying.copy_source import CopyDataSource, copy_options
from interpulse.spark.job.rebuilt_runs import rebuild_runs
from interpulse.spark.options.option import OptionError
from interpulse.spark.reading import fetch
from interpulse.spark.state_files import LaneFiles
from interpulse.spark.writing.broker_target import last_position
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.stamps import source_positions
from tests.spark.replication_job import wait_until
from tests.spark.stream_driver import CheckpointLog, Killed, StreamDriver
from tests.spark.test_stream_driver import drain, read_all
from tests.support.encryption_keys import new_keys
from tests.support.numbered_messages import publish
from tests.support.spark_source import read_batch


@pytest.fixture(scope="module")
def west(tmp_path_factory):
    settings = {
        "clusterName": "west",
        "brokerDeduplicationEnabled": "true",
        "brokerDeleteInactiveTopicsEnabled": "false",
        "allowAutoTopicCreation": "false",
    }
    with InProcessBroker(tmp_path_factory.mktemp("west"), settings) as west:
        yield west


@pytest.fixture
def there(west, topic):
    """A client of west, where the topic is as well."""
    west.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(topic), 4))
    with Client(west.service_url) as client:
        yield client


class Copy:
    """One query: its options, and the sink of its reports."""

    def __init__(self, broker, west, state_path, **source):
        target = {
            "service.url": west.service_url,
            "mode": "entry",
            "deliveryGuarantee": "exactly-once",
            "producerName": "lane",
            "replicatedFrom": "east",
            "targetCluster": "west",
            "statePath": str(state_path),
            "assumeDeduplication": "true",
            "isolate": "true",
        }
        given = {
            "service.url": broker.service_url,
            "mode": "entry",
            "startingOffsets": "earliest",
            "offsetPollIntervalMs": "1",
        }
        given |= source
        self.options = copy_options(given, target)
        self.log = CheckpointLog()
        self.end = ReportCommit(str(state_path))
        self.files = LaneFiles(str(state_path))
        self.summaries = []

    def drain(self, kill_at=""):
        self.kill_at = kill_at
        driver = StreamDriver(self.options, self.log, self.commit, kind=CopyDataSource, kill_at=kill_at)
        try:
            drain(driver)
        finally:
            driver.reader.stop()  # a driver that is killed takes its consumers with it

    def commit(self, batch, tasks):
        rows = [row for task in tasks for each in task for row in each.column("report").to_pylist()]
        if rows and self.kill_at == "uncommitted":
            raise Killed(self.kill_at)
        self.end.take(rows, batch)
        self.summaries.append(self.files.summary_of(batch))

    def total(self, what):
        return sum(summary[what] for summary in self.summaries)


def copies_of(cluster, topic):
    """Return the source position and the position of all copies, by topic-partition."""
    copies = defaultdict(list)
    for row in read_batch({"service.url": cluster.service_url, "topic": topic, "mode": "entry"}):
        metadata = pb.MessageMetadata.FromString(row["__metadata"])
        if positions := source_positions(metadata):
            copies[row["__topic"]].append((positions[-1], Position(row["__ledgerId"], row["__entryId"])))
    return copies


def mapped(runs, copies):
    """Return the copies of a topic-partition, and no others, as far as the runs know them."""
    known = PositionRuns(runs)
    found = [(source, known.target_of(source)) for source, _ in copies]
    assert [known.source_of(there) for _, there in copies] == [source for source, there in found if there]
    assert sum(run.length for run in known) == len(copies)
    return found


def rebuilt(cluster, name):
    """Return the runs of the lane that are read from a topic-partition of the target."""

    def is_copy(copy):
        return copy.producer == "lane"

    async def rebuild():
        session, topic = Session(ClientConfig(cluster.service_url)), TopicName.parse(name)
        try:
            end = await last_position(session, topic)
            runs = await rebuild_runs(session, topic, is_copy, EARLIEST, end, bytes_per_second=10_000_000)
            return [*runs]
        finally:
            await session.close()

    return asyncio.run(rebuild())


def in_order_per_key(values):
    return sorted(values, key=lambda value: value % 7) == sorted(values, key=lambda value: (value % 7, value))


@pytest.mark.parametrize("kill_at", ["planned", "copying", "read", "uncommitted", "written"])
def test_copy_when_killed_at_any_step_then_west_holds_everything_exactly_once(
    broker, west, client, there, topic, tmp_path, monkeypatch, kill_at
):
    publish(client, topic, range(200), batching_enabled=False)
    publish(client, topic, range(200, 400))
    copy = Copy(broker, west, tmp_path, topic=topic, maxEntriesPerTrigger="90")
    with monkeypatch.context() as patched:
        if kill_at == "copying":
            patched.setattr(LaneWriter, "finish", killed)
        with pytest.raises(Killed):
            copy.drain(kill_at=kill_at)
    copy.drain()
    copied = read_all(there, topic)
    assert sorted(copied) == list(range(400))
    assert in_order_per_key(copied)


async def killed(writer, *arguments):
    raise Killed("copying")


@pytest.mark.parametrize("kill_at", ["", "copying", "read", "uncommitted", "written"])
def test_copy_that_collects_positions_when_killed_at_any_step_then_they_are_those_of_all_copies(
    broker, west, client, there, topic, tmp_path, monkeypatch, kill_at
):
    publish(there, topic, range(50), batching_enabled=False)
    publish(client, topic, range(100), batching_enabled=False)
    publish(client, topic, range(100, 200))
    copy = Copy(broker, west, tmp_path, topic=topic, maxEntriesPerTrigger="40")
    copy.options["positionRuns"] = "true"
    with monkeypatch.context() as patched:
        if kill_at == "copying":
            patched.setattr(LaneWriter, "finish", killed)
        with pytest.raises(Killed) if kill_at else nullcontext():
            copy.drain(kill_at=kill_at)
    publish(there, topic, range(50), batching_enabled=False)
    publish(client, topic, range(200, 220), batching_enabled=False)
    copy.drain()
    copies, runs = copies_of(west, topic), copy.files.positions.read_new()
    assert runs.keys() == copies.keys()
    assert {name: mapped(runs[name], copies[name]) for name in copies} == copies
    assert len(copies) == 4
    assert {name: rebuilt(west, name) for name in copies} == {name: [*PositionRuns(runs[name])] for name in copies}


def test_copy_collects_no_positions_unless_it_is_asked_to(broker, west, client, there, topic, tmp_path):
    publish(client, topic, range(20), batching_enabled=False)
    copy = Copy(broker, west, tmp_path, topic=topic)
    copy.drain()
    assert len(read_all(there, topic)) == 20
    assert not (tmp_path / "positions").exists()


def test_copy_reports_what_it_wrote_and_what_it_did_not(broker, west, client, there, topic, tmp_path):
    publish(client, topic, range(20), batching_enabled=False)
    copy = Copy(broker, west, tmp_path, topic=topic)
    copy.drain()
    back = Copy(west, broker, tmp_path / "back", topic=topic)
    back.drain()
    assert (copy.total("entries"), copy.total("messages")) == (20, 20)
    assert (back.total("entries"), [summary["skipped"] for summary in back.summaries][-1]) == (0, {"replicated": 20})
    assert sorted(read_all(client, topic)) == list(range(20))


def test_cluster_in_the_middle_of_a_chain_sends_on_what_came_to_it(broker, west, client, there, topic, tmp_path):
    """West has it from east. The third one is east's broker under another name, so that everything is there twice."""
    publish(client, topic, range(20), batching_enabled=False)
    Copy(broker, west, tmp_path, topic=topic).drain()
    publish(there, topic, range(20, 30), batching_enabled=False)
    names = {"target.replicatedFrom": "west", "target.targetCluster": "north", "target.producerName": "x.west-->north"}
    copy = Copy(west, broker, tmp_path / "on", topic=topic)
    copy.options |= {**names, "target.forward": "origin"}
    copy.drain()
    assert copy.total("entries") == 30
    assert sorted(read_all(client, topic)) == sorted([*range(20), *range(30)])
    back = Copy(broker, west, tmp_path / "back", topic=topic)
    back.options |= {**names, "target.replicatedFrom": "north", "target.targetCluster": "west"}
    back.options |= {"target.producerName": "x.north-->west", "target.forward": "origin"}
    back.drain()
    assert back.total("entries") == 20, "only what was published here goes there"
    assert [summary["skipped"] for summary in back.summaries][-1] == {"replicated": 30}


def test_encrypted_entries_arrive_as_they_are_where_encryption_is_demanded(broker, west, client, tmp_path):
    """One by one and in batches; whoever has the private key reads them there, and nobody else."""
    sealed = "public/sealed/orders"
    for each in (broker, west):
        each.admin.namespaces.create("public/sealed")
        each.admin.topics.create(sealed)
    west.admin.namespaces.set_policy("public/sealed", "encryption_required", True)
    keys = new_keys(tmp_path, "orders")
    sealing: dict[str, Any] = {
        "encryption_keys": ["orders"],
        "crypto_key_reader": DefaultCryptoKeyReader(public_keys=keys.public),
    }
    publish(client, sealed, range(3), batching_enabled=False, **sealing)
    publish(client, sealed, range(3, 9), compression="zstd", **sealing)
    copy = Copy(broker, west, tmp_path / "state", topic=sealed)
    copy.drain()
    originals, copies = (
        read_batch({"service.url": each.service_url, "topic": sealed, "mode": "entry"}) for each in (broker, west)
    )
    assert [row["__payload"] for row in copies] == [row["__payload"] for row in originals]
    assert [sealing_of(row) for row in copies] == [sealing_of(row) for row in originals]
    assert {key.key for row in copies for key in sealing_of(row)[0]} == {"orders"}
    with Client(west.service_url) as there:
        opened = DefaultCryptoKeyReader(private_keys=keys.private)
        with there.create_reader(sealed, crypto_key_reader=opened) as reader:
            assert [int(reader.read_next(60_000).content or b"") for _ in range(9)] == list(range(9))
        with there.create_reader(sealed) as reader, pytest.raises(CryptoError, match="private key of 'orders'"):
            reader.read_next(60_000)
    publish(client, sealed, range(1), batching_enabled=False)
    copy.drain()
    assert "encrypt" in copy.files.held()[f"persistent://{sealed}"].reason.lower()


def sealing_of(row):
    """What a consumer needs to decrypt the entry."""
    metadata = pb.MessageMetadata.FromString(row["__metadata"])
    names = ("encryption_keys", "encryption_algo", "encryption_param", "compression", "uncompressed_size")
    return [getattr(metadata, name) for name in (*names, "num_messages_in_batch")]


def test_topic_that_the_target_refuses_is_held_and_the_others_go_on(broker, west, client, there, topic, tmp_path):
    absent = f"{topic}-absent"
    broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(absent), 4))
    for name in (topic, absent):
        publish(client, name, range(20), batching_enabled=False)
    copy = Copy(broker, west, tmp_path, topics=f"{topic},{absent}")
    copy.drain()
    held = copy.files.held()
    assert set(held) == {f"{absent}-partition-{index}" for index in range(4)}
    assert all("not found" in item.reason.lower() for item in held.values())
    assert sorted(read_all(there, topic)) == list(range(20))


def test_target_that_is_away_fails_the_batch_and_holds_nothing(broker, west, client, there, topic, tmp_path):
    publish(client, topic, range(20))
    copy = Copy(broker, west, tmp_path, topic=topic)
    copy.options |= {"target.service.url": "pulsar://127.0.0.1:9", "target.operationTimeoutMs": "200"}
    copy.options |= {"target.outageTimeoutMs": "200", "target.producerTakeoverTimeoutMs": "200"}
    with pytest.raises(NotConnected):
        copy.drain()
    assert copy.files.held() == {}


@pytest.mark.slow
def test_outage_of_the_target_is_waited_for_no_longer_than_asked_for(broker, west, client, there, topic, tmp_path):
    """The waits for an answer and for another holder of the producer name are longer."""
    publish(client, topic, range(20))
    copy = Copy(broker, west, tmp_path, topic=topic)
    copy.options |= {"target.service.url": "pulsar://127.0.0.1:9", "target.outageTimeoutMs": "2000"}
    copy.options |= {"target.operationTimeoutMs": "3600000", "target.producerTakeoverTimeoutMs": "3600000"}
    began = time.monotonic()
    with pytest.raises(NotConnected):
        copy.drain()
    assert time.monotonic() - began < 300


def test_range_that_cannot_be_read_is_held_with_its_reason(broker, west, client, there, topic, tmp_path, monkeypatch):
    publish(client, topic, range(40))
    partitions = [f"{topic}-partition-{index}" for index in range(4)]
    listed = tmp_path / "topics.json"
    listed.write_text(json.dumps({"topics": partitions, "held": []}))
    copy = Copy(broker, west, tmp_path, topicsFile=str(listed))
    with monkeypatch.context() as patched:
        patched.setattr(fetch, "_read_range", damaged_at(partitions[0]))
        copy.drain()
    held = copy.files.held()
    assert {name: item.reason for name, item in held.items()} == {partitions[0]: "the entry at 1:0 is damaged"}
    expected, copied = (read_partition(reader, partitions[0]) for reader in (client, there))
    assert expected
    assert copied == []
    assert [read_partition(there, name) for name in partitions[1:]] == [
        read_partition(client, name) for name in partitions[1:]
    ]


def damaged_at(topic, read=fetch._read_range):
    async def read_range(session, options, item, buffer_bytes, *admitted):
        if item.topic == topic:
            raise ChecksumError("the entry at 1:0 is damaged")
        async for entries in read(session, options, item, buffer_bytes, *admitted):
            yield entries

    return read_range


def read_partition(client, partition):
    with client.create_reader(partition) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).content)
    return found


def test_copy_without_lane_files_is_refused(broker, west, topic, tmp_path):
    copy = Copy(broker, west, tmp_path, topic=topic)
    del copy.options["target.statePath"]
    with pytest.raises(OptionError, match=r"target\.statePath"):
        copy.drain()


CURSOR = "pulsar.repl.west"


@pytest.fixture
def cursor(broker, topic):
    """A replication cursor at the beginning of the topic."""
    broker.admin.topics.create_subscription(topic, CURSOR, MessageId(*EARLIEST))
    return {"topic": topic, "predefinedSubscription": CURSOR, "startingOffsets": "subscription"}


@pytest.mark.parametrize("kill_at", ["planned", "copying", "uncommitted", "written"])
def test_copy_when_the_cursor_is_moved_before_a_batch_is_repeated_then_nothing_of_it_is_sent_any_more(
    broker, west, client, there, topic, tmp_path, monkeypatch, cursor, kill_at
):
    """What an attempt has sent before stays, and the lane goes on behind it."""
    copy = Copy(broker, west, tmp_path, **cursor)
    copy.drain()  # the first batch reads nothing
    publish(client, topic, range(200), batching_enabled=False)
    with monkeypatch.context() as patched:
        if kill_at == "copying":
            patched.setattr(LaneWriter, "finish", killed)
        with pytest.raises(Killed):
            copy.drain(kill_at=kill_at)
    sent = sorted(read_all(there, topic))
    assert kill_at == "copying" or len(sent) == (0 if kill_at == "planned" else 200)
    broker.admin.topics.skip_all(topic, CURSOR)
    publish(client, topic, range(200, 220), batching_enabled=False)
    copy.drain()
    assert sorted(read_all(there, topic)) == [*sent, *range(200, 220)]
    assert sum(summary["skipped"].get("passed", 0) for summary in copy.summaries if summary) == 200


def test_copy_when_the_cursor_is_moved_into_a_batch_that_is_repeated_then_its_end_is_sent_once(
    broker, west, client, there, topic, tmp_path, cursor
):
    publish(client, topic, range(200), batching_enabled=False)
    copy = Copy(broker, west, tmp_path, **cursor)
    with pytest.raises(Killed):
        copy.drain(kill_at="uncommitted")  # all of it is sent
    for index in range(4):
        broker.admin.topics.skip(f"{topic}-partition-{index}", CURSOR, 10)
    copy.drain()
    publish(client, topic, range(200, 220), batching_enabled=False)
    copy.drain()
    assert sorted(read_all(there, topic)) == [*range(220)]
    assert sum(summary["skipped"].get("passed", 0) for summary in copy.summaries) == 40


def test_copy_when_skipped_entries_were_trimmed_then_a_repeated_batch_goes_on_behind_them(
    broker, west, client, there, topic, tmp_path, cursor
):
    """Neither lost nor held: they were given up on the source."""
    copy = Copy(broker, west, tmp_path, **cursor)
    copy.drain()
    publish(client, topic, range(100), batching_enabled=False)
    with pytest.raises(Killed):
        copy.drain(kill_at="planned")
    broker.admin.topics.truncate(topic)
    publish(client, topic, range(100, 120), batching_enabled=False)
    copy.drain()
    assert sorted(read_all(there, topic)) == [*range(100, 120)]


def test_copy_when_entries_are_skipped_while_the_target_is_away_then_none_is_sent_after_the_answer(
    broker, west, client, there, topic, tmp_path, cursor
):
    publish(client, topic, range(200), batching_enabled=False)
    listed = tmp_path / "topics.json"
    listed.write_text(json.dumps({"topics": [f"{topic}-partition-{index}" for index in range(4)], "held": []}))
    source = {key: value for key, value in cursor.items() if key != "topic"}
    copy = Copy(broker, west, tmp_path, topicsFile=str(listed), **source)
    away = west.faults.refuse("PRODUCER", "ServiceNotReady", topic=topic)
    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(copy.drain)
        wait_until(lambda: away.count >= 8)
        broker.admin.topics.skip_all(topic, CURSOR)
        publish(client, topic, range(200, 220), batching_enabled=False)
        away.end()
        copying.result(120)
    wait_until(lambda: copy.drain() or not copy.files.held())
    copy.drain()
    assert sorted(read_all(there, topic)) == [*range(200, 220)]


class CopyAhead(Copy):
    """A query of the replication job's kind, whose tasks run ahead; `run` runs it in another thread."""

    def __init__(self, broker, west, state_path, topic, **source):
        state_path.mkdir()
        names = [f"{topic}-partition-{index}" for index in range(4)]
        (state_path / "topics.json").write_text(json.dumps({"topics": names, "held": [], "rates": {}}))
        given = {"topicsFile": str(state_path / "topics.json"), "maxPartitions": "1", **source}
        super().__init__(broker, west, state_path, **given)
        self.options |= {"runAheadMs": "600000", "cursorFollows": "true"}
        self.kill_at = ""

    def begin(self):
        """Run the batch that only records where the query begins."""
        driver = StreamDriver(self.options, self.log, self.commit, kind=CopyDataSource)
        try:
            driver.run_batch()
        finally:
            driver.reader.stop()

    @contextmanager
    def run(self):
        with ThreadPoolExecutor(1) as thread:
            draining = thread.submit(self.drain)
            try:
                yield draining
            finally:
                while not draining.done():  # several batches may follow
                    self.files.end_run_ahead(time.time_ns())
                    time.sleep(0.02)
        draining.result()


def test_task_that_runs_ahead_copies_what_arrives_and_the_next_batch_begins_behind_it(
    broker, west, client, there, topic, tmp_path
):
    publish(client, topic, range(100), batching_enabled=False)
    copy = CopyAhead(broker, west, tmp_path / "state", topic)
    with copy.run() as draining, there.create_reader(topic) as reader:
        copied = [int(reader.read_next(60_000).content or b"") for _ in range(100)]
        for first in range(100, 150, 10):
            publish(client, topic, range(first, first + 10), batching_enabled=False)
            copied += [int(reader.read_next(60_000).content or b"") for _ in range(10)]
        assert not draining.done(), "one task copied everything"
        wait_until(lambda: copy.files.live())
    assert sorted(copied) == list(range(150))
    assert (copy.total("entries"), copy.total("replays")) == (150, 0)
    publish(client, topic, range(150, 160), batching_enabled=False)
    with copy.run():
        wait_until(lambda: len(read_all(there, topic)) == 160)
    assert (copy.total("entries"), copy.total("replays")) == (160, 0)


@pytest.mark.parametrize("kill_at", ["copying", "read", "uncommitted", "written"])
@pytest.mark.parametrize("ahead_ms", ["600000", "0"], ids=["runs ahead again", "does not run ahead any more"])
def test_run_ahead_when_killed_at_any_step_then_west_holds_everything_exactly_once(
    broker, west, client, there, topic, tmp_path, monkeypatch, kill_at, ahead_ms
):
    publish(client, topic, range(100), batching_enabled=False)
    copy = CopyAhead(broker, west, tmp_path / "state", topic)
    copy.begin()
    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as thread:
        if kill_at == "copying":
            patched.setattr(LaneWriter, "finish", killed)
        draining = thread.submit(copy.drain, kill_at)
        with there.create_reader(topic) as reader:
            for first in range(100, 200, 20):
                publish(client, topic, range(first, first + 20), batching_enabled=False)
            for _ in range(200):
                reader.read_next(60_000)
        copy.files.end_run_ahead(time.time_ns())
        with pytest.raises(Killed):
            draining.result()
    copy.options["runAheadMs"] = ahead_ms
    publish(client, topic, range(200, 220), batching_enabled=False)
    with copy.run():
        wait_until(lambda: len(read_all(there, topic)) >= 220)
    copied = read_all(there, topic)
    assert sorted(copied) == list(range(220))
    assert in_order_per_key(copied)


@pytest.mark.parametrize("kill_at", ["copying", "written"])
def test_copy_when_killed_after_the_cursor_followed_then_what_the_source_has_trimmed_is_not_read_again(
    broker, west, client, there, topic, tmp_path, monkeypatch, cursor, kill_at
):
    """A batch may last for a minute. The source does not wait so long to delete what is copied."""
    source = {key: value for key, value in cursor.items() if key != "topic"}
    copy = CopyAhead(broker, west, tmp_path / "state", topic, **source)
    copy.options["positionRuns"] = "true"
    copy.begin()
    publish(client, topic, range(50), batching_enabled=False)
    with monkeypatch.context() as patched, ThreadPoolExecutor(1) as thread:
        if kill_at == "copying":
            patched.setattr(LaneWriter, "finish", killed)
        draining = thread.submit(copy.drain, kill_at)
        publish(client, topic, range(50, 100), batching_enabled=False)
        wait_until(lambda: all(is_followed(broker, f"{topic}-partition-{index}") for index in range(4)))
        copies, runs = copies_of(west, topic), copy.files.positions.read_new()
        assert {name: mapped(runs[name], copies[name]) for name in copies} == copies, "before the acknowledgement"
        copy.files.end_run_ahead(time.time_ns())
        with pytest.raises(Killed):
            draining.result()
    assert len(read_all(there, topic)) == 100
    copy.summaries.clear()
    broker.admin.topics.truncate(topic)
    publish(client, topic, range(100, 120), batching_enabled=False)
    copy.options["runAheadMs"] = "0"
    wait_until(lambda: copy.drain() or len(read_all(there, topic)) == 120)
    assert sorted(read_all(there, topic)) == list(range(120))
    assert (copy.total("entries"), copy.total("replays"), copy.files.held()) == (20, 0, {})
    assert not any(summary["skipped"] for summary in copy.summaries if summary)


def is_followed(broker, partition):
    """Return True if the cursor has reached the end of a topic-partition that has entries."""
    stats = broker.admin.topics.internal_stats(partition)
    position = stats["cursors"][CURSOR]["markDeletePosition"]
    return stats["numberOfEntries"] > 0 and position == stats["lastConfirmedEntry"]

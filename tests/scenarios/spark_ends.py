"""Ends of ledgers, and ends that compaction took away, as queries meet them on ours and on a real Pulsar."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import uuid4

import pyarrow as pa

from interpulse.model.ids import EARLIEST, MessageId
from interpulse.spark.offsets import StreamOffset
from interpulse.sync import AdminClient, Client
from tests.scenarios.client import Cluster
from tests.spark.stream_driver import CheckpointLog, StreamDriver
from tests.support.spark_source import read_batch
from tests.support.waiting import until

LIMITS: list[dict[str, str]] = [
    {"maxEntriesPerTrigger": "4"},
    {"maxBytesPerTrigger": "200"},
    {"maxEntriesPerTrigger": "1"},
    {"maxEntriesPerTrigger": "100"},
]


class _Topic:
    """Ledgers of so many messages, kept by a subscription."""

    def __init__(self, cluster: Cluster, *ledgers: int) -> None:
        self.name = f"persistent://public/default/ends-{uuid4().hex[:8]}"
        self.options = {
            "service.url": cluster.service_url,
            "topic": self.name,
            "startingOffsets": "earliest",
            "offsetPollIntervalMs": "1",
        }
        self._cluster = cluster
        self.ids: list[MessageId] = []
        with AdminClient(cluster.web_url) as admin:
            admin.topics.create(self.name)
            admin.topics.create_subscription(self.name, "keep", MessageId.of(EARLIEST))
            for number, count in enumerate(ledgers):
                if number:
                    admin.topics.unload(self.name)
                self.publish(count)

    def publish(self, count: int) -> None:
        with Client(self._cluster.service_url) as client, client.create_producer(self.name) as producer:
            self.ids += [producer.send(b"%d" % (len(self.ids) + number)) for number in range(count)]

    def forget_all(self) -> None:
        """As retention does, once nothing needs the messages any more and a new ledger is written to."""
        with AdminClient(self._cluster.web_url) as admin:
            admin.topics.unload(self.name)
            with Client(self._cluster.service_url) as client, client.create_producer(self.name):
                pass  # a real broker begins its ledger now
            admin.topics.skip_all(self.name, "keep")
            admin.topics.trim(self.name)
            last = self.ids[-1].ledger
            until(lambda: all(each["ledgerId"] > last for each in admin.topics.internal_stats(self.name)["ledgers"]))


class _Rows(list[bytes]):
    """A sink."""

    def __call__(self, batch: int, tasks: list[list[pa.RecordBatch]]) -> None:
        for chunks in tasks:
            for chunk in chunks:
                self += chunk.column("value").to_pylist()


def _drained(driver: StreamDriver) -> None:
    """Run until two batches had nothing to do: positions are kept for a millisecond."""
    idle = 0
    while idle < 2:
        idle = 0 if driver.run_batch() else idle + 1
        time.sleep(0.002)


def _read_until(driver: StreamDriver, rows: _Rows, count: int) -> None:
    def is_there() -> bool:
        driver.run_batch()
        return len(rows) >= count

    until(is_there)


def limited_stream_reads_all_ledgers(cluster: Cluster, limit: Mapping[str, str]) -> None:
    """Also where it is stopped after every micro-batch."""
    topic, log, rows = _Topic(cluster, 6, 3, 5), CheckpointLog(), _Rows()
    for _ in range(40):
        if not StreamDriver(topic.options | dict(limit), log, rows).run_batch():
            break
    assert rows == [b"%d" % number for number in range(14)]
    rows.clear()
    _drained(StreamDriver(topic.options | dict(limit), CheckpointLog(), rows))
    assert rows == [b"%d" % number for number in range(14)]


def checkpoint_beyond_the_end_of_a_ledger_goes_on(cluster: Cluster) -> None:
    """Earlier releases planned such positions: of a running query, and of one that was stopped within a batch."""
    topic, rows = _Topic(cluster, 6, 3, 5), _Rows()
    planned = [
        StreamOffset({topic.name: topic.ids[number].position._replace(entry=entry)}).to_json()
        for number, entry in ((0, 3), (0, 7), (6, 3))
    ]
    for committed in (1, 2, 3):
        log = CheckpointLog()
        with_text = [str(body).replace("'", '"') for body in planned[: committed + 1]]
        log.offsets = dict(enumerate(with_text))
        log.commits = set(range(committed))
        rows.clear()
        _drained(StreamDriver(topic.options | {"maxEntriesPerTrigger": "4"}, log, rows))
        first = (4, 6, 9)[committed - 1]
        assert rows == [b"%d" % number for number in range(first, 14)]


def compacted_reads_end_where_compaction_left_the_topic(cluster: Cluster) -> None:
    """The newest key was deleted; batch, and streams with and without a durable subscription."""
    name = f"persistent://public/default/ends-{uuid4().hex[:8]}"
    options = {"service.url": cluster.service_url, "topic": name, "readCompacted": "true"}
    stream = {**options, "startingOffsets": "earliest", "offsetPollIntervalMs": "1"}
    with AdminClient(cluster.web_url) as admin, Client(cluster.service_url) as client:

        def publish(*pairs: tuple[str, bytes]) -> None:
            with client.create_producer(name, batching_enabled=False) as producer:
                for key, content in pairs:
                    producer.send(content, key=key)

        def compact() -> None:
            admin.topics.compact(name)
            until(lambda: admin.topics.compaction_status(name)["status"] == "SUCCESS")

        admin.topics.create(name)
        publish(("1", b"m1"), ("2", b"m2"), ("2", b""))
        compact()
        assert [row["value"] for row in read_batch(options)] == [b"m1"]
        for number, more in enumerate(({}, {"maxEntriesPerTrigger": "1"}, {"predefinedSubscription": "s"})):
            log, rows = CheckpointLog(), _Rows()
            driver = StreamDriver({**stream, **more}, log, rows)
            _drained(driver)
            assert rows[0] == b"m1"
            before = len(rows)
            publish(("3", b"read"), ("3", b""))
            _read_until(driver, rows, before + 2)
            compact()
            _drained(driver)
            driver.reader.stop()
            restarted = StreamDriver({**stream, **more}, log, rows)
            _drained(restarted)
            assert rows[before:] == [b"read", b""], "compaction takes away what was read: it did not go backwards"
            publish(("4", b"%d" % number))
            _read_until(restarted, rows, before + 3)
            assert rows[-1] == b"%d" % number
            restarted.reader.stop()


def loss_is_reported_at_the_start(cluster: Cluster, *, read: int = 4, lenient: bool = False) -> None:
    """Of six messages so many are read before a restart, and nothing newer is published. Raises DataLoss unless it is
    lenient."""
    topic, log, rows = _Topic(cluster, 6), CheckpointLog(), _Rows()
    driver = StreamDriver(topic.options | {"maxEntriesPerTrigger": str(read)}, log, rows)
    driver.run_batch()
    driver.run_batch()
    assert len(rows) == read
    topic.forget_all()
    restarted = StreamDriver(topic.options | {"failOnDataLoss": str(not lenient).lower()}, log, rows)
    _drained(restarted)
    assert len(rows) == read

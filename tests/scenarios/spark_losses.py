"""Entries that are deleted before a query reads them, on ours and on a real Pulsar."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa
import pytest

from interpulse.model.errors import DataLoss
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.sync import AdminClient, Client
from tests.scenarios.client import Cluster
from tests.spark.stream_driver import CheckpointLog, Killed, StreamDriver
from tests.support.spark_source import planned_reader, read_planned
from tests.support.waiting import until

_FAST = {"offsetPollIntervalMs": "1"}


class _Topic:
    """Five messages in one ledger, five in the next one, and a subscription that keeps them."""

    def __init__(self, cluster: Cluster) -> None:
        self.name = f"persistent://public/default/losses-{uuid4().hex[:8]}"
        self.options = {"service.url": cluster.service_url, "topic": self.name}
        self._cluster = cluster
        with AdminClient(cluster.web_url) as admin:
            admin.topics.create(self.name)
            admin.topics.create_subscription(self.name, "keep", MessageId.of(EARLIEST))
        self.ids = self.publish(range(5))
        self.next_ledger()
        self.ids += self.publish(range(5, 10))
        assert self.ids[0].ledger < self.ids[-1].ledger

    def publish(self, values: range) -> list[MessageId]:
        with Client(self._cluster.service_url) as client, client.create_producer(self.name) as producer:
            return [producer.send(str(value).encode()) for value in values]

    def next_ledger(self) -> None:
        with AdminClient(self._cluster.web_url) as admin:
            admin.topics.unload(self.name)

    def forget_read(self, count: int) -> None:
        """As retention does, once nothing needs these messages any more."""
        with AdminClient(self._cluster.web_url) as admin:
            admin.topics.skip(self.name, "keep", count)
            admin.topics.trim(self.name)
            last = self.ids[count - 1].ledger
            until(lambda: min(each["ledgerId"] for each in admin.topics.internal_stats(self.name)["ledgers"]) > last)

    def starting_at(self, place: MessageId) -> dict[str, str]:
        return {"startingOffsets": json.dumps({self.name: f"{place.ledger}:{place.entry}"})}


def planned_range_of_a_stream(cluster: Cluster, *, lenient: bool) -> list[int]:
    """Deleted while the driver is down, whose checkpoint holds the plan."""
    topic, log, seen = _Topic(cluster), CheckpointLog(), _Rows()
    options = topic.options | _FAST | topic.starting_at(topic.ids[2])
    driver = StreamDriver(options, log, seen)
    driver.run_batch()
    driver.kill_at = "planned"
    with pytest.raises(Killed):
        driver.run_batch()
    topic.forget_read(5)
    StreamDriver(options | _lenient(lenient), log, seen).run_batch()
    return seen.values


def unread_entries_of_a_stream_that_was_away(cluster: Cluster, *, lenient: bool) -> list[int]:
    """Deleted while the driver is down, which has committed all of its plans."""
    topic, log, seen = _Topic(cluster), CheckpointLog(), _Rows()
    options = topic.options | _FAST | topic.starting_at(topic.ids[2])
    StreamDriver(options, log, seen).run_batch()
    topic.forget_read(5)
    StreamDriver(options | _lenient(lenient), log, seen).run_batch()
    return seen.values


def unread_entries_of_a_stream_that_is_slow(cluster: Cluster, *, lenient: bool) -> list[int]:
    """Deleted while the driver runs, which knows that they were there."""
    topic, log, seen = _Topic(cluster), CheckpointLog(), _Rows()
    options = topic.options | _FAST | {"startingOffsets": "earliest", "maxEntriesPerTrigger": "3"} | _lenient(lenient)
    driver = StreamDriver(options, log, seen)
    driver.run_batch()
    driver.run_batch()
    assert seen.values == [0, 1, 2]
    topic.forget_read(5)
    until(lambda: driver.run_batch() and len(seen.values) == 8)
    return seen.values[3:]


def named_start_of_a_batch(cluster: Cluster, *, lenient: bool) -> list[int]:
    """Deleted between plan and task."""
    topic = _Topic(cluster)
    reader, tasks = planned_reader(topic.options | topic.starting_at(topic.ids[2]) | _lenient(lenient))
    topic.forget_read(5)
    return [int(row["value"]) for row in read_planned(reader, tasks)]


LOSSES: list[Callable[..., list[int]]] = [
    planned_range_of_a_stream,
    unread_entries_of_a_stream_that_was_away,
    unread_entries_of_a_stream_that_is_slow,
    named_start_of_a_batch,
]


def assert_loss_is_told(loss: Callable[..., list[int]], cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """It ends the query, or is warned of where failOnDataLoss=false."""
    with pytest.raises(DataLoss, match=r"losses-.* gone.*failOnDataLoss=false"):
        loss(cluster, lenient=False)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        values = loss(cluster, lenient=True)
    assert values == [5, 6, 7, 8, 9]
    assert [
        record.message for record in caplog.records if "data loss" in record.message and "losses-" in record.message
    ]


def trimmed_ledger_of_read_entries_is_no_loss(cluster: Cluster) -> None:
    """A stream has read it when it goes, and goes on."""
    topic, log, seen = _Topic(cluster), CheckpointLog(), _Rows()
    driver = StreamDriver(topic.options | _FAST | {"startingOffsets": "earliest"}, log, seen)
    driver.run_batch()
    driver.run_batch()
    assert seen.values == list(range(10))
    topic.next_ledger()
    topic.publish(range(10, 12))
    topic.forget_read(10)
    until(lambda: driver.run_batch() or len(seen.values) == 12)
    assert seen.values == list(range(12))


def _lenient(lenient: bool) -> dict[str, str]:
    return {"failOnDataLoss": "false"} if lenient else {}


class _Rows:
    """A sink."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def __call__(self, batch: int, tasks: list[list[pa.RecordBatch]]) -> None:
        for chunks in tasks:
            for chunk in chunks:
                self.values += [int(value) for value in chunk.column("value").to_pylist()]

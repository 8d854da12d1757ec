"""kill -9 of the broker under load: what was acknowledged is there afterwards, and with de-duplication nothing twice.

The producer is the official client with a fixed name; it reconnects by itself and sends again what has no receipt.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pulsar
import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import TopicName
from interpulse.storage.cursors import JSON_CURSORS
from tests.support.official_client import connected
from tests.support.soak import soak
from tests.support.standalone_process import StandaloneProcess, free_port

TOPIC = "persistent://public/default/survivor"
ACKNOWLEDGED_PER_LIFE = 2000
SECONDS_MAX = 240


class Publisher:
    """Publishes numbers without a pause, from 1 on, and remembers which were acknowledged."""

    def __init__(self, client: pulsar.Client, *, batched: bool) -> None:
        self.sent = 0
        self.acknowledged: list[int] = []
        self.failures: list[Any] = []
        self._acknowledged_more = threading.Condition()
        self._stopping = threading.Event()
        self._producer = client.create_producer(
            TOPIC,
            producer_name="fixed",
            send_timeout_millis=0,
            batching_enabled=batched,
            batching_max_publish_delay_ms=1,
            max_pending_messages=1000,
            block_if_queue_full=True,
        )
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def wait_for(self, count: int) -> None:
        """Until ``count`` messages are acknowledged."""
        with self._acknowledged_more:
            done = self._acknowledged_more.wait_for(lambda: len(self.acknowledged) >= count, SECONDS_MAX)
        assert done, f"{len(self.acknowledged)} of {count} acknowledged after {SECONDS_MAX} s"

    def _publish(self) -> None:
        while not self._stopping.is_set():
            self.sent += 1
            number = self.sent
            self._producer.send_async(
                b"%d" % number,
                lambda result, _, number=number: self._on_answer(result, number),
                sequence_id=number,
            )

    def _on_answer(self, result: Any, number: int) -> None:
        with self._acknowledged_more:
            (self.acknowledged if result == pulsar.Result.Ok else self.failures).append(number)
            self._acknowledged_more.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and wait for the answers to everything that was sent."""
        self._stopping.set()
        self._thread.join()
        if error is None:
            self._producer.flush()
            self.wait_for(self.sent)


@pytest.mark.interop
@pytest.mark.parametrize("batched", [False, True], ids=["unbatched", "batched"])
@pytest.mark.parametrize("kills", [1, pytest.param(soak(20, otherwise=5), marks=pytest.mark.slow)])
def test_broker_when_killed_under_load_then_nothing_acknowledged_is_lost_or_doubled(
    tmp_path: Path, batched: bool, kills: int
) -> None:
    arguments = ("--port", free_port(), "--set", "brokerDeduplicationEnabled=true")
    broker = StandaloneProcess(tmp_path / "data", *arguments)
    try:
        with connected(broker.service_url) as client:
            with Publisher(client, batched=batched) as publisher:
                for life in range(kills):
                    publisher.wait_for((life + 1) * ACKNOWLEDGED_PER_LIFE)
                    broker.kill()
                    broker = StandaloneProcess(tmp_path / "data", *arguments)
                publisher.wait_for((kills + 1) * ACKNOWLEDGED_PER_LIFE)
            assert publisher.failures == []
            assert publisher.acknowledged == sorted(publisher.acknowledged)
            reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
            found = []
            while reader.has_message_available():
                found.append(int(reader.read_next(60_000).data()))
        assert found == list(range(1, publisher.sent + 1))
    finally:
        broker.stop()


def acknowledged_on_disk(data_dir: Path, subscription: str) -> int:
    """The last entry up to which everything is acknowledged, as a broker that starts now would read it; -1: none."""
    key = f"{keys.topic_record(TopicName.parse(TOPIC))}/{subscription}"
    with closing(sqlite3.connect(f"file:{data_dir / 'metadata.sqlite'}?mode=ro", uri=True)) as store:
        ((record,),) = store.execute("SELECT value FROM entries WHERE key = ?", (key,))
    return JSON_CURSORS.decode("sub", record).mark_delete.entry


@pytest.mark.interop
def test_subscription_when_broker_is_killed_then_what_is_stored_does_not_come_again_and_nothing_is_skipped(
    tmp_path: Path,
) -> None:
    arguments = ("--port", free_port())
    broker = StandaloneProcess(tmp_path / "data", *arguments)
    try:
        with connected(broker.service_url) as client:
            consumer = client.subscribe(TOPIC, "s")
            producer = client.create_producer(TOPIC)
            for number in range(100):
                producer.send(b"%d" % number)
            for _ in range(50):
                consumer.acknowledge(consumer.receive(60_000))
            consumer.close()
            deadline = time.monotonic() + SECONDS_MAX
            while acknowledged_on_disk(tmp_path / "data", "s") != 49:
                assert time.monotonic() < deadline
            broker.kill()
            broker = StandaloneProcess(tmp_path / "data", *arguments)
            consumer = client.subscribe(TOPIC, "s")
            assert int(consumer.receive(60_000).data()) == 50
            consumer.close()
            producer.close()
    finally:
        broker.stop()

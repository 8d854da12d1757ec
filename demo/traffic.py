"""Traffic of the official client: a publisher, a watcher on the other cluster, and the final reading."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pulsar

from dataset import Row
from verdict import Ledger, Verdict

Message = tuple[Row, dict[str, str]]
"""A row and the properties it is sent with."""

RECEIVE_TIMEOUT_MS = 200
DELAY_SAMPLE_EVERY = 20
# With a Python logger, the official client sometimes aborts when the program ends.
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


@dataclass(slots=True)
class Progress:
    """Progress so far, per partition. One thread writes each field; the screen reads them."""

    partitions: int
    total: int | None = None
    """Expected number of messages. None until it is known."""
    published: list[int] = field(default_factory=list)
    replicated: list[int] = field(default_factory=list)
    last_replicated_publish_ms: list[int] = field(default_factory=list)
    last_published_ms: list[int] = field(default_factory=list)
    delays_ms: list[int] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    publishing_done: bool = False
    publish_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("published", "replicated", "last_replicated_publish_ms", "last_published_ms"):
            setattr(self, name, [0] * self.partitions)

    @property
    def published_total(self) -> int:
        return sum(self.published)

    @property
    def replicated_total(self) -> int:
        return sum(self.replicated)

    def lag_messages(self, partition: int) -> int:
        """Return the messages acknowledged by east and not seen by a consumer on west.

        Some are seen before their receipt.
        """
        return max(self.published[partition] - self.replicated[partition], 0)

    def lag_seconds(self, partition: int) -> float | None:
        """Return the delay of west in publish time, as seen by a consumer there. None before its first message."""
        if self.last_replicated_publish_ms[partition] == 0:
            return None
        if self.lag_messages(partition) == 0:
            return 0.0
        return max(self.last_published_ms[partition] - self.last_replicated_publish_ms[partition], 0) / 1000


class PublishFailed(Exception):
    """A message that a broker refused or lost."""


def publish(
    service_url: str,
    topic: str,
    messages: Iterator[Message],
    progress: Progress,
    abandoned: threading.Event,
    logger: pulsar.ConsoleLogger | pulsar.FileLogger = QUIET,
) -> None:
    """Send every row and wait for every receipt. Raises PublishFailed on the first error."""
    failures: list[str] = []

    def on_receipt(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        if result != pulsar.Result.Ok:
            failures.append(str(result))
            return
        progress.published[message_id.partition()] += 1
        progress.last_published_ms[message_id.partition()] = int(time.time() * 1000)

    started = time.monotonic()
    client = pulsar.Client(service_url, logger=logger)
    try:
        producer = client.create_producer(
            topic,
            batching_enabled=True,
            block_if_queue_full=True,
            max_pending_messages=5000,
            send_timeout_millis=60_000,
        )
        sent = 0
        for row, properties in messages:
            if failures or abandoned.is_set():
                break
            producer.send_async(
                row.value,
                on_receipt,
                properties=properties,
                partition_key=row.key,
                event_timestamp=row.event_time_ms,
            )
            sent += 1
        progress.total = sent
        producer.flush()
    finally:
        client.close()
    if failures:
        raise PublishFailed(f"the broker answered {failures[0]} ({len(failures)} failures)")
    progress.publish_seconds = time.monotonic() - started
    progress.publishing_done = True


def watch(service_url: str, topic: str, progress: Progress, stop: threading.Event) -> None:
    """Follow west as a consumer, and note when messages become visible there."""
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=5000)
        since_sample = 0
        while not stop.is_set():
            try:
                message = reader.read_next(RECEIVE_TIMEOUT_MS)
            except pulsar.Timeout:
                continue
            partition = max(message.message_id().partition(), 0)
            published_ms = message.publish_timestamp()
            progress.replicated[partition] += 1
            progress.last_replicated_publish_ms[partition] = published_ms
            since_sample += 1
            if since_sample >= DELAY_SAMPLE_EVERY:
                since_sample = 0
                progress.delays_ms.append(int(time.time() * 1000) - published_ms)
                progress.arrivals.append((time.monotonic(), progress.replicated_total))
    finally:
        client.close()


def read_back(service_url: str, topic: str, partitions: int, ledger: Ledger, abandoned: threading.Event) -> Verdict:
    """Read every partition from beginning to end, and compare it with the published rows."""
    client = pulsar.Client(service_url, logger=QUIET)
    try:
        for partition in range(partitions):
            reader = client.create_reader(
                f"{topic}-partition-{partition}", pulsar.MessageId.earliest, receiver_queue_size=5000
            )
            while not abandoned.is_set() and reader.has_message_available():
                message = reader.read_next(30_000)
                ledger.arrived(
                    partition,
                    message.data(),
                    message.partition_key() or None,
                    message.event_timestamp() or None,
                    message.properties(),
                )
            reader.close()
    finally:
        client.close()
    return ledger.conclude()

"""What a stream costs its driver and the broker by the number of partitions it follows, above all while it is idle.

    python -m benchmarks.many_partitions [--sizes 100,1000,10000] [--seconds 20]

No JVM: the driver's part of one query is asked as Spark asks it, a hundred times a second, in this process. A message
in every hundredth partition then makes one micro-batch, which is planned into tasks and read. Keeps nothing.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import psutil

from benchmarks.contenders import Interpulse, cpu_seconds
from interpulse.client.transport.connection import Connection
from interpulse.model.names import TopicName
from interpulse.spark.data_source import PulsarDataSource
from interpulse.sync import AdminClient, Client

POLLS_A_SECOND = 100
NEWS_IN = 100
PATIENCE_SECONDS = 60


class Figures(NamedTuple):
    """Of one size; seconds, megabytes, and requests of the client."""

    partitions: int
    start_s: float
    driver_mb: float
    broker_mb: float
    requests_s: float
    driver_cpu: float
    broker_cpu: float
    longest_ms: float
    noticed_ms: float
    tasks: int
    planned_ms: float
    read: int


class Requests:
    """Counts what the client asks."""

    def __init__(self) -> None:
        self.count = self._taken = 0

    def taken(self) -> int:
        """Since the last time."""
        count, self._taken = self.count - self._taken, self.count
        return count

    def counted(self) -> Any:
        original = Connection.request

        def request(connection: Connection, *given: Any, **options: Any) -> Any:
            self.count += 1
            return original(connection, *given, **options)

        return patch.object(Connection, "request", request)


def megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def measured(broker: Interpulse, partitions: int, seconds: float) -> Figures:
    topic = TopicName.parse(f"persistent://public/default/many-{partitions}")
    with AdminClient(broker.web_url) as admin:
        admin.topics.create_partitioned(str(topic), partitions)
    here, there = psutil.Process(), psutil.Process(broker.pid)
    memory = megabytes(here), megabytes(there)
    source = PulsarDataSource({"service.url": broker.service_url, "topic": str(topic)})
    reader = source.streamReader(schema=source.schema())
    requests = Requests()
    with requests.counted():
        began = time.monotonic()
        position = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        started = time.monotonic() - began
        grown = megabytes(here) - memory[0], megabytes(there) - memory[1]
        settled_by = time.monotonic() + PATIENCE_SECONDS
        while requests.taken() and time.monotonic() < settled_by:
            asked(reader, position, 3)  # partitions become idle; few are asked on at every poll
        before = requests.count, time.process_time(), cpu_seconds(broker)
        longest = asked(reader, position, seconds)
        after = requests.count, time.process_time(), cpu_seconds(broker)
        idle = [now - then for now, then in zip(after, before, strict=True)]
        with Client(broker.service_url) as client:
            news = range(0, partitions, NEWS_IN)
            for index in news:
                with client.create_producer(str(topic.partition(index))) as producer:
                    producer.send(b"news")
        published = time.monotonic()
        end = position
        while sum(1 for item in changed(position, end)) < len(news):
            assert time.monotonic() < published + PATIENCE_SECONDS, "what was published is not noticed"
            time.sleep(1 / POLLS_A_SECOND)
            end = reader.latestOffset(position, reader.getDefaultReadLimit())
        noticed = time.monotonic() - published
        began = time.monotonic()
        tasks = reader.partitions(position, end)
        planned = time.monotonic() - began
        rows = sum(batch.num_rows for task in tasks for batch in reader.read(task))
    assert rows == len(news), (rows, len(news))
    reader.stop()
    return Figures(
        partitions,
        started,
        *grown,
        *(each / seconds for each in idle),
        longest * 1e3,
        noticed * 1e3,
        len(tasks),
        planned * 1e3,
        rows,
    )


def asked(reader: Any, position: Any, seconds: float) -> float:
    """Ask as Spark does; the longest answer in seconds."""
    longest, end = 0.0, time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        assert reader.latestOffset(position, reader.getDefaultReadLimit()) == position
        longest = max(longest, time.monotonic() - began)
        time.sleep(1 / POLLS_A_SECOND)
    return longest


def changed(start: Any, end: Any) -> Sequence[str]:
    return [
        name
        for group, names in end["o"].items()
        for name, at in names.items()
        if start["o"].get(group, {}).get(name) != at
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    print("| " + " | ".join(Figures._fields) + " |\n|" + " --- |" * len(Figures._fields))
    for size in (int(each) for each in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            broker = Interpulse(Path(directory))
            broker.start()
            try:
                figures = measured(broker, size, options.seconds)
            finally:
                broker.stop()
        print("| " + " | ".join(f"{each:.3g}" if isinstance(each, float) else f"{each}" for each in figures) + " |")


if __name__ == "__main__":
    main()

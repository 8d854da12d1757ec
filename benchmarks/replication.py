"""What the supervised replication job moves between two brokers of this machine, and how fast it is there.

    python -m benchmarks.replication                  about two minutes

Both brokers, the Java process, its Python workers and the generator share the cores; the processor time per million is
that of everything but the generator, and of each kind of process.
"""

import argparse
import asyncio
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pulsar

from benchmarks.contenders import Interpulse, cpu_by_process, cpu_seconds
from benchmarks.raw_frames import encode_batches, encode_send
from benchmarks.raw_load import publish
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import NotFound

NAMESPACE = "bench/replicated"
TOPIC = f"persistent://{NAMESPACE}/rates"
DELAYS_TOPIC = f"persistent://{NAMESPACE}/delays"
PARTITIONS = 4
SECONDS_MAX = 240
BATCH_MESSAGES = 100
SKIPPED_SHARE = 0.2  # of what arrives first: the job finds its stride


class TooSlow(Exception):
    """Something did not arrive in time; the message says what."""


def main(arguments: Sequence[str]) -> int:
    """Runs everything and prints a table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication", description="Figures of replication.")
    parser.add_argument("--entries", type=int, default=400_000, help="unbatched messages of 100 bytes")
    parser.add_argument("--batches", type=int, default=4_000, help=f"batches of {BATCH_MESSAGES} messages of 1 KB")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch, ExitStack() as stack:
        pair = Pair(Path(scratch), stack)
        started = time.monotonic()
        asyncio.run(pair.set_up())
        print("| figure | value |\n| --- | --- |")
        _tell("first copy after replication was enabled", f"{pair.first_copy() - started:.1f} s")
        pair.move("warm-up", _entries(options.entries // 4), options.entries // 4)
        moved = pair.move("entries", _entries(options.entries), options.entries)
        _tell("unbatched, 100 B", moved.told(messages=1))
        moved = pair.move("batches", batches_of(options.batches), options.batches)
        _tell("batches of 100, 1 KB", moved.told(messages=BATCH_MESSAGES))
        for per_second, seconds in ((20, 15), (2000, 10), (5000, 10)):
            delays = sorted(pair.delays(per_second, seconds))
            p50, p99 = (delays[int(len(delays) * share)] * 1000 for share in (0.5, 0.99))
            _tell(f"publish to delivery at {per_second}/s", f"p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    return 0


def _tell(figure: str, value: str) -> None:
    print(f"| {figure} | {value} |", flush=True)


class Moved(NamedTuple):
    """Entries that arrived, in which time, and the processor seconds meanwhile by kind of process."""

    entries: int
    seconds: float
    cpu_seconds: Counter[str]

    def told(self, *, messages: int) -> str:
        """In messages, of which an entry has that many."""
        million = self.entries * messages / 1e6
        shares = ", ".join(f"{kind} {used / million:.2f}" for kind, used in self.cpu_seconds.most_common())
        total = self.cpu_seconds.total() / million
        return f"{million / self.seconds * 1e6:,.0f} messages/s, {total:.1f} CPU s per million ({shares})"


class Pair:
    """Brokers ``east`` and ``west``, and the job that ``east`` starts."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.east, self.west = (
            Interpulse(directory / name, "--cluster-name", name, "--set", "brokerDeleteInactiveTopicsEnabled=false")
            for name in ("east", "west")
        )
        for broker in (self.east, self.west):
            broker.start()
            stack.callback(broker.stop)
        self._sent = 0

    async def set_up(self) -> None:
        """What an operator would call; from then on the job starts."""
        async with AdminClient(self.east.web_url) as east, AdminClient(self.west.web_url) as west:
            for admin in (east, west):
                for name, broker in (("east", self.east), ("west", self.west)):
                    record = ClusterData(service_url=broker.web_url, broker_service_url=broker.service_url)
                    known = name in await admin.clusters.list()
                    await (admin.clusters.update if known else admin.clusters.create)(name, record)
                await admin.tenants.create("bench", TenantInfo(allowed_clusters=("east", "west")))
                await admin.namespaces.create(NAMESPACE)
            for topic in (TOPIC, DELAYS_TOPIC):
                await east.topics.create_partitioned(topic, PARTITIONS)
            await east.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])

    def first_copy(self) -> float:
        """When the first message was there."""
        self._publish(_entries(PARTITIONS), PARTITIONS)
        self._until(lambda: self._arrived() >= self._sent, "the first message")
        return time.monotonic()

    def move(self, what: str, encoded: Sequence[bytes], count: int) -> Moved:
        """Publish entries as fast as they are taken; what was seen from a fifth of them to the last, when everything is
        published."""
        before = self._sent
        self._publish(encoded, count)
        begin = max(self._arrived(), before + int(count * SKIPPED_SHARE))
        self._until(lambda: self._arrived() >= begin, what)
        first, started, cpu_before = self._arrived(), time.monotonic(), self._cpu_seconds()
        self._until(lambda: self._arrived() >= self._sent, what)
        seconds = time.monotonic() - started
        return Moved(self._sent - first, seconds, self._cpu_seconds() - cpu_before)

    def delays(self, per_second: int, seconds: int) -> list[float]:
        """Seconds from each publish on east to its delivery by west."""
        count, delays = per_second * seconds, list[float]()
        with ExitStack() as stack:
            quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
            source, target = (pulsar.Client(broker.service_url, logger=quiet) for broker in (self.east, self.west))
            stack.callback(source.close)
            stack.callback(target.close)
            consumer = target.subscribe(DELAYS_TOPIC, f"delays-{per_second}")
            producer = source.create_producer(DELAYS_TOPIC, batching_enabled=False, max_pending_messages=count)
            sending = threading.Thread(target=_send_paced, args=(producer, per_second, count), daemon=True)
            sending.start()
            for _ in range(count):
                message = consumer.receive(timeout_millis=SECONDS_MAX * 1000)
                delays.append(time.monotonic() - struct.unpack_from(">d", message.data())[0])
            sending.join()
        return delays

    def _publish(self, encoded: Sequence[bytes], count: int) -> None:
        threads = [
            threading.Thread(
                target=publish,
                args=(self.east.service_url, f"{TOPIC}-partition-{index}", encoded[index], count // PARTITIONS),
            )
            for index in range(PARTITIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._sent += count

    def _arrived(self) -> int:
        return asyncio.run(self._count())

    async def _count(self) -> int:
        async with AdminClient(self.west.web_url) as admin:
            try:
                stats = [await admin.topics.internal_stats(f"{TOPIC}-partition-{index}") for index in range(PARTITIONS)]
            except NotFound:
                return 0  # the job has not created it yet
        return sum(int(body["numberOfEntries"]) for body in stats)

    def _cpu_seconds(self) -> Counter[str]:
        """By kind of process; the job is a child of ``east``."""
        seconds = Counter({"target broker": cpu_seconds(self.west)})
        for process, used in cpu_by_process(self.east):
            name = process.name()
            under_java = any(parent.name() == "java" for parent in process.parents())
            kind = "source broker" if process.pid == self.east.pid else "Java" if name == "java" else "Python workers"
            seconds[kind if kind != "Python workers" or under_java else "job"] += used
        return seconds

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise TooSlow(f"{what}: {self._arrived()} of {self._sent} arrived in {SECONDS_MAX} s")
            time.sleep(0.1)


def _send_paced(producer: pulsar.Producer, per_second: int, count: int) -> None:
    started = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, started + number / per_second - time.monotonic()))
        producer.send_async(struct.pack(">d", time.monotonic()).ljust(100), None)
    producer.flush()


def _entries(count: int) -> list[bytes]:
    """SEND frames for each partition. The topic does not de-duplicate, so every load may number from 0."""
    payload = b"x" * 100
    return [b"".join(encode_send(number, payload) for number in range(count // PARTITIONS))] * PARTITIONS


def batches_of(count: int) -> list[bytes]:
    """SEND frames for each partition, of batches of 1 KB messages."""
    return [encode_batches(count // PARTITIONS, BATCH_MESSAGES, 1024)] * PARTITIONS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The replication job as a child process, and what its tests look at on the clusters."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import psutil
import pulsar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.messages import Message
from interpulse.model.errors import NotFound
from interpulse.sync import Client
from tests.support.numbered_messages import publish_to
from tests.support.official_client import connected

TOPIC = "persistent://public/default/flights"
PARTITIONS = 4
_SHOWN_CHARS = 8_000
_TICKS_PER_SECOND = 10

log = logging.getLogger(__name__)


class Broker(Protocol):
    """What is needed to reach a cluster."""

    @property
    def service_url(self) -> str: ...

    @property
    def web_url(self) -> str: ...


Side = tuple[str, Broker]
"""A cluster's name, and where it is."""


def configure(
    directory: Path,
    source: Side,
    target: Side,
    *,
    topic: str = TOPIC,
    master: str = "local[2]",
    conf: Mapping[str, str] = MappingProxyType({}),
    access: tuple[str, str] = ("", ""),
    entries_per_batch: int = 500,
    run_ahead_ms: int | None = None,
) -> Path:
    """The configuration file of a job that keeps its state in the directory. ``access``: lines for each cluster."""
    directory.mkdir(exist_ok=True)
    path = directory / "job.toml"
    path.write_text(
        f"""
        [pipeline]
        name = "test"
        state = "{directory / "state"}"
        start = "earliest"
        [source]
        cluster = "{source[0]}"
        service_url = "{source[1].service_url}"
        admin_url = "{source[1].web_url}"
        {access[0]}
        [target]
        cluster = "{target[0]}"
        service_url = "{target[1].service_url}"
        admin_url = "{target[1].web_url}"
        {access[1]}
        [select]
        topics = ["{topic}"]
        [limits]
        entries_per_batch = {entries_per_batch}
        {"" if run_ahead_ms is None else f"run_ahead_ms = {run_ahead_ms}"}
        [spark]
        master = "{master}"
        driver_memory = "600m"
        conf = {{{", ".join(f'"{key}" = "{value}"' for key, value in conf.items())}}}
        """
    )
    return path


class Job:
    """Runs ``python -m interpulse.spark replicate``, or several jobs in one Spark session, and reads their lines."""

    def __init__(self, *configs: Path) -> None:
        given = [str(path) for path in configs]
        self._in_one_session = len(given) > 1
        several, one = ["tests.spark.one_session", *given], ["interpulse.spark", "replicate", "--config", given[0]]
        self._command = [sys.executable, "-m", *(several if self._in_one_session else one)]
        self._output = configs[0].with_suffix(".out")
        self._errors = configs[0].with_suffix(".err")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def start(self) -> Job:
        stdin = subprocess.PIPE if self._in_one_session else subprocess.DEVNULL
        with self._output.open("ab") as out, self._errors.open("ab") as err:
            self._process = subprocess.Popen(self._command, stdin=stdin, stdout=out, stderr=err)
        return self

    def lines(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """What the job has said of one kind, with these fields among others."""
        if not self._output.exists():
            return []
        lines = [json.loads(line) for line in self._output.read_text().splitlines()]
        return [line for line in lines if {"event": event, **fields}.items() <= line.items()]

    def errors(self) -> str:
        return self._errors.read_text()

    def family(self) -> list[int]:
        """The process and all it has started."""
        return [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]

    def kill(self, when: Callable[[], object]) -> None:
        """The process alone, as soon as that is so; returns when all it had started is gone too."""
        wait_until(lambda: len(self.family()) > 1)
        family = self.family()
        wait_until(when)
        self.process.kill()
        self.process.communicate()
        wait_until_gone(family)

    def stop(self) -> None:
        """As an operator would; jobs in one session end with their standard input. A test that fails shows the end of
        what it has said."""
        if self._process is None:
            return
        for said in (self._output, self._errors):
            log.warning("the end of %s:\n%s", said, said.read_text()[-_SHOWN_CHARS:])
        if self._process.poll() is not None:
            return
        if not self._in_one_session:
            self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=180)


def publish_keyed(broker: Broker, values: Iterable[int], *, topic: str = TOPIC, **options: Any) -> None:
    publish_to(broker.service_url, topic, values, keys=50, **options)


class Load:
    """Publishes numbers from 0 on while the block runs, each once also where the broker dies: ``count`` of them so far.

    About ``per_second``; a job on a busy machine can follow the default.
    """

    def __init__(self, broker: Broker, *, batched: bool = False, per_second: int = 100) -> None:
        self.count = 0
        self._service_url = broker.service_url
        self._batched = batched
        self._per_tick = per_second // _TICKS_PER_SECOND
        self._failures: list[object] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._publish)

    def _publish(self) -> None:
        with connected(self._service_url) as client:
            producer = client.create_producer(
                TOPIC,
                producer_name="load",
                send_timeout_millis=0,
                batching_enabled=self._batched,
                block_if_queue_full=True,
            )
            while not self._stopping.wait(1 / _TICKS_PER_SECOND):
                for number in range(self.count, self.count + self._per_tick):
                    producer.send_async(
                        str(number).encode(),
                        self._on_answer,
                        partition_key=f"k{number % 50}",
                        properties={"n": str(number)},
                        sequence_id=number,
                    )
                self.count += self._per_tick
            producer.flush()
            producer.close()

    def _on_answer(self, result: object, _: object) -> None:
        if result != pulsar.Result.Ok:
            self._failures.append(result)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for the receipts of everything."""
        self._stopping.set()
        self._thread.join()
        assert not self._failures, self._failures


def partitions(topic: str) -> list[str]:
    return [f"{topic}-partition-{index}" for index in range(PARTITIONS)]


def create_partitioned(broker: Broker, topic: str) -> None:
    async def create() -> None:
        async with AdminClient(broker.web_url) as admin:
            await admin.topics.create_partitioned(topic, PARTITIONS)

    asyncio.run(create())


def stored_entries(broker: Broker, *topics: str, access: Mapping[str, Any] = MappingProxyType({})) -> int:
    """How many entries the topics, else all partitions, hold: asked again and again it costs little, unlike reading.

    ``access`` is given to the admin client.
    """

    async def of(admin: AdminClient, name: str) -> int:
        try:
            return int((await admin.topics.internal_stats(name))["numberOfEntries"])
        except NotFound:
            return 0

    async def add() -> int:
        async with AdminClient(broker.web_url, **access) as admin:
            return sum([await of(admin, name) for name in topics or partitions(TOPIC)])

    return asyncio.run(add())


def read_all(broker: Broker, topic: str = TOPIC) -> list[Message]:
    found = []
    with Client(broker.service_url) as client:
        for name in partitions(topic):
            with client.create_reader(name) as reader:
                while reader.has_message_available():
                    found.append(reader.read_next(60_000))
    return found


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.2)  # to look costs a machine with two cores more than it costs the test to see it late


def wait_until_gone(processes: Sequence[int]) -> None:
    wait_until(lambda: not any(psutil.pid_exists(process) for process in processes), 180)


def assert_exactly_once(messages: Iterable[Message], expected: Iterable[int], source: str | None = "east") -> None:
    """Each expected number is there once, in the order of its key, and says where it was published (None: here)."""
    arrived = [message for message in messages if message.replicated_from == source]
    numbers = [int(message.content or b"") for message in arrived]
    assert Counter(numbers) == Counter(expected)
    for remainder in range(50):
        keyed = [number for number in numbers if number % 50 == remainder]
        assert keyed == sorted(keyed)
    assert all(message.properties["n"].encode() == message.content for message in arrived)

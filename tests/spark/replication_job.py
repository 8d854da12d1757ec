"""The replication job as a child process, and what its tests look at on the clusters."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.sync import Client
from interpulse.model.errors import NotFound

TOPIC = "persistent://public/default/flights"
PARTITIONS = 4


class Job:
    """Runs ``python -m interpulse.spark replicate`` and reads its lines."""

    def __init__(self, directory, east, west, source="east", target="west"):
        self.config = directory / "job.toml"
        self.output = directory / "job.out"
        self.config.write_text(
            f"""
            [pipeline]
            name = "test"
            state = "{directory / "state"}"
            start = "earliest"
            [source]
            cluster = "{source}"
            service_url = "{east.service_url}"
            admin_url = "{east.web_url}"
            [target]
            cluster = "{target}"
            service_url = "{west.service_url}"
            admin_url = "{west.web_url}"
            [select]
            topics = ["{TOPIC}"]
            [limits]
            entries_per_batch = 2000
            [spark]
            driver_memory = "600m"
            """
        )
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "interpulse.spark", "replicate", "--config", str(self.config)]
        with self.output.open("ab") as out, self.output.with_suffix(".err").open("ab") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)
        return self

    def lines(self, event):
        if not self.output.exists():
            return []
        lines = [json.loads(line) for line in self.output.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def family(self):
        return [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def publish(broker, values, **options):
    with Client(broker.service_url) as client, client.create_producer(TOPIC, **options) as producer:
        for value in values:
            producer.send_async(str(value).encode(), key=f"k{value % 50}", properties={"n": str(value)})
        producer.flush()


def stored_entries(broker, *topics):
    """How many entries the topics, else all partitions, hold: asked again and again it costs little, unlike reading."""
    names = topics or [f"{TOPIC}-partition-{index}" for index in range(PARTITIONS)]

    async def of(admin, name):
        try:
            return (await admin.topics.internal_stats(name))["numberOfEntries"]
        except NotFound:
            return 0

    async def add():
        async with AdminClient(broker.web_url) as admin:
            return sum([await of(admin, name) for name in names])

    return asyncio.run(add())


def read_all(broker):
    found = []
    with Client(broker.service_url) as client:
        for index in range(PARTITIONS):
            with client.create_reader(f"{TOPIC}-partition-{index}") as reader:
                while reader.has_message_available():
                    found.append(reader.read_next(5000))
    return found


def wait_until(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


def assert_exactly_once(messages, count, source="east"):
    numbers = [int(message.content) for message in messages]
    assert Counter(numbers) == Counter(range(count))
    for remainder in range(50):
        keyed = [number for number in numbers if number % 50 == remainder]
        assert keyed == sorted(keyed)
    assert all(message.properties["n"] == message.content.decode() for message in messages)
    assert all(message.replicated_from == source for message in messages)

"""What a gigabyte costs on Spark, read and written, in processor seconds by kind of process.

    .venv/bin/python -m benchmarks.spark_rows [--messages 400000] [--rounds 3]

One broker with a topic of four partitions, and Spark on the same cores; the least of all rounds counts. Processor
seconds per gigabyte are the cores that a gigabyte per second needs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.contenders import Interpulse, cpu_seconds
from benchmarks.raw_load import publish
from benchmarks.replicated_pairs import BATCH_MESSAGES, PARTITIONS, batches_of
from interpulse.client.admin.admin_client import AdminClient
from interpulse.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "persistent://public/default/rows"
COPIES = "persistent://public/default/copies"
MESSAGE_BYTES = 1024


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=400_000, help="of 1 KB, in batches of 100")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-rows-") as directory:
        root = Path(directory)
        broker = Interpulse(root / "broker", "--set", "brokerDeleteInactiveTopicsEnabled=false")
        broker.start()
        try:
            asyncio.run(_create(broker.web_url))
            _fill(broker.service_url, given.messages // BATCH_MESSAGES)
            _measure(root, broker, given.messages, given.rounds)
        finally:
            broker.stop()
    os._exit(0)


def _measure(root: Path, broker: Interpulse, messages: int, rounds: int) -> None:
    spark = start_session("rows benchmark", master="local[2]", driver_memory="1g", directory=root, conf={})
    options = {"service.url": broker.service_url}

    def read(**more: str) -> DataFrame:
        return spark.read.format("pulsar").options(**options, topic=TOPIC, maxPartitions="2", **more).load()

    def drop(frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def write(frame: DataFrame) -> None:
        frame.write.format("pulsar").options(**options, topic=COPIES).mode("append").save()

    made = spark.range(messages, numPartitions=2).selectExpr(f"repeat('x', {MESSAGE_BYTES}) as value").cache()
    made.count()
    cases: dict[str, Callable[[], None]] = {
        "read messages, seven columns": lambda: drop(read()),
        "read messages, `value` alone": lambda: drop(read(includeColumns="none")),
        "read entries as they are stored": lambda: drop(read(mode="entry")),
        "write messages": lambda: write(made),
    }
    gigabytes = messages * MESSAGE_BYTES / 1e9
    print("| 1 KB messages, batches of 100 | Java | Python workers | broker | Spark, s per GB |")
    print("| --- | --- | --- | --- | --- |")
    for name, run in cases.items():
        run()  # warm
        spent = min((_spent(broker, run) for _ in range(rounds)), key=lambda each: each["Java"] + each["Python"])
        shares = [spent[kind] / gigabytes for kind in ("Java", "Python", "broker")]
        print(f"| {name} | {' | '.join(f'{share:.1f}' for share in shares)} | {sum(shares[:2]):.1f} |", flush=True)


def _spent(broker: Interpulse, run: Callable[[], None]) -> dict[str, float]:
    before = _cpu_seconds(broker)
    run()
    return {kind: seconds - before[kind] for kind, seconds in _cpu_seconds(broker).items()}


def _cpu_seconds(broker: Interpulse) -> dict[str, float]:
    """Workers that have ended are counted by the process that started them."""
    (java,) = (each for each in psutil.Process().children() if each.name() == "java")
    times = java.cpu_times()
    workers = sum(sum(each.cpu_times()[:4]) for each in java.children(recursive=True))
    return {
        "broker": cpu_seconds(broker),
        "Java": times.user + times.system,
        "Python": times.children_user + times.children_system + workers,
    }


async def _create(url: str) -> None:
    async with AdminClient(url) as admin:
        for topic in (TOPIC, COPIES):
            await admin.topics.create_partitioned(topic, PARTITIONS)


def _fill(url: str, batches: int) -> None:
    frames = batches_of(batches)
    threads = [
        threading.Thread(target=publish, args=(url, f"{TOPIC}-partition-{index}", frames[index], batches // PARTITIONS))
        for index in range(PARTITIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()

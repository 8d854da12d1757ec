"""How long an audit takes: of inventories that no cluster ever had, and of two brokers of this machine.

    .venv/bin/python -m benchmarks.audit [--simulated 1000000] [--real 20000]

Simulated are the inventories alone: Spark makes them, and the time is that of the comparison with its summary. The two
brokers are audited whole: read, compared, and every difference read again; they share the cores with Spark. Processor
time is that of Java, its Python workers and this program, without the brokers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.contenders import Interpulse, cpu_seconds
from interpulse.client.admin.admin_client import AdminClient
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ReadingRules
from interpulse.spark.audit.comparing import INVENTORY_COLUMNS
from interpulse.spark.audit.launch import Audit, AuditOptions
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection
from interpulse.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMESPACES = 1000
REAL_NAMESPACES = 100
DIFFERENT = 1000
AT_ONCE = 32


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", type=int, default=1_000_000, help="topics of each inventory; 0: none")
    parser.add_argument("--real", type=int, default=20_000, help="topics of each broker, of 4 partitions; 0: none")
    parser.add_argument("--rate", type=float, default=2000, help="requests per second and broker")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-audit-") as directory, ExitStack() as stack:
        root = Path(directory)
        conf = {"spark.sql.shuffle.partitions": "16"}
        spark = start_session("audit benchmark", master=given.master, driver_memory="1g", directory=root, conf=conf)
        print("| topics a side | what | seconds | processor seconds | found |\n| --- | --- | --- | --- | --- |")
        if given.simulated:
            _simulated(spark, root, given.simulated)
        if given.real:
            _real(spark, root, given.real, given.rate, stack)
        print(f"\nthis program takes {psutil.Process().memory_info().rss >> 20} MB")
        spark.stop()
    os._exit(0)


def _simulated(spark: SparkSession, root: Path, topics: int) -> None:
    """A thousandth of the topics has fewer partitions on the target."""
    named = dict(column.split() for column in INVENTORY_COLUMNS.split(", "))
    for side in ("east", "west"):
        fewer = f"id % {max(topics // DIFFERENT, 1)} = 7 and '{side}' = 'west'"
        values = {
            "cluster": f"'{side}'",
            "tenant": "'t'",
            "namespace": f"concat('t/n', id % {NAMESPACES})",
            "domain": "'persistent'",
            "topic": f"concat('persistent://t/n', id % {NAMESPACES}, '/topic-', id)",
            "mapped": f"concat('persistent://t/n', id % {NAMESPACES}, '/topic-', id)",
            "kind": "'PARTITIONED'",
            "partitions": f"if({fewer}, 2, 4)",
            "exact": "true",
            "system": "false",
        }
        columns = [f"cast({values.get(name, 'null')} as {kind}) as {name}" for name, kind in named.items()]
        spark.range(topics).selectExpr(*columns).write.parquet(str(root / "simulated" / side))
    addresses = [
        ClusterAddress(cluster=name, service_url="pulsar://-", admin_url="http://-") for name in ("east", "west")
    ]
    _tell(topics, "compare two inventories", _audit(spark, root, "simulated", addresses, AuditOptions(confirm=False)))


def _real(spark: SparkSession, root: Path, topics: int, rate: float, stack: ExitStack) -> None:
    """One topic of twenty is missing on the target."""
    brokers = [Interpulse(root / name, "--cluster-name", name) for name in ("east", "west")]
    for broker in brokers:
        broker.start()
        stack.callback(broker.stop)
    asyncio.run(_create_both([broker.web_url for broker in brokers], topics))
    addresses = [
        ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
        for name, broker in zip(("east", "west"), brokers, strict=True)
    ]
    options = AuditOptions(rules=ReadingRules(rate=rate))
    spent = [cpu_seconds(broker) for broker in brokers]
    _tell(topics, "audit two brokers", _audit(spark, root, "real", addresses, options))
    told = ", ".join(f"{cpu_seconds(broker) - before:.1f}" for broker, before in zip(brokers, spent, strict=True))
    _tell(topics, "the same, subscriptions too", _audit(spark, root, "more", addresses, _with_subscriptions(options)))
    print(f"\nprocessor seconds of the brokers in the first audit: {told}")


def _with_subscriptions(options: AuditOptions) -> AuditOptions:
    return replace(options, rules=replace(options.rules, subscriptions=True))


async def _create_both(urls: Sequence[str], topics: int) -> None:
    is_there: tuple[Callable[[int], bool], ...] = (lambda _: True, lambda number: number % 20 != 7)
    await asyncio.gather(*(_create(url, topics, each) for url, each in zip(urls, is_there, strict=True)))


async def _create(url: str, topics: int, is_there: Callable[[int], bool]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def create(number: int) -> None:
        async with turns:
            await admin.topics.create_partitioned(f"public/n{number % REAL_NAMESPACES}/topic-{number}", 4)

    async with AdminClient(url) as admin:
        for number in range(REAL_NAMESPACES):
            await admin.namespaces.create(f"public/n{number}")
        await asyncio.gather(*(create(number) for number in range(topics) if is_there(number)))


def _audit(
    spark: SparkSession, root: Path, run: str, addresses: list[ClusterAddress], options: AuditOptions
) -> tuple[float, float, dict[str, Any]]:
    source, target = addresses
    select = Selection(namespaces=("public/default",))
    config = PipelineConfig(name="audit", state=root, source=source, target=target, select=select)
    started, spent = time.monotonic(), _own_cpu_seconds()
    summary = Audit(spark, root, run, config, lambda *_: None).compare(options)
    return time.monotonic() - started, _own_cpu_seconds() - spent, summary


def _tell(topics: int, what: str, measured: tuple[float, float, dict[str, Any]]) -> None:
    seconds, spent, summary = measured
    found = sum(row["count"] for row in summary["counts"])
    assert summary["result"] != "incomplete", summary["covered"]
    print(f"| {topics:,} | {what} | {seconds:.0f} | {spent:.0f} | {found:,} |", flush=True)


def _own_cpu_seconds() -> float:
    """Of this process and all below it but brokers; those that have ended are counted by their parents."""
    this = psutil.Process()
    spent = sum(this.cpu_times()[:2])
    for child in this.children():
        if "standalone" not in child.cmdline():
            for each in (child, *child.children(recursive=True)):
                spent += sum(each.cpu_times()[:4])
    return spent


if __name__ == "__main__":
    main()

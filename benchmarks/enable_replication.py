"""What enabling replication of a namespace with many topics costs, with clusters that are all ours and on this machine.

    python -m benchmarks.enable_replication [--topics 1000] [--clusters 2] [--partitioned 1.0] [--loaded]

Every cluster has the topics already, so everything is compared and nothing is created. No Spark job runs. The
comparison is what a preview takes; the whole call is what `namespaces set-clusters` makes. Processor time is that of
all brokers together, the source in brackets, until the call has returned. Keeps nothing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.contenders import Interpulse, cpu_seconds
from benchmarks.http_load import Request, run_requests
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData, TenantInfo

NAMESPACE = "bench/enabled"
PARTITIONS = 2
CONNECTIONS = 8
TIMEOUT_MS = 300_000
SETTINGS = ("--set", "replicationJob=external", "--set", "brokerDeleteInactiveTopicsEnabled=false")


class Meter:
    """Seconds and processor seconds of each step, as rows of a table."""

    def __init__(self, brokers: Sequence[Interpulse]) -> None:
        self.rows: list[str] = []
        self._brokers = brokers

    @contextmanager
    def of(self, title: str) -> Iterator[None]:
        before, started = self._spent(), time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        spent = [now - then for now, then in zip(self._spent(), before, strict=True)]
        self.rows.append(f"| {title} | {seconds:.2f} | {sum(spent):.2f} ({spent[0]:.2f}) |")

    def _spent(self) -> list[float]:
        return [cpu_seconds(broker) for broker in self._brokers]


def main(arguments: Sequence[str]) -> int:
    """Runs everything and prints a table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.enable_replication", description="See the module.")
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=2, help="remote clusters")
    parser.add_argument("--partitioned", type=float, default=1.0, help=f"share of topics with {PARTITIONS} partitions")
    parser.add_argument("--loaded", action="store_true", help="all topics are loaded on the source")
    options = parser.parse_args(arguments)
    names = ["source", *(f"remote-{number}" for number in range(options.clusters))]
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch, ExitStack() as stack:
        brokers = [Interpulse(Path(scratch) / name, "--cluster-name", name, *SETTINGS) for name in names]
        for broker in brokers:
            broker.start()
            stack.callback(broker.stop)
        clusters = dict(zip(names, brokers, strict=True))
        asyncio.run(_join(clusters))
        partitioned = round(options.topics * options.partitioned)
        for broker in brokers:
            run_requests(broker.web_url, _creations(options.topics, partitioned), connections=CONNECTIONS)
        if options.loaded:
            run_requests(brokers[0].web_url, _loads(options.topics, partitioned), connections=CONNECTIONS)
        meter = Meter(brokers)
        asyncio.run(_enable(clusters, meter))
    print(f"{options.topics} topics, {partitioned} of them partitioned, {options.clusters} remote clusters\n")
    print("\n".join(("| step | seconds | CPU seconds (source) |", "| --- | --- | --- |", *meter.rows)))
    return 0


async def _join(clusters: dict[str, Interpulse]) -> None:
    """Every cluster knows the others and has the namespace."""
    for name, broker in clusters.items():
        async with AdminClient(broker.web_url) as admin:
            for other, its in clusters.items():
                if other != name:
                    record = ClusterData(service_url=its.web_url, broker_service_url=its.service_url)
                    await admin.clusters.create(other, record)
            await admin.tenants.create("bench", TenantInfo(allowed_clusters=tuple(clusters)))
            await admin.namespaces.create(NAMESPACE)


def _creations(topics: int, partitioned: int) -> Iterable[Request]:
    path = f"/admin/v2/persistent/{NAMESPACE}"
    for number in range(topics):
        if number < partitioned:
            yield Request("PUT", f"{path}/t{number}/partitions", str(PARTITIONS).encode())
        else:
            yield Request("PUT", f"{path}/t{number}")


def _loads(topics: int, partitioned: int) -> Iterable[Request]:
    path = f"/admin/v2/persistent/{NAMESPACE}"
    for number in range(topics):
        suffixes = [f"-partition-{index}" for index in range(PARTITIONS)] if number < partitioned else [""]
        yield from (Request("GET", f"{path}/t{number}{suffix}/stats") for suffix in suffixes)


async def _enable(clusters: dict[str, Interpulse], meter: Meter) -> None:
    source, *_ = clusters
    async with AdminClient(clusters[source].web_url, timeout_ms=TIMEOUT_MS) as admin:
        with meter.of("comparison (preview)"):
            plan = await admin.namespaces.adjust_for_replication(NAMESPACE, clusters, previewed=True)
        assert plan["outcome"] == "READY", plan
        with meter.of("whole call, compared"):
            await admin.namespaces.set_replication_clusters(NAMESPACE, clusters, partitions_compared=True)
        with meter.of("taking the clusters out again"):
            await admin.namespaces.set_replication_clusters(NAMESPACE, [source], partitions_compared=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The main task as a user would do it: two clusters, one Spark pipeline between them, real data, and a verdict.

Environment: ``INPUT`` (.ndjson or .csv instead of the flights), ``KEY`` (column of INPUT that becomes the key),
``MESSAGES`` (limit), ``ONCE=1`` (end after the verdict), ``RUN_DIR`` (directory of the clusters' data). Exit codes: 0
everything arrived exactly once and equal, 1 something differs or failed, 2 the input is not usable.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from rich.console import Console

from broker_process import BrokerProcess, ClusterFailed
from dataset import DatasetError, Row, read_rows
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.policies.policy_records import RetentionPolicies
from interruption import run_until_interrupted
from screen import DatedConsole, Screen
from settings import Settings
from traffic import Message, Progress, PublishFailed, publish, read_back, watch
from verdict import Ledger, Verdict, verdict_lines

TENANT = "demo"
NAMESPACE = "demo/flights"
TOPIC = f"persistent://{NAMESPACE}/departures"
PARTITIONS = 4
STALLED_AFTER_S = 180.0
REFRESH_EVERY_S = 0.25
READ_AHEAD_ROWS = 400_000


class Stalled(Exception):
    """A long time without arrivals on west."""


async def set_up(east: AdminClient, west: AdminClient, clusters: dict[str, BrokerProcess]) -> None:
    """Make the admin calls of an operator, in order."""
    for admin in (east, west):
        for name, cluster in clusters.items():
            address = ClusterData(service_url=cluster.web_url, broker_service_url=cluster.service_url)
            await _register_cluster(admin, name, address)
        await admin.tenants.create(TENANT, TenantInfo(allowed_clusters=("east", "west")))
        await admin.namespaces.create(NAMESPACE)
        await admin.namespaces.set_retention(NAMESPACE, RetentionPolicies(time_minutes=-1, size_mb=-1))
    await east.topics.create_partitioned(TOPIC, PARTITIONS)
    await east.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
    await west.brokers.set_dynamic_configuration("allowAutoTopicCreation", "false")


async def _register_cluster(admin: AdminClient, name: str, address: ClusterData) -> None:
    if name in await admin.clusters.list():
        await admin.clusters.update(name, address)
    else:
        await admin.clusters.create(name, address)


async def until_replicating(east: AdminClient, clusters: dict[str, BrokerProcess], screen: Screen) -> None:
    """Wait until Spark has started and the pipeline is ready for every partition.

    No message would be lost without waiting: the replication cursors exist since it was enabled. But the measured
    delays would be those of a starting JVM.
    """
    screen.say("waiting for the Spark job that east has started")
    deadline = time.monotonic() + STALLED_AFTER_S
    while True:
        statuses = await east.namespaces.replication_status(NAMESPACE)
        screen.update(statuses)
        if statuses and all(status["state"] == "REPLICATING" for status in statuses):
            screen.note_replicating()
            return
        if time.monotonic() > deadline:
            found = sorted({f"{status['state']} ({status['reason'] or 'no reason given'})" for status in statuses})
            reasons = ", ".join(found) or "it says nothing"
            raise Stalled(
                f"the replication job is not ready after {STALLED_AFTER_S:.0f} s: {reasons}; "
                f"see {clusters['east'].log_path} and {clusters['east'].data_dir}/replication/job.log"
            )
        await asyncio.sleep(REFRESH_EVERY_S)


async def follow(
    east: AdminClient, west: AdminClient, clusters: dict[str, BrokerProcess], screen: Screen, run: Run
) -> None:
    """Publish on east, watch west, redraw. Return when west has everything."""
    publishing = asyncio.create_task(
        asyncio.to_thread(publish, clusters["east"].service_url, TOPIC, run.messages, run.progress, run.abandoned)
    )
    watching = asyncio.create_task(watch_when_provisioned(west, clusters["west"].service_url, run))
    last_count, last_change = -1, time.monotonic()
    try:
        while not (run.progress.publishing_done and run.progress.replicated_total >= run.progress.published_total):
            for task in (publishing, watching):
                if task.done():
                    task.result()
            screen.update(await east.namespaces.replication_status(NAMESPACE))
            if run.progress.replicated_total != last_count:
                last_count, last_change = run.progress.replicated_total, time.monotonic()
            elif time.monotonic() - last_change > STALLED_AFTER_S:
                raise Stalled(f"nothing arrived on west for {STALLED_AFTER_S:.0f} s, see {clusters['east'].log_path}")
            await asyncio.sleep(REFRESH_EVERY_S)
        screen.update(await east.namespaces.replication_status(NAMESPACE), last=True)
    except BaseException:
        run.abandoned.set()
        raise
    finally:
        run.watched.set()
        await asyncio.gather(publishing, watching, return_exceptions=True)


async def watch_when_provisioned(west: AdminClient, service_url: str, run: Run) -> None:
    """Watch west once the pipeline has provisioned the topic. West creates nothing by itself."""
    while not run.watched.is_set():
        try:
            await west.topics.partitioned_metadata(TOPIC)
        except NotFound:
            await asyncio.sleep(REFRESH_EVERY_S)
        else:
            await asyncio.to_thread(watch, service_url, TOPIC, run.progress, run.watched)


@dataclass(slots=True)
class Run:
    """The state of one demonstration, shared by its threads."""

    messages: Iterator[Message]
    ledger: Ledger
    progress: Progress
    watched: threading.Event
    abandoned: threading.Event

    @classmethod
    def of(cls, rows: Iterator[Row]) -> Run:
        ledger = Ledger()
        messages = ((row, ledger.published(row)) for row in rows)
        return cls(messages, ledger, Progress(PARTITIONS), threading.Event(), threading.Event())

    def read_ahead(self) -> None:
        """Prepare the first rows while Spark starts, so that the publisher does not compete with the pipeline."""
        rows = list(islice(self.messages, READ_AHEAD_ROWS))
        if len(rows) < READ_AHEAD_ROWS:
            self.progress.total = len(rows)
        self.messages = chain(rows, self.messages)


def report(console: Console, verdict: Verdict, progress: Progress, seconds: float) -> None:
    """Print the verdict and the measurements."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    equal = "messages are on west exactly once, in order per key, with equal key, event time, payload and properties"
    for line, style in verdict_lines(verdict, equal, f"published, {verdict.arrived:,} on west"):
        say(line, style)
    say(
        f"published {progress.published_total:,} in {progress.publish_seconds:.1f} s; from the first publish to the "
        f"last message on west {seconds:.1f} s; {steady_rate(progress):,.0f} messages/s replicated in steady state; "
        f"publish to visible on west: {delays(progress)}"
    )


def steady_rate(progress: Progress) -> float:
    """Return the messages per second on west between the first and the last tenth of all arrivals."""
    arrivals = progress.arrivals
    if len(arrivals) < 20:
        return 0.0
    (then, first), (now, last) = arrivals[len(arrivals) // 10], arrivals[-(len(arrivals) // 10) - 1]
    return (last - first) / max(now - then, 1e-3)


def delays(progress: Progress) -> str:
    """Return the median and the 99th percentile of the sampled delays."""
    if len(progress.delays_ms) < 2:
        return "too few messages to say"
    percentiles = statistics.quantiles(progress.delays_ms, n=100)
    return f"p50 {percentiles[49] / 1000:.2f} s, p99 {percentiles[98] / 1000:.2f} s"


HOW_TO_CONNECT = """\
Both clusters stay up; Ctrl-C stops them. Their data and logs are in {run_dir}

  east  {east.service_url}  {east.web_url}
  west  {west.service_url}  {west.web_url}

With the official client:

  import pulsar
  client = pulsar.Client("{west.service_url}")
  reader = client.create_reader("{topic}", pulsar.MessageId.earliest)
  message = reader.read_next()
  print(message.partition_key(), message.properties(), message.data().decode())

With the command line:

  {command} admin --admin-url {east.web_url} namespaces get-clusters {namespace}
  {command} admin --admin-url {west.web_url} topics partitioned-stats {topic}
  {command} consume --url {west.service_url} {topic} -s look -p Earliest -n 3
"""


def how_to_connect(settings: Settings, clusters: dict[str, BrokerProcess]) -> str:
    """Return the next steps for the reader, with the addresses of this run."""
    command = os.path.relpath(Path(sys.executable).parent / "interpulse")
    return HOW_TO_CONNECT.format(
        run_dir=settings.run_dir, topic=TOPIC, namespace=NAMESPACE, command=command, **clusters
    )


async def demonstrate(settings: Settings, console: Console) -> int:
    """Run everything from start to verdict, and return the exit code."""
    rows = read_rows(settings.source, settings.key_column, settings.limit)
    run = Run.of(rows)
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    clusters = {name: BrokerProcess.standalone(name, settings.run_dir) for name in ("east", "west")}

    def stay() -> None:
        console.print(how_to_connect(settings, clusters), highlight=False, soft_wrap=True)

    try:
        job = replicate_and_verify(settings, console, clusters, run)
        return await run_until_interrupted(job, run.abandoned, None if settings.once else stay)
    finally:
        console.print("stopping both clusters")
        for cluster in clusters.values():
            cluster.signal_stop()
        await asyncio.gather(*(cluster.wait_stopped() for cluster in clusters.values()))


async def replicate_and_verify(
    settings: Settings, console: Console, clusters: dict[str, BrokerProcess], run: Run
) -> int:
    """Start both clusters, run the job, compare."""
    await asyncio.gather(*(cluster.start() for cluster in clusters.values()))
    for name, cluster in clusters.items():
        console.print(f"{name}: {cluster.service_url} {cluster.web_url}", highlight=False)
    async with AdminClient(clusters["east"].web_url) as east, AdminClient(clusters["west"].web_url) as west:
        await set_up(east, west, clusters)
        console.print("replication east → west enabled; west creates no topic by itself", highlight=False)
        with Screen(console, run.progress) as screen:
            await asyncio.gather(until_replicating(east, clusters, screen), asyncio.to_thread(run.read_ahead))
            started = time.monotonic()
            await follow(east, west, clusters, screen, run)
        seconds = time.monotonic() - started
    console.print("reading west from its beginning to compare")
    verdict = await asyncio.to_thread(
        read_back, clusters["west"].service_url, TOPIC, PARTITIONS, run.ledger, run.abandoned
    )
    report(console, verdict, run.progress, seconds)
    return 0 if verdict.equal else 1


def main() -> int:
    """Run the demonstration. Every failure is one sentence and an exit code."""
    console = DatedConsole()
    try:
        return asyncio.run(demonstrate(Settings.from_environment(), console))
    except DatasetError as error:
        console.print(str(error), style="red", highlight=False)
        return 2
    except (ClusterFailed, PublishFailed, PulsarError, Stalled) as error:
        console.print(f"{type(error).__name__}: {error}", style="red", highlight=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""A cluster as a user would run it: three brokers on ZooKeeper and BookKeeper, one of which is killed under load.

Environment: ``INPUT`` (.ndjson or .csv instead of the flights), ``KEY`` (column of INPUT that becomes the key),
``MESSAGES`` (at most so many, 20000), ``ONCE=1`` (end after the verdict), ``RUN_DIR`` (where the data are kept).
Exit codes: 0 nothing acknowledged is lost, doubled or out of order, 1 something is or failed, 2 the input is not
usable, or ZooKeeper and BookKeeper cannot be had.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pulsar

from broker_process import INTERPULSE, BrokerProcess, ClusterFailed
from dataset import DatasetError, Row, read_rows
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.model.policies.namespace_policies import RetentionPolicies
from interruption import run_until_interrupted
from screen import DatedConsole
from settings import Settings
from shared_cluster import SESSION_TIMEOUT_S, SharedCluster
from tools.engines.jars import Unavailable
from tools.engines.server import ServerFailed
from traffic import Message, Progress, PublishFailed, publish, read_back
from verdict import Ledger, Verdict

NAMESPACE = "demo/flights"
TOPIC = f"persistent://{NAMESPACE}/departures"
PARTITIONS = 4
MESSAGES = 20_000
MESSAGES_MIN = 100
STALLED_AFTER_S = 120.0
LOOK_EVERY_S = 0.02
LINE_EVERY_S = 2.0
SILENCE_S = 1.0
"""Receipts on the way when the broker dies still come after the kill; those of its successor come seconds later."""


class Stalled(Exception):
    """No receipt came for a long time."""


@dataclass(slots=True)
class Run:
    """The state of one demonstration, shared by its threads."""

    rows: Sequence[Row]
    ledger: Ledger = field(default_factory=Ledger)
    progress: Progress = field(default_factory=lambda: Progress(PARTITIONS))
    killed: threading.Event = field(default_factory=threading.Event)
    abandoned: threading.Event = field(default_factory=threading.Event)

    def messages(self) -> Iterator[Message]:
        """All of them; the last third is held back until the broker is dead, however fast publishing is."""
        for number, row in enumerate(self.rows):
            if number == len(self.rows) * 2 // 3:
                self.killed.wait()
            yield row, self.ledger.published(row)

    def abandon(self) -> None:
        """Let the threads come to an end."""
        self.abandoned.set()
        self.killed.set()


async def set_up(admin: AdminClient) -> None:
    """The admin calls an operator would make. De-duplication drops what the client sends again to the next broker."""
    tenant = NAMESPACE.partition("/")[0]
    await admin.tenants.create(tenant, TenantInfo(allowed_clusters=tuple(await admin.clusters.list())))
    await admin.namespaces.create(NAMESPACE)
    await admin.namespaces.set_retention(NAMESPACE, RetentionPolicies(time_minutes=-1, size_mb=-1))
    await admin.namespaces.set_deduplication(NAMESPACE, True)
    await admin.topics.create_partitioned(TOPIC, PARTITIONS)


async def owners(admin: AdminClient, brokers: Sequence[BrokerProcess]) -> list[BrokerProcess | None]:
    """The broker of each partition, by one question; None where no broker can say it now."""
    partitions = [TopicName.parse(f"{TOPIC}-partition-{index}") for index in range(PARTITIONS)]
    answers = await admin.lookup.topics(partitions)
    by_url = {broker.web_url: broker for broker in brokers}
    found = (answers[partition] for partition in partitions)
    return [None if isinstance(answer, PulsarError) else by_url.get(answer["httpUrl"]) for answer in found]


class Failover:
    """Publishing while one broker dies."""

    def __init__(self, cluster: SharedCluster, run: Run, client_log: pulsar.FileLogger, console: DatedConsole) -> None:
        self._cluster = cluster
        self._run = run
        self._client_log = client_log
        self._console = console
        self.victim: BrokerProcess | None = None
        self.seconds: float | None = None
        """From the kill to the next receipt for a partition that the killed broker served; None: it got no message."""

    @property
    def survivors(self) -> list[BrokerProcess]:
        """The brokers that were not killed."""
        return [broker for broker in self._cluster.brokers if broker is not self.victim]

    async def publish(self) -> None:
        """Publish everything and kill a broker when a third has its receipts; returns with the last receipt."""
        run = self._run
        url = service_url(self._cluster.brokers)
        publishing = asyncio.create_task(
            asyncio.to_thread(publish, url, TOPIC, run.messages(), run.progress, run.abandoned, self._client_log)
        )
        try:
            await self._until(publishing, lambda: run.progress.published_total >= len(run.rows) // 3)
            served = await self._kill()
            await self._until_taken_over(publishing, served)
            await self._until(publishing, lambda: run.progress.publishing_done)
        except BaseException:
            run.abandon()
            raise
        finally:
            await asyncio.gather(publishing, return_exceptions=True)

    async def _kill(self) -> list[int]:
        """Kill the broker of the busiest partition; gives all partitions that it serves."""
        published = self._run.progress.published
        busiest = published.index(max(published))
        async with AdminClient(self._cluster.brokers[0].web_url) as admin:
            found = await owners(admin, self._cluster.brokers)
        self.victim = found[busiest]
        if self.victim is None:
            raise ClusterFailed(
                f"partition {busiest} of {TOPIC} has no broker, see {self._cluster.brokers[0].log_path}"
            )
        served = [index for index, owner in enumerate(found) if owner is self.victim]
        await self.victim.kill()
        self._say(
            f"{self.victim.name}, which serves {named(served)}, is killed (SIGKILL) "
            f"after {self._run.progress.published_total:,} of {len(self._run.rows):,} receipts"
        )
        return served

    async def _until_taken_over(self, publishing: asyncio.Task[None], served: Sequence[int]) -> None:
        progress, killed_at = self._run.progress, time.monotonic()
        self._run.killed.set()
        count, last_receipt_at = -1, killed_at

        def taken_over() -> bool:
            nonlocal count, last_receipt_at
            now, found = time.monotonic(), sum(progress.published[index] for index in served)
            if found == count:
                return progress.publishing_done
            if now - last_receipt_at >= SILENCE_S:
                self.seconds = now - killed_at
                return True
            count, last_receipt_at = found, now
            return False

        await self._until(publishing, taken_over)
        if self.seconds is not None:
            async with AdminClient(self.survivors[0].web_url) as admin:
                found = await owners(admin, self.survivors)
            names = sorted({owner.name for index, owner in enumerate(found) if owner is not None and index in served})
            self._say(f"the next receipt came {self.seconds:.1f} s after the kill; served by {', '.join(names)} now")

    async def _until(self, publishing: asyncio.Task[None], reached: Callable[[], bool]) -> None:
        """Await a condition, with a line now and then; raises what publishing raised, and Stalled."""
        progress = self._run.progress
        next_line = time.monotonic() + LINE_EVERY_S
        count, changed_at = -1, time.monotonic()
        while not reached():
            if publishing.done():
                publishing.result()
            now = time.monotonic()
            if progress.published_total != count:
                count, changed_at = progress.published_total, now
            elif now - changed_at > STALLED_AFTER_S:
                raise Stalled(f"no receipt came for {STALLED_AFTER_S:.0f} s, see {self.survivors[0].log_path}")
            if now >= next_line:
                next_line = now + LINE_EVERY_S
                waiting = f", none for {now - changed_at:.0f} s" if now - changed_at >= SILENCE_S else ""
                self._say(f"{count:,} of {len(self._run.rows):,} messages have receipts{waiting}")
            await asyncio.sleep(LOOK_EVERY_S)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


def named(partitions: Sequence[int]) -> str:
    """Partitions in a sentence."""
    return f"partition{'s' if len(partitions) > 1 else ''} {', '.join(map(str, partitions))}"


def service_url(brokers: Sequence[BrokerProcess]) -> str:
    """One URL with the addresses of all: a client asks another where one does not answer."""
    return "pulsar://" + ",".join(broker.service_url.removeprefix("pulsar://") for broker in brokers)


def report(console: DatedConsole, verdict: Verdict, failover: Failover, progress: Progress) -> None:
    """Print the verdict and the figures."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    if verdict.equal:
        say(
            f"verified: all {verdict.published:,} messages with a receipt are there exactly once, in order per key and "
            "producer, with equal key, event time, payload and properties",
            "bold green",
        )
    else:
        say(f"DIFFERENT: {verdict.published:,} have receipts, {verdict.arrived:,} are there", "bold red")
        for line in verdict.findings():
            say(line)
    took = (
        "nothing was published to its partitions afterwards"
        if failover.seconds is None
        else (
            f"{failover.seconds:.1f} s from the kill to the next receipt, of which the session of the killed broker "
            f"({SESSION_TIMEOUT_S} s here, metadataStoreSessionTimeoutMillis) is the largest part"
        )
    )
    say(f"published {progress.published_total:,} in {progress.publish_seconds:.1f} s; fail-over: {took}")


HOW_TO_CONNECT = """\
The cluster stays up; Ctrl-C stops it. Its data and logs are in {run_dir}

  {brokers}
  ZooKeeper  {metadata_url}

With the official client:

  import pulsar
  client = pulsar.Client("{service_url}")
  reader = client.create_reader("{topic}", pulsar.MessageId.earliest)
  message = reader.read_next()
  print(message.partition_key(), message.properties(), message.data().decode())

With the command line:

  {command} admin --admin-url {web_url} brokers list lab
  {command} admin --admin-url {web_url} topics partitioned-lookup {topic}
  {command} consume --url {service_url} {topic} -s look -p Earliest -n 3
"""


def how_to_connect(settings: Settings, cluster: SharedCluster) -> str:
    """What to try next, with the addresses of this run."""
    return HOW_TO_CONNECT.format(
        run_dir=settings.run_dir,
        topic=TOPIC,
        command=os.path.relpath(INTERPULSE),
        brokers="\n  ".join(f"{broker.name}   {broker.service_url}  {broker.web_url}" for broker in cluster.brokers),
        metadata_url=cluster.metadata_url,
        service_url=service_url(cluster.brokers),
        web_url=cluster.brokers[0].web_url,
    )


async def demonstrate(settings: Settings, console: DatedConsole) -> int:
    """Everything from start to verdict; returns the exit code."""
    run = Run(list(read_rows(settings.source, settings.key_column, settings.limit)))
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    cluster = SharedCluster(settings.run_dir, lambda text: console.print(text, highlight=False, soft_wrap=True))

    def stay() -> None:
        console.print(how_to_connect(settings, cluster), highlight=False, soft_wrap=True)

    try:
        job = kill_and_verify(settings, console, cluster, run)
        return await run_until_interrupted(job, run.abandoned, None if settings.once else stay)
    finally:
        run.abandon()
        console.print("stopping brokers, bookies and ZooKeeper")
        await cluster.stop()


async def kill_and_verify(settings: Settings, console: DatedConsole, cluster: SharedCluster, run: Run) -> int:
    """Start the cluster, publish, kill, compare; afterwards the killed broker is started again if all stays up."""
    await cluster.start()
    async with AdminClient(cluster.brokers[0].web_url) as admin:
        await set_up(admin)
    # The client tells each attempt to reach the broker that is dead.
    client_log = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(settings.run_dir / "client.log"))
    failover = Failover(cluster, run, client_log, console)
    await failover.publish()
    console.print("reading the topic from its beginning to compare")
    verdict = await asyncio.to_thread(
        read_back, service_url(failover.survivors), TOPIC, PARTITIONS, run.ledger, run.abandoned
    )
    report(console, verdict, failover, run.progress)
    if not settings.once and failover.victim is not None:
        await failover.victim.start()
        console.print(f"{failover.victim.name} is started again", highlight=False)
    return 0 if verdict.equal else 1


def main() -> int:
    """Run the demonstration; every failure is one sentence and an exit code."""
    console = DatedConsole()
    try:
        settings = Settings.from_environment(limit=MESSAGES, limit_min=MESSAGES_MIN)
        return asyncio.run(demonstrate(settings, console))
    except (DatasetError, Unavailable) as error:
        console.print(str(error), style="red", highlight=False, soft_wrap=True)
        return 2
    except (ClusterFailed, ServerFailed, PublishFailed, PulsarError, Stalled, pulsar.PulsarException) as error:
        console.print(f"{type(error).__name__}: {error}", style="red", highlight=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""A cluster as a user would run it: three brokers on ZooKeeper and BookKeeper, one of which is killed under load.

Environment: ``INPUT`` (.ndjson or .csv instead of the flights), ``KEY`` (column of INPUT that becomes the key),
``MESSAGES`` (limit, 20000), ``ONCE=1`` (end after the verdict), ``RUN_DIR`` (directory of the data). Exit codes: 0
every acknowledged message is stored once and in order, 1 the check or the run failed, 2 the input is not usable, or
ZooKeeper and BookKeeper are not available.
"""

from __future__ import annotations

import asyncio
import os
import sys

import pulsar

from broker_process import INTERPULSE, ClusterFailed
from dataset import DatasetError, read_rows
from failover import NAMESPACE, PARTITIONS, TOPIC, Failover, Run, Stalled, service_url
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import TenantInfo
from interpulse.model.errors import PulsarError
from interpulse.model.policies.policy_records import RetentionPolicies
from interruption import run_until_interrupted
from screen import DatedConsole
from settings import Settings
from shared_cluster import SESSION_TIMEOUT_S, SharedCluster
from tools.engines.jars import Unavailable
from tools.engines.server import ServerFailed
from traffic import Progress, PublishFailed, read_back
from verdict import Verdict, verdict_lines

MESSAGES = 20_000
MESSAGES_MIN = 100


async def set_up(admin: AdminClient) -> None:
    """Make the admin calls of an operator. De-duplication drops what the client resends to the next broker."""
    tenant = NAMESPACE.partition("/")[0]
    await admin.tenants.create(tenant, TenantInfo(allowed_clusters=tuple(await admin.clusters.list())))
    await admin.namespaces.create(NAMESPACE)
    await admin.namespaces.set_retention(NAMESPACE, RetentionPolicies(time_minutes=-1, size_mb=-1))
    await admin.namespaces.set_deduplication(NAMESPACE, True)
    await admin.topics.create_partitioned(TOPIC, PARTITIONS)


def report(console: DatedConsole, verdict: Verdict, failover: Failover, progress: Progress) -> None:
    """Print the verdict and the measurements."""

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, highlight=False, soft_wrap=True)

    equal = (
        "messages with a receipt are there exactly once, in order per key and producer, with equal key, event time, "
        "payload and properties"
    )
    for line, style in verdict_lines(verdict, equal, f"have receipts, {verdict.arrived:,} are there"):
        say(line, style)
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
    """Return the next steps for the reader, with the addresses of this run."""
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
    """Run everything from start to verdict, and return the exit code."""
    run = Run(list(read_rows(settings.source, settings.key_column, settings.limit)))
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    if any(settings.run_dir.iterdir()):
        raise DatasetError(f"RUN_DIR={settings.run_dir}: it is not empty; name a directory for this run alone")
    cluster = SharedCluster(settings.run_dir, lambda text: console.print(text, highlight=False, soft_wrap=True))

    def stay() -> None:
        console.print(how_to_connect(settings, cluster), highlight=False, soft_wrap=True)

    try:
        job = kill_and_verify(settings, console, cluster, run)
        return await run_until_interrupted(job, run.abandoned, None if settings.once else stay)
    finally:
        run.abandon()
        await cluster.stop()


async def kill_and_verify(settings: Settings, console: DatedConsole, cluster: SharedCluster, run: Run) -> int:
    """Start the cluster, publish, kill, compare. Restart the killed broker if the cluster stays up."""
    await cluster.start()
    async with AdminClient(cluster.brokers[0].web_url) as admin:
        await set_up(admin)
    # The client logs each attempt to reach the dead broker.
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
    """Run the demonstration. Every failure is one sentence and an exit code."""
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

"""Two clusters that know each other, one of which may be a real Pulsar: where scenarios of replication are played.

No job runs beside a broker of ours: the tests take its turns, one by one and without Spark.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, ProvisionRules, Selection
from interpulse.spark.job.selection import RemoteSelection, select
from tests.support.cli_cluster import CliCluster
from tests.support.pipeline_turns import copy_log, is_ready
from tools.engines.server import free_port

T = TypeVar("T")
Record = dict[str, Any]
PATIENCE_S: Final = 120.0
KEPT: Final = "--disable-delete-while-inactive -t 1h -m delete_when_no_subscriptions"


@dataclass(frozen=True)
class Cluster(CliCluster):
    """One side: its name, and whether it is ours."""

    name: str = ""
    is_ours: bool = True

    def know(self, other: Cluster) -> None:
        """Register the other cluster, or its present address."""
        verb = "update" if other.name in self.run("clusters list").split() else "create"
        self.run(f"clusters {verb} {other.name} --url {other.web_url} --broker-url {other.service_url}")

    def partitions(self, topic: str) -> int | None:
        """The count, None if there is no such topic."""
        code, output, error = self.attempt(f"topics get-partitioned-topic-metadata {topic}")
        assert code == 0 or "not found" in error.lower(), error
        return None if code else int(json.loads(output)["partitions"])

    def topics(self, namespace: str) -> list[str]:
        """Short names of what is stored there."""
        return [line.rpartition("/")[2] for line in self.run(f"topics list {namespace}").splitlines()]

    def clusters_of(self, namespace: str) -> list[str]:
        return sorted(self.run(f"namespaces get-clusters {namespace}").split())


@dataclass(frozen=True)
class Pair:
    """Where topics are, where they go, and a namespace of one test that exists on both."""

    source: Cluster
    target: Cluster
    tenant: str = field(default_factory=lambda: f"pair-{uuid.uuid4().hex[:8]}")

    @property
    def namespace(self) -> str:
        return f"{self.tenant}/a"

    def begin(self) -> Pair:
        """Register each side on the other, and make the namespace on both; its topics stay."""
        names = f"{self.source.name},{self.target.name}"
        for here, there in ((self.source, self.target), (self.target, self.source)):
            here.know(there)
            here.run(f"tenants create {self.tenant} -c {names}")
            here.run(f"namespaces create {self.namespace} -c {here.name}")
            here.run(f"namespaces set-inactive-topic-policies {self.namespace} {KEPT}")
        return self

    def topic(self, name: str) -> str:
        return f"persistent://{self.namespace}/{name}"

    @property
    def both(self) -> str:
        return f"{self.source.name},{self.target.name}"

    def enable(self, options: str = "") -> None:
        self.source.run(f"namespaces set-clusters {self.namespace} -c {self.both} {options}")

    def status(self, topic: str) -> Record:
        """The one record of a topic; only our brokers have it."""
        (record,) = self.source.json(f"topics replication-status {topic} -o json")
        assert record["cluster"] == self.target.name
        found: Record = record
        return found

    def with_target_down(self) -> Pair:
        """The source is told of one more cluster, which is down, and may be replicated to that one instead."""
        closed = f"127.0.0.1:{free_port()}"
        name = f"down-{uuid.uuid4().hex[:6]}"
        down = replace(self, target=Cluster(f"http://{closed}", f"pulsar://{closed}", name))
        self.source.know(down.target)
        self.source.run(f"tenants update {self.tenant} -c {down.both}")
        return down


def replicating(pair: Pair, topic: str) -> Callable[[], bool]:
    """Return a question: is the replicator of a real source connected? It begins with what is published then."""

    def connected() -> bool:
        code, output, _ = pair.source.attempt(f"topics stats {topic}")
        return code == 0 and bool(json.loads(output)["replication"].get(pair.target.name, {}).get("connected"))

    return connected


def backlog(pair: Pair, topic: str) -> int:
    """Return how much the replicator of a real source has had no receipt for."""
    behind: int = pair.source.json(f"topics stats {topic}")["replication"][pair.target.name]["replicationBacklog"]
    return behind


def until(question: Callable[[], object], expected: object, *, seconds: float = PATIENCE_S) -> None:
    """Ask again and again; fails with the last answer."""
    deadline = time.monotonic() + seconds
    while (answer := question()) != expected:
        assert time.monotonic() < deadline, f"expected {expected!r}, last answer {answer!r}"
        time.sleep(0.05)


def provision_as_job(pair: Pair, directory: Path, *topics: str, target: ClusterAddress) -> list[Record]:
    """One turn of the replication job's control side, without Spark; the status records that it reports."""
    counts = {TopicName.parse(topic): pair.source.partitions(topic) or 0 for topic in topics}
    return asyncio.run(_turn(pair, directory, RemoteSelection(target, counts), copying=False))


def replicate_as_job(pair: Pair, directory: Path, *, create: bool = True) -> list[Record]:
    """One turn of the whole job: what policies select of the namespace is provisioned, and copied as Spark's tasks do.

    ``create``: the job may create topics on the target.
    """
    return asyncio.run(_turn(pair, directory, None, copying=True, create=create))


async def _turn(
    pair: Pair, directory: Path, selection: RemoteSelection | None, *, copying: bool, create: bool = True
) -> list[Record]:
    config = PipelineConfig(
        name="scenario",
        state=directory,
        source=_address(pair.source),
        target=None,
        select=Selection(from_policies=True),
        provision=ProvisionRules(create=create),
        as_replicator=True,
    )
    async with AdminClient(pair.source.web_url) as source:
        wanted = selection or (await select(config, source))[pair.target.name]
        topics = {name: count for name, count in wanted.topics.items() if str(name.namespace_name) == pair.namespace}
        pipeline = Pipeline(config, source, wanted.address, None, lambda line: None, "unused")  # type: ignore[arg-type]
        try:
            await pipeline.update(topics)
            records = [record for rows in pipeline.records().values() for record in rows]
            await source.namespaces.report_replication_status(pair.namespace, records)
            if copying:
                async with Client(pair.source.service_url) as here, Client(pair.target.service_url) as there:
                    for record in filter(is_ready, records):
                        await copy_log(here, there, TopicName.parse(record["topic"]), pipeline)
        finally:
            await pipeline.stop()
    return records


def _address(cluster: Cluster) -> ClusterAddress:
    return ClusterAddress(cluster=cluster.name, service_url=cluster.service_url, admin_url=cluster.web_url)

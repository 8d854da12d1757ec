"""A pair of clusters of ours that copy to each other all the time, by jobs without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from interpulse.client.admin.admin_client import AdminClient
from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.rules.failover_role import FailoverRole, parse_role
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection, SubscriptionSettings
from interpulse.testing import InProcessBroker
from tests.support.pipeline_turns import copy_log
from tests.support.waiting import SECONDS_MAX

NAMESPACE = NamespaceName.parse("public/default")
TOPIC = TopicName.parse("persistent://public/default/orders")
PARTITIONS = 2
NAME = "billing"
OTHER = {"east": "west", "west": "east"}


class CopyingPair:
    """The clusters east and west, with a job in each direction; see `copying_pair`."""

    def __init__(self, directory: Path, brokers: Mapping[str, InProcessBroker]) -> None:
        self.directory = directory
        self.brokers = brokers
        self.addresses = {
            name: ClusterAddress(cluster=name, service_url=broker.service_url, admin_url=broker.web_url)
            for name, broker in brokers.items()
        }
        self.admins = {name: address.admin() for name, address in self.addresses.items()}
        self.clients = {name: address.client() for name, address in self.addresses.items()}
        self.held: set[str] = set()
        """Sites whose entries are not copied at present."""
        self._jobs = {name: self._job(name) for name in brokers}
        self._copying: asyncio.Task[None] | None = None

    async def replicate(self) -> None:
        """Replicate the namespace in both directions, and begin to copy."""
        for name, admin in self.admins.items():
            other = self.addresses[OTHER[name]]
            data = ClusterData(service_url=other.admin_url, broker_service_url=other.service_url)
            await admin.clusters.create(other.cluster, data)
            await admin.tenants.update("public", TenantInfo(allowed_clusters=tuple(OTHER)))
            await admin.namespaces.set_replication_clusters(NAMESPACE, list(OTHER))
        self._copying = asyncio.create_task(self._copy())

    def _job(self, source: str) -> Pipeline:
        remote = OTHER[source]
        config = PipelineConfig(
            name="t",
            state=self.directory / "jobs" / source,
            source=self.addresses[source],
            target=self.addresses[remote],
            select=Selection(topics=(str(TOPIC),)),
            as_replicator=True,
            subscriptions=SubscriptionSettings(interval_ms=20),
        )
        arguments = self.addresses[remote], None, lambda event: None, f"pulsar.repl.{remote}"
        return Pipeline(config, self.admins[source], *arguments)

    async def _copy(self) -> None:
        while True:
            for source, job in self._jobs.items():
                await self._turn(source, job)
            await asyncio.sleep(0.02)

    async def _turn(self, source: str, job: Pipeline) -> None:
        """Do what the job and its tasks do, and report it."""
        heartbeats = [
            TopicName.parse(name)
            for name in await self.admins[source].topics.list(NAMESPACE)
            if name.endswith("-heartbeat")
        ]
        await job.update({TOPIC: PARTITIONS, **dict.fromkeys(heartbeats, 0)})
        records = [record for rows in job.records().values() for record in rows]
        is_ready = {record["topic"]: record["reason"] == "Spark is starting" for record in records}
        for topic in map(TopicName.parse, (name for name, ready in is_ready.items() if ready)):
            if source not in self.held:
                await copy_log(self.clients[source], self.clients[OTHER[source]], topic, job)
        shown = [
            {**record, "state": "REPLICATING", "reason": None} if is_ready[record["topic"]] else record
            for record in records
        ]
        await self.admins[source].namespaces.report_replication_status(NAMESPACE, shown)

    async def until_copied(self) -> None:
        """Return when both jobs report that they copy every partition: then the sites de-duplicate."""
        async with asyncio.timeout(SECONDS_MAX):
            while not all([await self._is_copied(each) for each in self.admins.values()]):  # noqa: ASYNC110  # no event
                await asyncio.sleep(0.02)

    async def _is_copied(self, admin: AdminClient) -> bool:
        records = await admin.namespaces.replication_status(NAMESPACE)
        return [record["state"] for record in records] == ["REPLICATING"] * PARTITIONS

    def config(self, **limits: int) -> PairConfig:
        """Return the file of the pair as the commands read it."""
        return parse_pair_config(self.tables(**limits))

    def tables(self, **limits: int) -> dict[str, Any]:
        """Return the tables of the file."""
        pair = {
            "name": "orders",
            "sites": ["east", "west"],
            "namespaces": [str(NAMESPACE)],
            "state": str(self.directory / "state"),
        }
        sites = {
            name: {"cluster": name, "service_url": address.service_url, "admin_url": address.admin_url}
            for name, address in self.addresses.items()
        }
        return {"pair": pair, "limits": {"settle_s": 1, **limits}, **sites}

    async def roles(self) -> dict[str, FailoverRole]:
        """Return the role of the namespace at each site."""
        shown = {name: await admin.namespaces.failover_role(NAMESPACE) for name, admin in self.admins.items()}
        return {name: parse_role(each["role"]) for name, each in shown.items()}

    async def contents(self, site: str) -> list[list[str]]:
        """Return the messages of each partition of a site, in order."""
        found = []
        for index in range(PARTITIONS):
            reader = await self.clients[site].create_reader(str(TOPIC.partition(index)))
            values = []
            while await reader.has_message_available():
                values.append(((await reader.read_next()).content or b"").decode())
            await reader.close()
            found.append(values)
        return found

    async def close(self) -> None:
        if self._copying is not None:
            self._copying.cancel()
            with suppress(asyncio.CancelledError):
                await self._copying
        for job in self._jobs.values():
            await job.stop()
        for closing in [*self.clients.values(), *self.admins.values()]:
            await closing.close()


@asynccontextmanager
async def copying_pair(directory: Path, **settings: str) -> AsyncIterator[CopyingPair]:
    """Two brokers with a partitioned topic and a subscription that is carried."""
    keys = {"replicationJob": "external", **settings}
    with (
        InProcessBroker(directory / "east", {"clusterName": "east", **keys}) as east,
        InProcessBroker(directory / "west", {"clusterName": "west", **keys}) as west,
    ):
        pair = CopyingPair(directory, {"east": east, "west": west})
        try:
            await pair.replicate()
            await pair.admins["east"].topics.create_partitioned(TOPIC, PARTITIONS)
            await pair.admins["east"].topics.create_subscription(TOPIC, NAME, MessageId(*EARLIEST), replicated=True)
            await pair.until_copied()
            yield pair
        finally:
            await pair.close()

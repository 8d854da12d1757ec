"""Replication of one cluster to the other ones by its policies, as the replication job does it, but without Spark.

Topics, subscriptions and reports are those of the job (`Pipeline`). A task in this event loop copies each
topic-partition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.clock import now_ms
from interpulse.model.errors import PulsarError
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, Selection, SubscriptionSettings
from interpulse.spark.job.routes.copying import CopyFailure
from interpulse.spark.job.selection import RemoteSelection, cursor_name, select
from interpulse.testing.copied_topic import Clusters, CopiedTopic

log = logging.getLogger(__name__)

_TURN_S: Final = 0.2
"""Period in which topics and policies are looked at."""
_STATUS_S: Final = 0.2


class Copier:
    """Replication from one cluster. :meth:`run` goes on until it is cancelled."""

    def __init__(self, directory: Path, source: ClusterAddress, *, interval_ms: int) -> None:
        """Keep state below ``directory``, and exchange acknowledgements every ``interval_ms``."""
        self._config = PipelineConfig(
            name="pair",
            state=directory,
            source=source,
            target=None,
            select=Selection(from_policies=True),
            as_replicator=True,
            subscriptions=SubscriptionSettings(interval_ms=interval_ms),
        )
        self._routes: dict[str, _RouteCopies] = {}

    async def run(self) -> None:
        """Copy until cancelled. A cluster that does not answer is asked again."""
        async with self._config.source.admin() as admin:
            reporting = asyncio.create_task(self._report(admin))
            try:
                while not reporting.done():
                    with suppress(PulsarError):  # a cluster of the pair is away
                        await self._turn(admin)
                    await asyncio.wait([reporting], timeout=_TURN_S)
                reporting.result()
            finally:
                reporting.cancel()
                await asyncio.gather(reporting, return_exceptions=True)
                await asyncio.gather(*(route.close() for route in self._routes.values()))

    async def _turn(self, admin: AdminClient) -> None:
        selected = await select(self._config, admin)
        for remote in self._routes.keys() - selected.keys():
            await self._routes.pop(remote).close()
        for remote, selection in selected.items():
            await self._follow(admin, remote, selection)

    async def _follow(self, admin: AdminClient, remote: str, selection: RemoteSelection) -> None:
        address = selection.address
        if address is None:
            log.warning("cluster is not copied to cluster=%s reason=%s", remote, selection.problem)
            return
        if remote not in self._routes:
            cursor = await cursor_name(admin, self._config, remote)
            self._routes[remote] = _RouteCopies(self._config, admin, address, cursor)
        await self._routes[remote].follow(selection)

    async def _report(self, admin: AdminClient) -> None:
        """Report the state of every topic-partition to the source, as the job does each second."""
        while True:
            for route in list(self._routes.values()):
                with suppress(PulsarError):
                    await route.report(admin)
            await asyncio.sleep(_STATUS_S)


class _RouteCopies:
    """One route: its pipeline, and the copies of its topic-partitions."""

    def __init__(self, config: PipelineConfig, admin: AdminClient, address: ClusterAddress, cursor: str) -> None:
        self._tasks = _Tasks()
        self._pipeline = Pipeline(config, admin, address, None, _log_event, cursor, copying=self._tasks)
        self._source = config.source.session()
        self._copies: dict[str, CopiedTopic] = {}
        self._number = 0

    async def follow(self, selection: RemoteSelection) -> None:
        """Prepare new topics, and copy those that are ready."""
        await self._pipeline.update(selection.topics)
        topics = self._pipeline.topics
        ready = set(topics.ready_partitions())
        await self._tasks.leave(self._tasks.running.keys() - ready)
        for name in ready - self._tasks.running.keys():
            self._number += 1
            clusters = Clusters(self._source, topics.session)
            self._copies[name] = CopiedTopic(self._pipeline.route, name, clusters, self._number)
            self._tasks.running[name] = asyncio.create_task(self._copies[name].run())
        self._tasks.take_ended()

    async def report(self, admin: AdminClient) -> None:
        await self._pipeline.refresh_backlog()
        for namespace, records in self._pipeline.records().items():
            rows = [self._with_problem(record) for record in records]
            await admin.namespaces.report_replication_status(namespace, rows)

    def _with_problem(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the reason why its topic-partition is not copied, if there is one."""
        copy = self._copies.get(record["topic"])
        if copy is None or not copy.problem or record["state"] != "REPLICATING":
            return record
        remedy = "start the cluster that is away, or correct the target; the copy goes on by itself"
        return {**record, "state": "HELD", "reason": copy.problem, "remedy": remedy, "since": now_ms()}

    async def close(self) -> None:
        await self._pipeline.stop()
        await self._source.close()


class _Tasks:
    """The tasks that copy, in the place of a streaming query; see `Copying`."""

    failure: CopyFailure | None = None
    was_heard_of = True
    has_started = True

    def __init__(self) -> None:
        self.running: dict[str, asyncio.Task[None]] = {}

    def take_ended(self) -> None:
        """Raise what ended a task unexpectedly."""
        for task in self.running.values():
            if task.done():
                task.result()

    async def leave(self, names: set[str]) -> None:
        """End the copies of topic-partitions."""
        tasks = [self.running.pop(name) for name in names]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def keep(self, spark: object, *, is_away: bool = False) -> None:
        """Do nothing: the route starts the tasks itself."""

    def note_progress(self) -> None:
        """Do nothing: tasks need no sign of life."""

    async def stop(self) -> None:
        await self.leave(set(self.running))


def _log_event(event: Mapping[str, Any]) -> None:
    log.debug("copier reports details=%s", event)

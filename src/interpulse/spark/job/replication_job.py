"""The geo-replication job: one streaming query per remote cluster, in one Spark session.

The control loop reads the source's policies repeatedly, provisions topics, and keeps the queries running; data goes
through Spark alone. The job ends on SIGTERM or SIGINT, or, as a supervised child, when its parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.clock import now_ms
from interpulse.model.clusters import shown_address
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.provision import describe_problem
from interpulse.spark.job.heartbeat import send_heartbeats
from interpulse.spark.job.pipeline import Pipeline
from interpulse.spark.job.pipeline_config import PipelineConfig, check_cluster_name
from interpulse.spark.job.reports.progress import BatchProgress
from interpulse.spark.job.reports.report import JsonLines, Report
from interpulse.spark.job.reports.status_records import StatusRecords
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_topics import JobEnds
from interpulse.spark.job.selection import (
    RemoteSelection,
    check_start,
    cursor_name,
    is_interpulse,
    partitions_of,
    select,
)
from interpulse.spark.job.source_changes import SourceChanges
from interpulse.spark.processes.no_pandas import exclude_pandas
from interpulse.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_STOP_S: Final = 3.0
_STATUS_S: Final = 1.0
_TURN_S: Final = 5.0
_CHECKPOINT_FILES: Final = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
"""Spark settings that write checkpoint files without checksum files.

A micro-batch writes two files, and for each file, Hadoop starts a process that sets its permissions.
"""
_NO_JAVA: Final = "Java, in which Spark runs, has ended; start the job again, it goes on from its checkpoint"


class ReplicationJob:
    """All pipelines of one source cluster."""

    def __init__(self, config: PipelineConfig, *, supervised: bool, reports: Sequence[Report] = (JsonLines(),)) -> None:
        self._config = config
        self._reports = reports
        self._supervised = supervised
        self._stopping = asyncio.Event()
        self._pipelines: dict[str, Pipeline] = {}
        self._updates: dict[str, asyncio.Task[None]] = {}
        """Updates in progress, by remote cluster. Their pipelines are not touched until they end."""
        self._update_errors: dict[str, str] = {}
        self._spark: SparkSession | None = None
        self._unusable_remotes: dict[str, UnusableRemote] = {}
        self._source_error = ""
        self._is_source_ready = False
        self._names_checked: set[str] = set()
        self._selected: Mapping[str, RemoteSelection] = {}
        self._selected_at = 0
        """Number of the changes on the source after which the selection was read; see `SourceChanges`."""

    def _emit(self, event: Mapping[str, Any]) -> None:
        for report in self._reports:
            report.take(event)

    def _emit_error(self, cluster: str, error: str) -> None:
        self._emit({"event": "error", "cluster": cluster, "error": error})

    async def run(self) -> int:
        """Run until stopped, and return the exit code.

        Raises PipelineConfigError if a cluster's name differs from the file. Errors of clusters are reported and
        retried. Other failures are raised.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        if self._supervised:
            threading.Thread(target=self._watch_parent, args=(loop,), daemon=True).start()
        self._config.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with self._config.source.admin() as admin:
            starting = asyncio.create_task(self._start_spark())
            reporting = asyncio.create_task(self._report_status(admin))
            beating = asyncio.create_task(send_heartbeats(self._config, admin))
            changes = SourceChanges(admin)
            controlling = asyncio.create_task(self._control(admin, changes, starting))
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                # A turn may wait for clusters that do not answer; the end does not.
                await _first_of({controlling, stopping}, watched={reporting, beating})
            finally:
                tasks = (controlling, stopping, reporting, beating, *self._updates.values())
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await changes.close()
                await self._stop(starting)
        return controlling.result() if not controlling.cancelled() else 0

    def _watch_parent(self, loop: asyncio.AbstractEventLoop) -> None:
        """End with the supervisor, which holds the other end of standard input."""
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                continue
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._stopping.set)

    async def _start_spark(self) -> None:
        """Start Spark in the background. It takes seconds, during which topics are provisioned."""
        exclude_pandas()
        settings, began = self._config.spark, time.monotonic()
        self._spark = await asyncio.to_thread(
            start_session,
            f"interpulse replicate {self._config.name}",
            master=settings.master,
            driver_memory=settings.driver_memory,
            directory=self._config.state,
            conf={**_CHECKPOINT_FILES, **settings.conf},
        )
        self._emit({"event": "ready", "what": "Spark", "seconds": round(time.monotonic() - began, 1)})
        self._listen(self._spark)
        for pipeline in self._pipelines.values():
            pipeline.spark = self._spark

    def _listen(self, spark: SparkSession) -> None:
        from interpulse.spark.job.reports.progress import ProgressListener

        loop = asyncio.get_running_loop()

        def in_loop(take: Callable[[Any], None], what: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(take, what)

        listener = ProgressListener(partial(in_loop, self._take_progress), partial(in_loop, self._take_idle))
        spark.streams.addListener(listener)

    def _take_progress(self, progress: BatchProgress) -> None:
        if progress.query in self._pipelines:
            self._pipelines[progress.query].take_progress(progress)

    def _take_idle(self, query: str) -> None:
        if query in self._pipelines:
            self._pipelines[query].take_idle()

    async def _control(self, admin: AdminClient, changes: SourceChanges, starting: asyncio.Task[None]) -> int:
        while not self._stopping.is_set():
            if starting.done():
                starting.result()
                if _java_has_ended():
                    self._emit_error(self._config.source.cluster, _NO_JAVA)
                    return 1
            try:
                await self._turn(admin, await changes.number())
                self._source_error = ""
                self._note_source(None)
                if not self._is_source_ready:
                    self._is_source_ready = True
                    self._emit({"event": "ready", "what": self._config.source.shown})
            except JobEnds as end:
                self._emit_error(self._config.source.cluster, str(end))
                return 1
            except PulsarError as error:
                self._note_source(error)
                if str(error) != self._source_error:
                    self._source_error = str(error)
                    self._emit_error(self._config.source.cluster, f"source: {error}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.limits.discovery_ms / 1000):
                    await self._stopping.wait()
        return 0

    def _note_source(self, error: PulsarError | None) -> None:
        """Note in the status of every topic that the source does not answer."""
        source, problem = self._config.source, None
        if error is not None:
            outage = describe_problem(source.cluster, error)
            problem = outage._replace(reason=f"the source {source.shown} does not answer: {outage.reason}")
        for pipeline in self._pipelines.values():
            pipeline.note_source(problem)

    async def _turn(self, admin: AdminClient, changes: int) -> None:
        """Bring the pipelines in line with the present selection, which is read after changes on the source.

        Each is updated by itself: a cluster that does not answer delays neither the others nor the next turn.
        """
        self._take_ended()
        await self._check_name("source", self._config.source, admin)
        if self._config.target is not None and "target" not in self._names_checked:
            # Not there yet, or silent: the status of its topics says so, and it is asked again.
            with contextlib.suppress(PulsarError, TimeoutError):
                async with asyncio.timeout(_TURN_S), self._config.target.admin() as target:
                    await self._check_name("target", self._config.target, target)
        if changes != self._selected_at:
            self._selected, self._selected_at = await select(self._config, admin), changes
        selected = self._selected
        self._check_start(selected)
        self._note_unusable_remotes(selected)
        for remote in [name for name in self._pipelines if name not in selected and name not in self._updates]:
            self._emit({"event": "stopped", "cluster": remote, "reason": "no policy asks for it"})
            await self._pipelines.pop(remote).retire()
        for remote, selection in selected.items():
            if remote in self._updates:
                continue
            pipeline = self._pipelines.get(remote)
            if pipeline is not None and pipeline.route.target != selection.address:
                await self._pipelines.pop(remote).stop()  # the cluster has moved; the checkpoint stays good
            if selection.address is None:
                continue
            if remote not in self._pipelines:
                self._pipelines[remote] = await self._new_pipeline(admin, selection.address)
            self._updates[remote] = asyncio.create_task(self._pipelines[remote].update(selection.topics, changes))
        if self._updates:
            await asyncio.wait(self._updates.values(), timeout=_TURN_S)
        self._take_ended()

    def _check_start(self, selected: Mapping[str, RemoteSelection]) -> None:
        """Check ``start`` of a new pipeline. One that ran before may have topics that left the selection."""
        if not self._pipelines:
            addresses = [selection.address for selection in selected.values() if selection.address is not None]
            if not any(Route(self._config, address, "").checkpoint.exists() for address in addresses):
                check_start(self._config, selected)

    async def _check_name(self, side: str, address: ClusterAddress, admin: AdminClient) -> None:
        """Check the cluster's name once. Names in policies are checked with their topics."""
        if side not in self._names_checked:
            await check_cluster_name(side, address, admin)
            self._names_checked.add(side)

    def _take_ended(self) -> None:
        """Collect ended updates. A new error is reported for its cluster, and the next turn retries."""
        for remote in [remote for remote, update in self._updates.items() if update.done()]:
            error = self._updates.pop(remote).exception()
            reported = self._update_errors.pop(remote, None)
            if isinstance(error, JobEnds):
                raise error
            if error is not None:
                text = self._update_errors[remote] = f"{type(error).__name__}: {error}"
                if text != reported:
                    self._emit_error(remote, text)
                    log.error("cluster not brought up to date cluster=%s", remote, exc_info=error)

    async def _new_pipeline(self, admin: AdminClient, target: ClusterAddress) -> Pipeline:
        self._emit({"event": "pipeline", "cluster": target.cluster, "target": shown_address(target.service_url)})
        cursor = await cursor_name(admin, self._config, target.cluster)
        return Pipeline(self._config, admin, target, self._spark, self._emit, cursor)

    def _note_unusable_remotes(self, selected: Mapping[str, RemoteSelection]) -> None:
        """Report clusters with unusable records once, and in the status of every topic."""
        before, self._unusable_remotes = self._unusable_remotes, {}
        for remote, selection in selected.items():
            if selection.address is None:
                unusable = before.get(remote)
                if unusable is None or unusable.problem != selection.problem:
                    self._emit_error(remote, selection.problem)
                    unusable = UnusableRemote(remote, selection.problem, since_ms=now_ms())
                self._unusable_remotes[remote] = replace(unusable, topics=selection.topics)

    async def _report_status(self, admin: AdminClient) -> None:
        """Report the state of every topic-partition, also to the source's admin API if it keeps such records."""
        wanting, status = [report for report in self._reports if report.wants_records], StatusRecords(admin)
        keeps_records: bool | None = None
        while keeps_records is not False or wanting:
            if keeps_records is None:
                with contextlib.suppress(PulsarError):
                    keeps_records = await is_interpulse(admin)
            for pipeline in list(self._pipelines.values()):
                await pipeline.refresh_backlog()
            reporters: list[Pipeline | UnusableRemote] = [*self._unusable_remotes.values(), *self._pipelines.values()]
            reported = [item for reporter in reporters for item in reporter.records().items()]
            written = {remote: pipeline.take_written() for remote, pipeline in self._pipelines.items()}
            for report in wanting:
                report.show([record for _, records in reported for record in records], written)
            for namespace, records in reported if keeps_records else ():
                await status.send(namespace, records)
            await asyncio.sleep(_STATUS_S)

    async def _stop(self, starting: asyncio.Task[None]) -> None:
        """Stop the queries and Spark, killing what does not end in time. A batch in progress is replayed later."""
        starting.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                ends = (pipeline.stop() for pipeline in self._pipelines.values())
                await asyncio.gather(*ends, return_exceptions=True)
                if self._spark is not None and not _java_has_ended():
                    await asyncio.to_thread(self._spark.stop)
        end_java()


async def _first_of(tasks: set[asyncio.Task[Any]], *, watched: set[asyncio.Task[Any]]) -> None:
    """Return when one of ``tasks`` is done; ``watched`` may end before. Raise errors of any of them."""
    pending = tasks | watched
    while tasks <= pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


def end_java() -> None:
    """Kill the Java process that this process started, if it still runs. Its Python workers end with it."""
    process = _java()
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()


def _java_has_ended() -> bool:
    """Return True if Java has ended. Spark then answers no more calls, and this process cannot restart it."""
    process = _java()
    return process is not None and process.poll() is not None


def _java() -> subprocess.Popen[bytes] | None:
    """Return the Java process that this process started. Under spark-submit, Java starts Python instead."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


@dataclass(frozen=True)
class UnusableRemote:
    """One cluster, with the topics and partition counts that policies replicate to it."""

    remote: str
    problem: str
    since_ms: int
    topics: Mapping[TopicName, int] = field(default_factory=dict)

    def records(self) -> dict[NamespaceName, list[dict[str, Any]]]:
        """Return status records by namespace."""
        by_namespace: dict[NamespaceName, list[dict[str, Any]]] = {}
        for topic, count in self.topics.items():
            rows = by_namespace.setdefault(topic.namespace_name, [])
            rows.extend(self._record(name) for name in partitions_of(topic, count))
        return by_namespace

    def _record(self, name: str) -> dict[str, Any]:
        return {
            "topic": name,
            "cluster": self.remote,
            "state": "HELD",
            "since": self.since_ms,
            "reason": self.problem,
            "remedy": f"fix the record of {self.remote} (clusters update {self.remote} ... with all its addresses: the "
            "whole record is replaced); it is read again automatically",
            "nextRetryAt": None,
            "lagEntries": None,
            "lagSeconds": None,
        }

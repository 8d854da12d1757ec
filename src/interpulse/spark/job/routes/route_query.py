"""Streaming query of one route, which is started again after a pause when it fails."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from interpulse.client.outages import remedy_for
from interpulse.clock import now_ms
from interpulse.spark.job.pipeline_config import FORWARD_ORIGIN
from interpulse.spark.job.routes.copying import CopyFailure
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.options.connection_options import access_as_options, access_of
from interpulse.spark.options.option import OptionError
from interpulse.spark.session import file_url, starting_a_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

_BACKOFF_FIRST_S: Final = 1.0
_BACKOFF_MAX_S: Final = 300.0
_UNREACHABLE_MAX_S: Final = 5.0
_PROVEN_AFTER_S: Final = 60.0
_LAST_BATCH_S: Final = 0.8
_OUTAGE_MS: Final = 10_000
"""Time for which a task waits for the target while it occupies a slot that other clusters' tasks need.

After that the query ends, the status gives the reason, and it starts again when the target answers.
"""
_PERMANENT: Final = ("HolesFound", "LaneInUse", "OptionError", "went backwards", "continue with the interpulse release")
_PASSING: Final = (
    *("NotConnected", "OperationTimeout", "ServiceNotReady", "ProducerBusy", "ConsumerBusy"),
    "failed to connect back",  # a busy machine: Spark gives its Python ten seconds to start
)

_RUN_AHEAD_HERE_MS: Final = 60_000
_RUN_AHEAD_ELSEWHERE_MS: Final = 5_000
"""Executors on other machines do not see what is to end a batch, nor does the cursor follow what they copy."""
_END_CAUSE: Final = "end what the reason names"
_REMEDY: Final = f"it is tried again by itself; if it stays, {_END_CAUSE}, see also the job's log"


class RouteQuery:
    """The query of a route. ``failure`` stays until a micro-batch completes or there is none to run."""

    def __init__(self, route: Route, emit: Emit) -> None:
        self.failure: CopyFailure | None = None
        self.was_heard_of = False
        self._retry_at = 0.0
        self._route = route
        self._emit = emit
        self._query: StreamingQuery | None = None
        self._pause = _BACKOFF_FIRST_S
        self._is_permanent = False
        self._started_at = 0.0
        self._progressed = asyncio.Event()

    @property
    def has_started(self) -> bool:
        return self._started_at > 0

    async def keep(self, spark: SparkSession, *, is_away: bool = False) -> None:
        """Start the query unless it runs, its pause is not over, or it failed for good.

        After a failure it is not started before the target answers: its tasks would wait in slots that others need.
        """
        if self._is_permanent or time.monotonic() < self._retry_at:
            return
        query = self._query
        if query is None:
            if not (is_away and self.failure is not None):
                await self._start(spark)
        elif not await asyncio.to_thread(lambda: query.isActive):
            await self._note_end(query)

    async def _start(self, spark: SparkSession) -> None:
        try:
            self._query = await asyncio.to_thread(self._begin, spark)
        except Exception as error:  # noqa: BLE001 - any failure of Spark is reported and retried
            self._note_failure(f"{type(error).__name__}: {error}")
        else:
            self._started_at = time.monotonic()

    def _begin(self, spark: SparkSession) -> StreamingQuery:
        from interpulse.spark.copying.copy_reader import ReportCommit
        from interpulse.spark.copying.copy_source import COPY_FORMAT, CopyDataSource

        if spark.conf.get("spark.speculation", "false") == "true":  # settings are not ours under spark-submit
            raise OptionError(
                "spark.speculation=true: a second attempt would wait for the producer names of the first; set it to "
                "false"
            )
        if not self._route.config.carries_subscriptions:
            self._route.files.positions.clear()  # no one reads them
        with starting_a_query(spark):
            spark.dataSource.register(CopyDataSource)
            reports = spark.readStream.format(COPY_FORMAT).options(**self._options(spark)).load()
            writer = reports.writeStream.foreachBatch(ReportCommit(str(self._route.directory)))
            writer = writer.option("checkpointLocation", file_url(self._route.checkpoint)).queryName(self._route.remote)
            return writer.trigger(processingTime=f"{self._route.config.limits.trigger_ms} milliseconds").start()

    def _options(self, spark: SparkSession) -> dict[str, str]:
        from interpulse.spark.copying.copy_source import copy_options

        return copy_options(
            source_options(self._route),
            sink_options(self._route),
            run_ahead_ms=self._run_ahead_ms(spark),
            cursor_follows=_runs_here(spark),
            position_runs=self._route.config.carries_subscriptions,
        )

    def _run_ahead_ms(self, spark: SparkSession) -> int:
        """Return how long tasks run ahead: not at all where the tasks of another query would wait for their slots."""
        limits, slots = self._route.config.limits, spark.sparkContext.defaultParallelism
        length_ms = _RUN_AHEAD_HERE_MS if _runs_here(spark) else _RUN_AHEAD_ELSEWHERE_MS
        if limits.run_ahead_ms is not None:
            length_ms = limits.run_ahead_ms
        wanted = limits.tasks * (len(spark.streams.active) + 1)
        if length_ms and slots < wanted:
            log.warning(
                "tasks do not run ahead, since they would occupy all slots of Spark cluster=%s slots=%d wanted=%d",
                *(self._route.remote, slots, wanted),
            )
            return 0
        return length_ms

    async def _note_end(self, query: StreamingQuery) -> None:
        self._query = None
        error = await asyncio.to_thread(query.exception)
        if time.monotonic() - self._started_at > _PROVEN_AFTER_S:
            self._pause = _BACKOFF_FIRST_S
        self._note_failure(str(error) if error is not None else "the query ended")

    def _note_failure(self, text: str) -> None:
        self._is_permanent = any(word in text for word in _PERMANENT)
        self._retry_at = time.monotonic() + self._pause
        reason = _shortened(text)
        remedy = remedy_for(reason)
        if self._is_permanent:
            remedy = f"{remedy or _END_CAUSE}, then start the job again: by itself it does not try any more"
        since_ms, retry_at = self.failure.since_ms if self.failure else now_ms(), self._retry_at
        self.failure = CopyFailure(reason, remedy or _REMEDY, since_ms, None if self._is_permanent else retry_at)
        limit = _UNREACHABLE_MAX_S if any(word in text for word in _PASSING) else _BACKOFF_MAX_S
        self._pause = min(self._pause * 2, limit)
        cause = text.partition("=== Streaming Query ===")[0]
        log.warning("replication failed cluster=%s error=%s", self._route.remote, cause)
        self._emit("error", error=self.failure.reason, permanent=self._is_permanent)

    def note_progress(self) -> None:
        """Record that a micro-batch completed, or that there is nothing to do."""
        if self._query is None:
            return  # of a query that has failed since
        self.was_heard_of = True
        self.failure = None
        self._progressed.set()

    async def stop(self) -> None:
        """Stop the query, after the batch in progress if that ends soon. Else it is replayed at the next start."""
        query = self._query
        if query is None:
            return
        status = await asyncio.to_thread(lambda: query.status)
        if status["isTriggerActive"] and status["isDataAvailable"]:
            self._progressed.clear()
            self._route.files.end_run_ahead(now_ms())
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_BATCH_S):
                    await self._progressed.wait()
        self._query = None
        await asyncio.to_thread(query.stop)


def _runs_here(spark: SparkSession) -> bool:
    """Return True if tasks run on this machine, and Spark repeats none by itself, as ``local[4,2]`` would."""
    master = spark.sparkContext.master or ""
    return master.startswith("local[") and "," not in master


def source_options(route: Route) -> dict[str, str]:
    """Return the options of the stream's source."""
    limits = route.config.limits
    return {
        "service.url": route.config.source.service_url,
        **access_as_options(access_of(route.config.source)),
        "topicsFile": str(route.topics_file),
        "mode": "entry",
        "startingOffsets": route.config.start.offsets,
        "predefinedSubscription": route.cursor,
        "maxEntriesPerTrigger": str(limits.entries_per_batch),
        "maxBytesPerTrigger": str(limits.bytes_per_batch),
        "maxPartitions": str(limits.tasks),
        "offsetPollIntervalMs": str(limits.poll_ms),
    }


def sink_options(route: Route) -> dict[str, str]:
    """Return the options of the stream's sink."""
    options = {
        "service.url": route.target.service_url,
        **access_as_options(access_of(route.target)),
        "outageTimeoutMs": str(_OUTAGE_MS),
        "mode": "entry",
        "deliveryGuarantee": "exactly-once",
        "producerName": route.lane_name,
        "replicatedFrom": route.config.source.cluster,
        "targetCluster": route.remote,
        "statePath": str(route.directory),
        "isolate": "true",
        "assumeDeduplication": "true",  # seen to before a topic is listed
    }
    if route.config.forward == FORWARD_ORIGIN:
        options["forward"] = FORWARD_ORIGIN
    if route.config.map:
        options["topicMap"] = route.config.map.to_json()
    if route.config.copy_schemas:
        options["schemaSourceUrl"] = route.config.source.service_url
        options |= access_as_options(access_of(route.config.source), "schemaSource")
    return options


def _shortened(text: str) -> str:
    """Return the line that names the cause: Spark wraps Python errors in long Java traces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("interpulse.") or "interpulse.model.errors" in line]
    return next(iter((*ours[-1:], *lines, text)))[:500]

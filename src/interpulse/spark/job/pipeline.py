"""Replication to one remote cluster: prepares its topics, keeps one streaming query running, reports its state."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.outages import remedy_for
from interpulse.clock import now_ms
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.provision import ReplicationProblem
from interpulse.spark.job.heartbeat import HeartbeatArrivals
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.job.reports.report import Written
from interpulse.spark.job.routes.copying import CopyFailure, Copying
from interpulse.spark.job.routes.live_copies import LiveCopies
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.job.routes.route_lag import CopyRate, RouteLag, RouteRates
from interpulse.spark.job.routes.route_query import RouteQuery
from interpulse.spark.job.routes.route_topics import RouteTopics, TopicState
from interpulse.spark.job.selection import partitions_of
from interpulse.spark.job.source_backlog import Backlog
from interpulse.spark.job.subscriptions.subscription_sync import SubscriptionSync
from interpulse.spark.state_files import HeldRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from interpulse.spark.job.reports.progress import BatchProgress


class Pipeline:
    """Replication to one remote cluster. Call ``update`` repeatedly with the present selection.

    Without ``spark``, which may come later, topics are prepared and nothing is copied.
    """

    def __init__(
        self,
        config: PipelineConfig,
        source: AdminClient,
        address: ClusterAddress,
        spark: SparkSession | None,
        emit: Callable[[dict[str, Any]], None],
        cursor: str,
        copying: Copying | None = None,
    ) -> None:
        """Create a pipeline. ``copying`` takes the place of the streaming query, and its owner keeps it running."""

        def emit_of_route(event: str, **details: Any) -> None:
            emit({"event": event, "cluster": address.cluster, **details})

        self.route = Route(config, address, cursor)
        self.topics = RouteTopics(self.route, source, emit_of_route)
        self.spark = spark
        self._emit: Emit = emit_of_route
        self._query: Copying = RouteQuery(self.route, emit_of_route) if copying is None else copying
        self._lag = RouteLag(self.route, source)
        self._rates = RouteRates()
        self._live = LiveCopies(self.route.files)
        self._subscriptions = SubscriptionSync(self.route, source, self._live, emit_of_route)
        self._heartbeat = HeartbeatArrivals(self.route, emit_of_route)
        self._started = False
        self._away: CopyFailure | None = None
        self._reported_holds: Mapping[str, str] = {}
        self._healed_count = 0
        self._healed_last: Mapping[str, Any] = {}

    async def update(self, topics: Mapping[TopicName, int], changes: int | None = None) -> None:
        """Provision new topics, hold those that do not fit, and keep the query running.

        ``changes`` is the number of `SourceChanges`; None: anything may have changed.
        """
        if not self._started and not self.route.checkpoint.exists():
            self.route.files.forget()  # entries written before are then found on the target
        self._started = True
        is_under_way = self._query.has_started or self.route.checkpoint.exists()
        await self.topics.update(topics, changes, is_under_way=is_under_way)
        if self.spark is not None:
            await self._query.keep(self.spark, is_away=self.topics.is_away)
        await self._subscriptions.follow(self.topics.ready_partitions(), self.topics.admin, self.topics.session)
        await self._heartbeat.follow(self.topics)

    def take_progress(self, progress: BatchProgress) -> None:
        """Record a completed micro-batch."""
        self._lag.note_progress(progress)
        self._query.note_progress()
        written = self.route.files.summary_of(progress.batch_id)
        line = progress.to_json()
        if written is not None:
            total = Written(written["entries"], written["messages"], written["bytes"])
            rest = self._live.complete(progress.batch_id, written.get("topics", {}), total)
            self._rates.note(rest, time.monotonic())
            line["written"] = {key: value for key, value in written.items() if key not in ("batchId", "topics")}
            self._report_healed(written.get("healed", ()))
        self._emit(**line)
        self._report_holds(self.route.files.held())

    def _report_holds(self, held: Mapping[str, HeldRange]) -> None:
        """Report once what the target refused in a batch, and what it takes again."""
        reported = self._reported_holds
        for name, item in held.items():
            if reported.get(name) != item.reason:
                self._emit("held", topic=name, reason=item.reason, remedy=_hold_of(item)["remedy"])
        for name in reported.keys() - held.keys():
            self._emit("released", topic=name)
        self._reported_holds = {name: item.reason for name, item in held.items()}

    def _report_healed(self, healed: Sequence[Mapping[str, Any]]) -> None:
        """Report failures at either cluster that healed within tasks of a batch."""
        for failure in healed:
            self._healed_count += failure["count"]
            self._healed_last = failure
            self._emit("healed", **failure)

    def note_source(self, problem: ReplicationProblem | None) -> None:
        """Record why the source does not answer, or None if it does."""
        if problem is None:
            self._away = None
        elif self._away is None or self._away.reason != problem.reason:
            since = self._away.since_ms if self._away is not None else now_ms()
            self._away = CopyFailure(problem.reason, problem.remedy, since, None)

    def take_idle(self) -> None:
        """Record that the query runs and has nothing to do."""
        self._query.note_progress()

    def take_written(self) -> Written:
        """Return what was written since the last call, also within a micro-batch."""
        return self._live.take()

    async def refresh_backlog(self) -> None:
        """Ask the source for the backlog where Spark does not report it."""
        self._rates.note(self._live.refresh(), time.monotonic())
        await self._lag.refresh(self.topics.partitions(), self._live.positions)

    def records(self) -> dict[NamespaceName, list[dict[str, Any]]]:
        """Return status records by namespace."""
        by_namespace: dict[NamespaceName, list[dict[str, Any]]] = {}
        held = self.route.files.held()
        rates = self._rates.all(time.monotonic())
        for topic, state in self.topics.states.items():
            rows = by_namespace.setdefault(topic.namespace_name, [])
            for name in partitions_of(topic, state.partitions):
                record = self._record(name, state, rates.get(name, CopyRate()))
                # An operator who moves the cursor behind a held range gives it up; the held file does not say so.
                is_held = name in held and state.is_ready and record["lagEntries"] != 0
                rows.append(record | (_hold_of(held[name]) if is_held else self._throttling_of(topic, name, record)))
        return by_namespace

    def _record(self, name: str, state: TopicState, rate: CopyRate) -> dict[str, Any]:
        progress, lag = self._lag.progress, self._lag.reported(name)
        failure = (self._query.failure or self._away) if state.is_ready else None
        starting = state.is_ready and not self._query.was_heard_of and failure is None
        retry_at = failure.retry_at if failure else None if state.is_ready else state.retry_at
        return {
            "topic": name,
            "cluster": self.route.remote,
            "state": "DISCONNECTED" if failure else "PROVISIONING" if starting else state.state,
            "since": failure.since_ms if failure else state.since_ms,
            "reason": failure.reason if failure else state.reason or ("Spark is starting" if starting else None),
            "remedy": failure.remedy if failure else state.remedy,
            "nextRetryAt": None if retry_at is None else now_ms() + int(max(0.0, retry_at - time.monotonic()) * 1000),
            **self._lag_fields(name),
            "skippedEntries": 0 if lag is None else lag.passed,
            "msgRateOut": round(rate.messages, 3),
            "msgThroughputOut": round(rate.bytes, 3),
            "batchId": progress.batch_id if progress is not None else None,
            "batchMs": progress.duration_ms if progress is not None else None,
            "provisioned": state.provisioned,
            "healedCount": self._healed_count,
            "healedReason": self._healed_last.get("reason"),
            "healedRemedy": self._healed_last.get("remedy"),
            **self._subscription_fields(name),
        }

    def _throttling_of(self, topic: TopicName, name: str, record: Mapping[str, Any]) -> dict[str, str]:
        """Return why a copied topic-partition is behind, if its rate is the reason. The job enforces rates itself."""
        rate = self.topics.rate_of(topic)
        is_copied = record["state"] == "REPLICATING" and record["reason"] is None
        lag = self._lag.reported(name)
        if rate is None or not is_copied or not record["lagEntries"] or lag is None or not lag.throttled:
            return {}
        return {"reason": f"throttled by replicatorDispatchRate: {rate.shown}", "remedy": _THROTTLED_REMEDY}

    def _lag_fields(self, name: str) -> dict[str, float | None]:
        backlog = self._lag.of(name) or self._lag.reported(name)
        entries = None if backlog is None else backlog.entries
        messages = backlog.messages if isinstance(backlog, Backlog) else None
        messages = self._rates.messages_in(name, entries) if messages is None else messages
        seconds = None if backlog is None or backlog.seconds is None else round(backlog.seconds, 3)
        return {"lagEntries": entries, "lagMessages": messages, "lagSeconds": seconds}

    def _subscription_fields(self, name: str) -> dict[str, str | int | None]:
        """Return the standing of the subscriptions of a topic-partition."""
        standing = self._subscriptions.standing_of(name)
        if standing is None:
            return {}
        return {
            "subscriptionState": standing.state,
            "subscriptionReason": standing.reason,
            "subscriptionPending": standing.pending,
            "subscriptionAgeMs": standing.age_ms,
        }

    async def retire(self) -> None:
        """Stop because no policy asks for this cluster any more.

        If one does later, replication resumes at the cursor.
        """
        await self.stop()
        shutil.rmtree(self.route.checkpoint, ignore_errors=True)

    async def stop(self) -> None:
        """Stop the query. The batch in progress is replayed at the next start."""
        await self._subscriptions.close()
        await self._heartbeat.close()
        await self._query.stop()
        await self._lag.close()
        await self.topics.close()


_THROTTLED_REMEDY: Final = (
    "wait, or raise the rate on the source: interpulse-admin topics set-replicator-dispatch-rate for this topic, "
    "namespaces set-replicator-dispatch-rate for all of its namespace"
)
_HELD_REMEDY: Final = "resolve what the reason names; the entries are kept and retried automatically"


def _hold_of(held: HeldRange) -> dict[str, Any]:
    return {
        "state": "HELD",
        "since": held.since_ms,
        "reason": held.reason,
        "remedy": remedy_for(held.reason) or _HELD_REMEDY,
        "nextRetryAt": held.retry_at_ms,
    }

"""Replication to one remote cluster: topics provisioned, lanes anchored, one streaming query kept running.

Order matters and is kept here: a topic-partition is listed for the source only after its target exists with the same
shape, the target de-duplicates, and the lane's starting state is recorded. What is not ready is *held*: its place on
the source stays, everything else goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interpulse.client.admin import AdminClient
from interpulse.client.config import ClientConfig
from interpulse.client.lookup import store_schema
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyExists, PulsarError
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.replication.provision import TopicProvisioner, copy_schemas, obstacle_of, topic_shape
from interpulse.spark.connection_options import access_as_options
from interpulse.spark.lanes import LaneState, lane_name, replicator_lane_name
from interpulse.spark.pipeline_config import ClusterAddress, PipelineConfig
from interpulse.spark.progress import BatchProgress
from interpulse.spark.rows import ENTRY_WRITE_COLUMNS
from interpulse.spark.selection import partitions_of
from interpulse.spark.session import make_active
from interpulse.spark.state_files import HeldRange, LaneFiles, write_atomically
from interpulse.spark.target_presence import TargetPresence
from interpulse.spark.target_topics import check_deduplicating, ensure_deduplication
from interpulse.spark.target_view import lane_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Pipeline", "TopicState"]

log = logging.getLogger(__name__)

_BACKOFF_FIRST_S: Final = 1.0
_BACKOFF_MAX_S: Final = 300.0
_UNREACHABLE_MAX_S: Final = 5.0
_HELD_FIRST_S: Final = 0.1
_HELD_MAX_S: Final = 60.0
_VERIFY_EVERY_S: Final = 10.0
_TAKEOVER_MS: Final = 5_000
_SILENCE_S: Final = 3.0
_ASKED_MAX: Final = 200
_PREPARED_AT_A_TIME: Final = 16
_PERMANENT: Final = ("HolesFound", "LaneInUse", "OptionError", "went backwards", "continue with the interpulse release")
_PASSING: Final = (
    *("NotConnected", "OperationTimeout", "ServiceNotReady", "ProducerBusy", "ConsumerBusy"),
    "failed to connect back",  # a busy machine: Spark gives its Python ten seconds to start
)

Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class TopicState:
    """What is known about one topic of the pipeline."""

    state: str = "PROVISIONING"
    since_ms: int = 0
    reason: str | None = None
    remedy: str | None = None
    partitions: int = 0
    provisioned: str | None = None
    retry_at: float = 0.0
    pause: float = _HELD_FIRST_S

    @property
    def is_ready(self) -> bool:
        return self.state == "REPLICATING"


@dataclass
class _QueryState:
    query: StreamingQuery | None = None
    retry_at: float = 0.0
    pause: float = _BACKOFF_FIRST_S
    error: str | None = None
    permanent: bool = False
    started_at: float = 0.0


class _Backlog(NamedTuple):
    """What waits on the source for one topic-partition, and since when."""

    entries: int
    since: float


@dataclass
class Pipeline:
    """One remote cluster. ``update`` is called again and again with the present selection."""

    config: PipelineConfig
    source: AdminClient
    address: ClusterAddress
    spark: SparkSession | None
    emit: Emit
    cursor: str
    _topics: dict[TopicName, TopicState] = field(default_factory=dict)
    _query: _QueryState = field(default_factory=_QueryState)
    _progress: BatchProgress | None = None
    _listed: str = ""
    _target: AdminClient | None = None
    _session: Session | None = None
    _presence: TargetPresence | None = None
    _backlog: dict[str, _Backlog] = field(default_factory=dict)
    _heard_at: float = 0.0
    _begun: bool = False

    @property
    def directory(self) -> Path:
        return self.config.state / self.address.cluster

    @property
    def _checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def _files(self) -> LaneFiles:
        return LaneFiles(str(self.directory))

    @property
    def lane_name(self) -> str:
        source, target, epoch = self.config.source.cluster, self.address.cluster, self.config.lane_epoch
        if self.config.as_replicator:
            return replicator_lane_name(source, target, epoch)
        return lane_name(self.config.name, source, target, epoch)

    @property
    def target(self) -> AdminClient:
        if self._target is None:
            self._target = self.address.admin()
        return self._target

    @property
    def session(self) -> Session:
        """A client of the target for the control side; the data has its own in Spark's workers."""
        if self._session is None:
            access = self.address.access
            config = ClientConfig(
                self.address.service_url,
                operation_timeout_ms=10_000,
                credentials=access.credentials,
                tls=access.tls,
                listener_name=access.listener_name,
            )
            self._session = Session(config)
        return self._session

    @property
    def presence(self) -> TargetPresence:
        if self._presence is None:
            self._presence = TargetPresence(self.lane_name)
        return self._presence

    # ---- Topics

    async def update(self, topics: Mapping[TopicName, int]) -> None:
        """Provision what is new, hold what does not fit, and keep the query running."""
        if not self._begun:
            self._begin()
        gone = {topic: self._topics.pop(topic) for topic in [*self._topics] if topic not in topics}
        await self.presence.leave(
            [name for topic, state in gone.items() for name in partitions_of(topic, state.partitions)]
        )
        now = time.monotonic()
        due = [topic for topic, count in topics.items() if self._is_due(topic, count, now)]
        slots = asyncio.Semaphore(_PREPARED_AT_A_TIME)

        async def prepare(topic: TopicName) -> None:
            async with slots:
                await self._prepare(topic, topics[topic])

        await asyncio.gather(*(prepare(topic) for topic in due))
        self._list_topics()
        await self._keep_query()

    def _begin(self) -> None:
        """Without its checkpoint the pipeline starts anew; what it wrote before is then found on the target."""
        self._begun = True
        if not self._checkpoint.exists():
            self._files.forget()

    def _is_due(self, topic: TopicName, count: int, now: float) -> bool:
        state = self._topics.get(topic)
        return state is None or state.retry_at <= now or (state.is_ready and state.partitions != count)

    async def _prepare(self, topic: TopicName, count: int) -> None:
        """Everything a topic needs before its first entry is planned."""
        # Also a topic that was never ready is listed by its partitions: the stream may have been reading them before.
        before = self._topics.get(topic, TopicState(since_ms=_now_ms(), partitions=count))
        try:
            count, provisioned = await self._provision(topic, before)
            names = partitions_of(topic, count)
            if not before.is_ready or before.partitions != count:
                await self._open_cursors(names)
            await self._anchor(names)
            await self.presence.keep(self.session, names)
        except (PulsarError, ValueError) as problem:
            self._hold(topic, before, problem)
            return
        ready = replace(
            before,
            state="REPLICATING",
            reason=None,
            remedy=None,
            partitions=count,
            provisioned=provisioned or before.provisioned,
            retry_at=time.monotonic() + _VERIFY_EVERY_S,
            pause=_HELD_FIRST_S,
        )
        self._topics[topic] = ready if before.is_ready else replace(ready, since_ms=_now_ms())
        if provisioned is not None:
            self.emit(
                {"event": "provisioned", "cluster": self.address.cluster, "topic": str(topic), "what": provisioned}
            )

    async def _provision(self, topic: TopicName, before: TopicState) -> tuple[int, str | None]:
        rules = self.config.provision
        await ensure_deduplication(self.target, topic, may_enable=rules.ensure_deduplication)
        provisioner = TopicProvisioner(partial(topic_shape, self.source), self.target, creation_allowed=rules.create)
        count, change = await provisioner.ensure_topic(topic, equal_before=self._equal_before(topic, before))
        if self.config.copy_schemas:
            first = TopicName.parse(partitions_of(topic, count)[0])
            await copy_schemas(self.source, topic, lambda _, schema: self._register_schema(first, schema))
        if not before.is_ready:
            await check_deduplicating(self.target, partitions_of(topic, count))
        return count, change

    async def _open_cursors(self, names: Sequence[str]) -> None:
        """On a broker of ours, where no consumer opens a replication cursor; policies that list the cluster did it."""
        if self.config.select.from_policies or not self.cursor.startswith("pulsar.repl."):
            return
        is_beginning = not self._query.started_at and not self._checkpoint.exists()
        start = None if self.config.start == "latest" and is_beginning else MessageId(*EARLIEST)
        for name in names:
            with contextlib.suppress(AlreadyExists):
                await self.source.topics.create_subscription(name, self.cursor, start)

    async def _register_schema(self, topic: TopicName, schema: SchemaInfo) -> None:
        """As the lane, not through the admin API: what replicators may register is the target's to say.

        ``topic`` is one that holds entries: Pulsar finds no topic of the name of a partitioned one here.
        """
        connection = await self.session.connect(topic)
        await store_schema(connection, topic, schema, producer_name=self.lane_name)

    def _equal_before(self, topic: TopicName, before: TopicState) -> int | None:
        """From which count on a source that grows takes the target along.

        Policies already say so to the source cluster, which grows the others itself; where it did not, somebody wanted
        it to stay (``updateLocalTopicOnly``): the topic is held, as by Pulsar's replicators, until both are equal.
        """
        if self.config.select.from_policies:
            return None
        return before.partitions if before.is_ready else self._anchored(topic)

    def _anchored(self, topic: TopicName) -> int | None:
        """The partition count both sides had when the topic was last ready, be it in an earlier run."""
        anchors = self._files.anchors()
        count = 0
        while str(topic.partition(count)) in anchors:
            count += 1
        return count or None

    def _hold(self, topic: TopicName, before: TopicState, problem: Exception) -> None:
        obstacle = obstacle_of(self.address.cluster, problem)
        since = before.since_ms if before.state == obstacle.state else _now_ms()
        self._topics[topic] = replace(
            before,
            state=obstacle.state,
            since_ms=since,
            reason=obstacle.reason,
            remedy=obstacle.remedy,
            retry_at=time.monotonic() + before.pause * random.uniform(0.9, 1.0),
            pause=min(before.pause * 2, _HELD_MAX_S),
        )
        if before.reason != obstacle.reason:
            event = obstacle.state.lower()
            self.emit({"event": event, "cluster": self.address.cluster, "topic": str(topic), "reason": str(problem)})

    async def _anchor(self, names: list[str]) -> None:
        """Record where lanes stand before their first range, so that a retry of it can be read back."""
        files = self._files
        known = files.anchors()
        missing = [name for name in names if name not in known]
        if not missing:
            return
        states: dict[str, LaneState] = {}
        for name in missing:
            states[name] = await lane_start(self.session, name, self.lane_name, takeover_timeout_ms=_TAKEOVER_MS)
        files.write_anchors({**files.anchors(), **states})  # read anew: others were recorded meanwhile

    def _list_topics(self) -> None:
        """Tell the source, through its topics file, what to read and what to keep in place."""
        active: list[str] = []
        held: list[str] = []
        for topic, state in self._topics.items():
            (active if state.is_ready else held).extend(partitions_of(topic, state.partitions))
        text = json.dumps({"topics": sorted(active), "held": sorted(held)})
        if text != self._listed:
            write_atomically(self._topics_file, text)
            self._listed = text

    @property
    def _topics_file(self) -> Path:
        return self.directory / "topics.json"

    # ---- The query

    async def _keep_query(self) -> None:
        """Start the query, or start it again after a pause when it failed."""
        state = self._query
        if self.spark is None or state.permanent or time.monotonic() < state.retry_at:
            return
        if state.query is not None:
            if await asyncio.to_thread(lambda: state.query is not None and state.query.isActive):
                return
            await self._note_failure()
            return
        try:
            state.query = await asyncio.to_thread(self._start_query)
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is reported, and tried again
            self._failed(str(error))
            return
        state.started_at = time.monotonic()

    async def _note_failure(self) -> None:
        query, self._query.query = self._query.query, None
        assert query is not None
        error = await asyncio.to_thread(query.exception)
        if time.monotonic() - self._query.started_at > 60:
            self._query.pause = _BACKOFF_FIRST_S
        self._failed(str(error) if error is not None else "the query ended")

    def _failed(self, text: str) -> None:
        state = self._query
        state.error = _shortened(text)
        state.permanent = any(word in text for word in _PERMANENT)
        state.retry_at = time.monotonic() + state.pause
        limit = _UNREACHABLE_MAX_S if any(word in text for word in _PASSING) else _BACKOFF_MAX_S
        state.pause = min(state.pause * 2, limit)
        log.warning("replication to %s failed: %s", self.address.cluster, text.partition("=== Streaming Query ===")[0])
        self.emit(
            {"event": "error", "cluster": self.address.cluster, "error": state.error, "permanent": state.permanent}
        )

    def _start_query(self) -> StreamingQuery:
        assert self.spark is not None
        make_active(self.spark)
        limits = self.config.limits
        rows = self.spark.readStream.format("pulsar").options(**self._source_options()).load()
        writer = rows.writeStream.format("pulsar").options(**self._sink_options())
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        return (
            writer.queryName(self.address.cluster).trigger(processingTime=f"{limits.trigger_ms} milliseconds").start()
        )

    def _source_options(self) -> dict[str, str]:
        limits = self.config.limits
        return {
            "service.url": self.config.source.service_url,
            **access_as_options(self.config.source.access),
            "topicsFile": str(self._topics_file),
            "mode": "entry",
            "includeColumns": ",".join(ENTRY_WRITE_COLUMNS),
            "startingOffsets": self.config.start,
            "predefinedSubscription": self.cursor,
            "maxEntriesPerTrigger": str(limits.entries_per_batch),
            "maxBytesPerTrigger": str(limits.bytes_per_batch),
            "maxPartitions": str(limits.tasks),
            "offsetPollIntervalMs": str(limits.poll_ms),
        }

    def _sink_options(self) -> dict[str, str]:
        options = {
            "service.url": self.address.service_url,
            **access_as_options(self.address.access),
            "mode": "entry",
            "deliveryGuarantee": "exactly-once",
            "producerName": self.lane_name,
            "replicatedFrom": self.config.source.cluster,
            "targetCluster": self.address.cluster,
            "statePath": str(self.directory),
            "isolate": "true",
        }
        if self.config.copy_schemas:
            options["schemaSourceUrl"] = self.config.source.service_url
            options |= access_as_options(self.config.source.access, "schemaSource")
        return options

    # ---- What is going on

    def take_progress(self, progress: BatchProgress) -> None:
        """A micro-batch is over."""
        self._progress = progress
        self._heard_at = time.monotonic()
        held = self._files.held()
        self._backlog = {name: known for name, known in self._backlog.items() if name in held}
        self._query.error = None
        written = self._files.summary()
        line = progress.to_json()
        if written is not None and written.get("batchId") == progress.batch_id:
            line["written"] = {key: value for key, value in written.items() if key != "batchId"}
        self.emit(line)

    async def refresh_backlog(self) -> None:
        """While Spark says nothing (starting, failing, one long batch) the cursor on the source tells the lag."""
        names = [name for topic, state in self._topics.items() for name in partitions_of(topic, state.partitions)]
        if time.monotonic() - self._heard_at < _SILENCE_S:
            held = self._files.held()  # Spark's offsets run ahead of what is written there
            self._backlog = {name: known for name, known in self._backlog.items() if name in held}
            names = [name for name in names if name in held]
        if len(names) > _ASKED_MAX:
            return
        for name in names:
            try:
                waiting = _waiting(await self.source.topics.stats(name), self.cursor, self.address.cluster)
            except PulsarError:
                continue  # the source itself is away: what was known last stays
            before = self._backlog.get(name)
            since = before.since if before is not None and before.entries else time.monotonic()
            self._backlog[name] = _Backlog(waiting, since)

    def _lag_of(self, name: str) -> tuple[int | None, float | None]:
        """Entries and seconds that a topic-partition is behind, as far as known."""
        backlog = self._backlog.get(name)
        if backlog is not None:
            return backlog.entries, round(time.monotonic() - backlog.since, 3) if backlog.entries else 0.0
        lag = self._progress.topics.get(name) if self._progress is not None else None
        return (None, None) if lag is None else (lag.entries, round(lag.seconds, 3))

    def records(self) -> dict[NamespaceName, list[dict[str, Any]]]:
        """Status records by namespace."""
        found: dict[NamespaceName, list[dict[str, Any]]] = {}
        held = self._files.held()
        for topic, state in self._topics.items():
            rows = found.setdefault(topic.namespace_name, [])
            for name in partitions_of(topic, state.partitions):
                record = self._record(name, state)
                rows.append(record | _hold_of(held[name]) if name in held and state.is_ready else record)
        return found

    def _record(self, name: str, state: TopicState) -> dict[str, Any]:
        progress = self._progress
        lag_entries, lag_seconds = self._lag_of(name)
        failed = self._query.error if state.is_ready else None
        starting = state.is_ready and self._progress is None and failed is None
        retry_at = max(state.retry_at, self._query.retry_at) if failed or not state.is_ready else None
        return {
            "topic": name,
            "cluster": self.address.cluster,
            "state": "DISCONNECTED" if failed else "PROVISIONING" if starting else state.state,
            "since": state.since_ms,
            "reason": failed or state.reason or ("Spark is starting" if starting else None),
            "remedy": state.remedy,
            "nextRetryAt": None if retry_at is None else _now_ms() + int(max(0.0, retry_at - time.monotonic()) * 1000),
            "lagEntries": lag_entries,
            "lagSeconds": lag_seconds,
            "batchId": progress.batch_id if progress is not None else None,
            "batchMs": progress.duration_ms if progress is not None else None,
            "provisioned": state.provisioned,
        }

    async def retire(self) -> None:
        """No policy asks for it any more. Should one ask again, replication begins where the cursor is then."""
        await self.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    async def stop(self) -> None:
        """End the query; the batch under way is replayed at the next start."""
        query, self._query.query = self._query.query, None
        if query is not None:
            await asyncio.to_thread(query.stop)
        if self._target is not None:
            await self._target.close()
            self._target = None
        if self._session is not None:
            await self.presence.close()
            await self._session.close()
            self._session = None


def _hold_of(held: HeldRange) -> dict[str, Any]:
    """What a status record says of a topic-partition that was refused while it was copied."""
    return {
        "state": "HELD",
        "since": held.since_ms,
        "reason": held.reason,
        "remedy": "end what the reason names; the entries are kept and tried again by themselves",
        "nextRetryAt": held.retry_at_ms,
    }


def _waiting(stats: Mapping[str, Any], cursor: str, remote: str) -> int:
    """The backlog of the cursor: listed under replication on our brokers, under subscriptions on others."""
    replication = stats.get("replication", {}).get(remote, {})
    subscription = stats.get("subscriptions", {}).get(cursor, {})
    return int(replication.get("replicationBacklog") or subscription.get("msgBacklog") or 0)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _shortened(text: str) -> str:
    """The line that tells the cause: Spark wraps Python errors in long Java stories."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("interpulse.") or "interpulse.model.errors" in line]
    return (telling[-1] if telling else lines[0] if lines else text)[:500]

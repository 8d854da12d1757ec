"""Progress of the replication job: Spark's reports as lag, JSON lines and status records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.offsets import StreamOffset, entries_between


@dataclass(frozen=True)
class TopicLag:
    """Lag of one topic-partition: entries that are not copied yet, and the age of the oldest.

    ``throttled`` is True if its rate prevents further copying. ``passed`` counts entries that were skipped since the
    query started, because the cursor was moved past them.
    """

    done: Position
    entries: int = 0
    seconds: float = 0.0
    throttled: bool = False
    passed: int = 0


@dataclass(frozen=True)
class BatchProgress:
    """One micro-batch as Spark reported it."""

    query: str
    batch_id: int
    duration_ms: int
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, TopicLag] = field(default_factory=dict)

    @property
    def lag_entries(self) -> int:
        return sum(lag.entries for lag in self.topics.values())

    @property
    def lag_seconds(self) -> float:
        return max((lag.seconds for lag in self.topics.values()), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON line of this batch."""
        return {
            "event": "progress",
            "cluster": self.query,
            "batchId": self.batch_id,
            "batchMs": self.duration_ms,
            "phasesMs": dict(self.phases_ms),
            "lagEntries": self.lag_entries,
            "lagSeconds": round(self.lag_seconds, 3),
            "positions": {topic: str(lag.done) for topic, lag in self.topics.items()},
        }


def read_progress(body: Mapping[str, Any]) -> BatchProgress:
    """Parse the JSON of Spark's progress event."""
    source = body["sources"][0] if body.get("sources") else {}
    done = _positions(source.get("endOffset"))
    report = _object(source.get("latestOffset"))
    phases = {str(name): int(value) for name, value in (body.get("durationMs") or {}).items()}
    return BatchProgress(
        query=str(body.get("name") or ""),
        batch_id=int(body["batchId"]),
        duration_ms=phases.get("triggerExecution", 0),
        phases_ms=phases,
        topics={topic: _lag(position, report.get("topics", {}).get(topic)) for topic, position in done.items()},
    )


def _positions(offset: object) -> Mapping[str, Position]:
    body = _object(offset)
    return StreamOffset.from_json(body).positions if body else {}


def _object(value: object) -> dict[str, Any]:
    """Return offsets as an object. They arrive as objects, or as text that contains one."""
    if isinstance(value, str):
        value = json.loads(value)
    return dict(value) if isinstance(value, Mapping) else {}


def _lag(done: Position, reported: Mapping[str, Any] | None) -> TopicLag:
    if reported is None:
        return TopicLag(done)
    passed = int(reported.get("passed", 0))
    last = Position.parse(reported.get("last", str(EARLIEST)))
    done = max(done, min(last, Position.parse(reported.get("done", str(EARLIEST)))))  # tasks may have copied more
    entries = entries_between(done, last)
    if not entries:
        return TopicLag(done, passed=passed)
    return TopicLag(done, entries, int(reported.get("ms", 0)) / 1000, bool(reported.get("throttled")), passed)


class _EventsOfJava(JStreamingQueryListener):
    """Listener that Java calls with a progress event as one text.

    PySpark asks Java for every field of an event, hundreds of calls for each micro-batch, which took half of Java's
    processor time while the job was busy.
    """

    pylistener: ProgressListener

    def onQueryProgress(self, jevent: Any) -> None:
        self.pylistener.take_progress(jevent.progress().json())


class ProgressListener(StreamingQueryListener):
    """Listener that passes on progress events and the names of idle queries. Called in threads of Spark."""

    def __init__(self, on_batch: Callable[[BatchProgress], None], on_idle: Callable[[str], None]) -> None:
        self._on_batch = on_batch
        self._on_idle = on_idle
        self._names: dict[UUID, str] = {}
        """Query names by run, which Spark reports only at the start of a query."""
        self._in_java: Any = None

    @property
    def _jlistener(self) -> Any:
        if self._in_java is None:
            assert SparkContext._jvm is not None, "a classic session, not a remote one"
            self._in_java = SparkContext._jvm.PythonStreamingQueryListenerWrapper(_EventsOfJava(self))
        return self._in_java

    def take_progress(self, event: str) -> None:
        """Parse and pass on the JSON of a progress event."""
        self._on_batch(read_progress(json.loads(event)))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._names[event.runId] = event.name or ""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.take_progress(event.progress.json)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        if event.runId in self._names:
            self._on_idle(self._names[event.runId])

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._names.pop(event.runId, None)

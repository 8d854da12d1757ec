"""Micro-batches as OpenTelemetry spans, if the environment enables it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import SpanKind, StatusCode

from interpulse import __version__
from interpulse.clock import now_ms
from interpulse.spark.job.reports.report import Records, Written

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_EXPORT_MS_MAX: Final = 2000


class BatchSpans:
    """Report that makes each micro-batch a span, and holds and failures events of the next one."""

    wants_records = False

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("interpulse.replication", __version__)
        self._noted: dict[str, list[tuple[str, dict[str, str], int]]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Make the span of a batch from its duration, since Spark reports batches when they are over."""
        kind, cluster = event.get("event"), str(event.get("cluster", ""))
        if kind in ("held", "released", "healed", "error"):
            said = {key: str(event[key]) for key in ("topic", "reason", "error") if key in event}
            self._noted.setdefault(cluster, []).append((str(kind), said, now_ms() * 1_000_000))
        elif kind == "progress":
            self._note_batch(cluster, event)

    def _note_batch(self, cluster: str, event: Mapping[str, Any]) -> None:
        ended = now_ms()
        attributes = {
            "messaging.system": "pulsar",
            "pulsar.replication.remote.cluster.name": cluster,
            "interpulse.replication.batch.id": int(event["batchId"]),
            "interpulse.replication.lag.entries": int(event["lagEntries"]),
            "interpulse.replication.lag.seconds": float(event["lagSeconds"]),
            **{f"interpulse.replication.phase.{name}.ms": ms for name, ms in event["phasesMs"].items()},
        }
        for name, value in event.get("written", {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                attributes[f"interpulse.replication.written.{name}"] = value
        span = self._tracer.start_span(
            f"replicate {cluster}",
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            start_time=(ended - int(event["batchMs"])) * 1_000_000,
        )
        for name, said, at_ns in self._noted.pop(cluster, ()):
            span.add_event(name, said, at_ns)
        span.set_status(StatusCode.OK)
        span.end(ended * 1_000_000)

    def show(self, records: Records, written: Mapping[str, Written]) -> None:
        """Ignore records: spans need events only."""

    def close(self) -> None:
        """Export remaining spans, within at most two seconds."""
        self._provider.force_flush(_EXPORT_MS_MAX)
        self._provider.shutdown()

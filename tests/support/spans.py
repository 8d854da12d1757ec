"""Spans and metrics that stay in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """A tracer provider, and what has ended of its spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def ended(self, operation: str = "") -> list[Any]:
        """Those whose name begins so, in the order in which they ended."""
        return [span for span in self._exporter.get_finished_spans() if span.name.startswith(operation)]


def points_of(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict, float]]]:
    """By the name of each metric: the attributes of each point, and its value; of a histogram its count."""
    data = reader.get_metrics_data()
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
    return {
        metric.name: [
            (dict(point.attributes), point.count if hasattr(point, "count") else point.value)  # type: ignore[arg-type]
            for point in metric.data.data_points
        ]
        for scope in scopes
        for metric in scope.metrics
    }


def metered() -> tuple[MeterProvider, InMemoryMetricReader]:
    """A meter provider, and what reads it."""
    reader = InMemoryMetricReader()
    return MeterProvider([reader], shutdown_on_exit=False), reader

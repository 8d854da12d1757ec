"""Tracer and metrics of one client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry import metrics as metrics_api
from opentelemetry import trace

from interpulse import __version__
from interpulse.client.telemetry.processing import Processing
from interpulse.client.telemetry.sending import Sending

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE: Final = "interpulse.client"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Histogram bounds that the conventions recommend."""


class Telemetry:
    """Factory for the spans and metrics of producers and consumers.

    ``True`` selects the global providers, ``False`` disables spans or metrics.
    """

    def __init__(self, tracing: bool | TracerProvider, metrics: bool | MeterProvider) -> None:
        provider = None if isinstance(tracing, bool) else tracing
        self._tracer = trace.get_tracer(_SCOPE, __version__, provider) if tracing else None
        meter = _meter(metrics)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Messages that were to be sent, and their failures."
        )
        self._send_seconds = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Time from sending a message to its receipt.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Messages handed to the application."
        )
        self._process_seconds = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Time from handing a message out to its acknowledgement.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    def sending(self) -> Sending:
        """Return the telemetry of one producer's messages."""
        return Sending(self._tracer, self._sent, self._send_seconds)

    def processing(self, topic: str, subscription: str) -> Processing:
        """Return the telemetry of the messages that one consumer receives from one topic or partition."""
        return Processing(self._tracer, self._consumed, self._process_seconds, topic, subscription)


def _meter(metrics: bool | MeterProvider) -> Meter:
    if metrics is False:
        return metrics_api.NoOpMeterProvider().get_meter(_SCOPE)
    return metrics_api.get_meter(_SCOPE, __version__, None if metrics is True else metrics)

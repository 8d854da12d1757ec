"""OpenTelemetry spans (PIP-446) and metrics of a client. The first session that needs them imports this module.

Names of attributes and metrics are those of OpenTelemetry's semantic conventions for messaging, and of PIP-446. They
are repeated here because their package marks them as incubating and moves them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from opentelemetry import metrics as metrics_api
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, get_current_span, set_span_in_context, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interpulse import __version__
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider


AcknowledgmentType = Literal["acknowledge", "cumulative_acknowledge", "negative_acknowledge", "ack_timeout"]

ACKNOWLEDGMENT_TYPE: Final = "messaging.pulsar.acknowledgment.type"
ERROR_TYPE: Final = "error.type"
MESSAGE_COUNT: Final = "messaging.batch.message_count"
MESSAGE_ID: Final = "messaging.message.id"
_TRACEPARENT: Final = "traceparent"
_PROPAGATOR: Final = TraceContextTextMapPropagator()
OPEN_MAX: Final = 10_000
"""Maximum number of open messages per topic or partition. The oldest is dropped for another one."""
_SCOPE: Final = "interpulse.client"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Histogram bounds that the conventions recommend."""


def attributes_of(operation: str, topic: str, *, subscription: str | None = None) -> dict[str, str]:
    """Return the attributes common to spans and metrics of an operation on a topic or partition."""
    attributes = {
        "messaging.system": "pulsar",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
    partition = TopicName.parse(topic).partition_index
    if partition >= 0:
        attributes["messaging.destination.partition.id"] = str(partition)
    if subscription is not None:
        attributes["messaging.destination.subscription.name"] = subscription
    return attributes


def traceparent_of(context: Context) -> dict[str, str]:
    """Return a context as message properties in W3C's form: ``traceparent``, and ``tracestate`` if present."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, context)
    return carrier


def context_of(properties: Mapping[str, str], otherwise: Context | None = None) -> Context:
    """Return the context in which a message was created, from its properties. An invalid one counts as none."""
    return _PROPAGATOR.extract(properties, otherwise)


def link_to_creation(properties: Mapping[str, str]) -> list[Link]:
    """Return a link to the span in which a message was created; empty if its properties name none."""
    if _TRACEPARENT not in properties:
        return []
    made_in = get_current_span(context_of(properties, Context())).get_span_context()
    return [Link(made_in)] if made_in.is_valid else []


def is_traced(properties: Mapping[str, str]) -> bool:
    """Return True if a message names the span in which it was created."""
    return _TRACEPARENT in properties


class Sends(Protocol):
    """Producer of one topic or partition."""

    @property
    def topic(self) -> str: ...

    async def send(self, message: OutgoingMessage) -> MessageId: ...

    async def enqueue(self, message: OutgoingMessage) -> asyncio.Future[MessageId]: ...


class Sending:
    """Sends messages of one producer, and records spans and metrics."""

    def __init__(self, tracer: Tracer | None, sent: Counter, seconds: Histogram) -> None:
        self._tracer = tracer
        self._sent = sent
        self._seconds = seconds
        self._attributes: dict[str, dict[str, str]] = {}

    async def send(self, producer: Sends, message: OutgoingMessage) -> MessageId:
        """Send a message through the producer. The span ends with the receipt."""
        message, sent = self._begin(producer.topic, message)
        try:
            message_id = await producer.send(message)
        except BaseException as error:
            sent.fail(error)
            raise
        sent.end(message_id)
        return message_id

    async def enqueue(self, producer: Sends, message: OutgoingMessage) -> asyncio.Future[MessageId]:
        """Enqueue a message at the producer. The span ends with the future."""
        message, sent = self._begin(producer.topic, message)
        try:
            future = await producer.enqueue(message)
        except BaseException as error:
            sent.fail(error)
            raise
        future.add_done_callback(sent.on_done)
        return future

    def _begin(self, topic: str, message: OutgoingMessage) -> tuple[OutgoingMessage, _Sent]:
        attributes = self._attributes.get(topic) or self._attributes.setdefault(topic, attributes_of("send", topic))
        if self._tracer is None or not isinstance(message.properties, Mapping):
            return message, _Sent(self, None, attributes)
        own = is_traced(message.properties)
        span = self._tracer.start_span(
            f"send {topic}", kind=SpanKind.PRODUCER, attributes=attributes, links=link_to_creation(message.properties)
        )
        if not own:
            message = replace(message, properties={**message.properties, **traceparent_of(set_span_in_context(span))})
        return message, _Sent(self, span, attributes)

    def count(self, seconds: float, attributes: Mapping[str, str]) -> None:
        """Count a message that was sent or that failed."""
        self._sent.add(1, attributes)
        self._seconds.record(seconds, attributes)


class _Sent:
    """Span of one message until its receipt."""

    __slots__ = ("_attributes", "_sending", "_span", "_started")

    def __init__(self, sending: Sending, span: Span | None, attributes: dict[str, str]) -> None:
        self._sending = sending
        self._span = span
        self._attributes = attributes
        self._started = time.perf_counter()

    def on_done(self, future: asyncio.Future[MessageId]) -> None:
        if future.cancelled():
            self.fail(asyncio.CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.end(future.result())

    def end(self, message_id: MessageId) -> None:
        self._sending.count(time.perf_counter() - self._started, self._attributes)
        if self._span is not None:
            self._span.set_attribute(MESSAGE_ID, str(message_id))
            self._span.set_status(StatusCode.OK)
            self._span.end()

    def fail(self, error: BaseException) -> None:
        kind = type(error).__qualname__
        self._sending.count(time.perf_counter() - self._started, {**self._attributes, ERROR_TYPE: kind})
        if self._span is not None:
            self._span.set_attribute(ERROR_TYPE, kind)
            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, str(error)))
            self._span.end()


class _Open(NamedTuple):
    span: Span | None
    started: float


class Processing:
    """Spans of the unacknowledged messages of one topic or partition."""

    def __init__(
        self, tracer: Tracer | None, consumed: Counter, seconds: Histogram, topic: str, subscription: str
    ) -> None:
        self._tracer = tracer
        self._consumed = consumed
        self._seconds = seconds
        self._topic = topic
        self._attributes = attributes_of("process", topic, subscription=subscription)
        self._of_batches = attributes_of("receive", topic, subscription=subscription)
        self._open: dict[MessageId, _Open] = {}

    def begin(self, message: Message) -> None:
        """Start the span of a delivered message, as a child of the span in which it was sent."""
        self._end(self._open.pop(message.id, None), None)
        if len(self._open) >= OPEN_MAX:
            self._end(self._open.pop(next(iter(self._open))), None)
        self._consumed.add(1, self._attributes)
        span = None
        if self._tracer is not None:
            span = self._tracer.start_span(
                f"process {self._topic}",
                context_of(message.properties),
                SpanKind.CONSUMER,
                {**self._attributes, MESSAGE_ID: str(message.id)},
            )
        self._open[message.id] = _Open(span, time.perf_counter())

    def note_batch(self, messages: Sequence[Message], started_ms: int) -> None:
        """Record one span for the messages that one call, started at ``started_ms``, delivered.

        It is linked to the spans in which they were sent.
        """
        if self._tracer is not None:
            links = [link for message in messages for link in link_to_creation(message.properties)]
            self._tracer.start_span(
                f"receive {self._topic}",
                kind=SpanKind.CLIENT,
                attributes={**self._of_batches, MESSAGE_COUNT: len(messages)},
                links=links,
                start_time=started_ms * 1_000_000,
            ).end()

    def current(self, message: Message) -> AbstractContextManager[object]:
        """Return a context in which new spans are children of the message's.

        An exception becomes an event of that span.
        """
        opened = self._open.get(message.id)
        if opened is None or opened.span is None:
            return nullcontext()
        return use_span(opened.span, set_status_on_exception=False)

    def end(self, message_id: MessageId, how: AcknowledgmentType) -> None:
        """End the span of an acknowledged message."""
        self._end(self._open.pop(message_id, None), how)

    def end_up_to(self, message_id: MessageId) -> None:
        """End the spans of this message and all before it."""
        self._end_those([opened for opened in self._open if opened <= message_id], "cumulative_acknowledge")

    def end_entries(self, positions: Iterable[Position]) -> None:
        """End the spans of entries that exceeded the acknowledgement timeout and are redelivered."""
        late = set(positions)
        self._end_those([opened for opened in self._open if opened.position in late], "ack_timeout")

    def end_all(self) -> None:
        """End all spans: their messages are redelivered, or the consumer is closed."""
        self._end_those(list(self._open), None)

    def _end_those(self, ids: Iterable[MessageId], how: AcknowledgmentType | None) -> None:
        for message_id in ids:
            self._end(self._open.pop(message_id), how)

    def _end(self, opened: _Open | None, how: AcknowledgmentType | None) -> None:
        """End a span. Without an acknowledgement it has no status."""
        if opened is None:
            return
        self._seconds.record(time.perf_counter() - opened.started, self._attributes)
        if opened.span is not None:
            if how is not None:
                opened.span.set_attribute(ACKNOWLEDGMENT_TYPE, how)
                opened.span.set_status(StatusCode.OK)
            opened.span.end()


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
        self._site_changes = meter.create_counter(
            "interpulse.client.site_changes", "{change}", "Changes of the client to another site."
        )
        self._late_acknowledgements = meter.create_counter(
            "interpulse.client.late_acknowledgements",
            "{message}",
            "Acknowledgements of messages of an earlier site, which were not sent.",
        )

    def count_site_change(self) -> None:
        """Count a change of the client to another site."""
        self._site_changes.add(1)

    def count_late_acknowledgement(self) -> None:
        """Count an acknowledgement that belongs to an earlier site and was not sent."""
        self._late_acknowledgements.add(1)

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

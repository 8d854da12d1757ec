"""Spans of messages sent to the broker. Their context travels in the message properties."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

from interpulse.client.messages import OutgoingMessage
from interpulse.client.telemetry.conventions import (
    ERROR_TYPE,
    MESSAGE_ID,
    attributes_of,
    is_traced,
    link_to_creation,
    traceparent_of,
)
from interpulse.model.ids import MessageId

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer


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
            f"send {topic}",
            kind=SpanKind.PRODUCER,
            attributes=attributes,
            links=link_to_creation(message.properties),
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

    __slots__ = ("_attributes", "_begun", "_sending", "_span")

    def __init__(self, sending: Sending, span: Span | None, attributes: dict[str, str]) -> None:
        self._sending = sending
        self._span = span
        self._attributes = attributes
        self._begun = time.perf_counter()

    def on_done(self, future: asyncio.Future[MessageId]) -> None:
        if future.cancelled():
            self.fail(asyncio.CancelledError())
        elif (error := future.exception()) is not None:
            self.fail(error)
        else:
            self.end(future.result())

    def end(self, message_id: MessageId) -> None:
        self._sending.count(time.perf_counter() - self._begun, self._attributes)
        if self._span is not None:
            self._span.set_attribute(MESSAGE_ID, str(message_id))
            self._span.set_status(StatusCode.OK)
            self._span.end()

    def fail(self, error: BaseException) -> None:
        kind = type(error).__qualname__
        self._sending.count(time.perf_counter() - self._begun, {**self._attributes, ERROR_TYPE: kind})
        if self._span is not None:
            self._span.set_attribute(ERROR_TYPE, kind)
            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, str(error)))
            self._span.end()

"""Spans of messages from their delivery to the application until their acknowledgement (PIP-446)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry.trace import SpanKind, StatusCode, use_span

from interpulse.client.messages import Message
from interpulse.client.telemetry.conventions import (
    ACKNOWLEDGMENT_TYPE,
    MESSAGE_COUNT,
    MESSAGE_ID,
    AcknowledgmentType,
    attributes_of,
    context_of,
    link_to_creation,
)
from interpulse.model.ids import MessageId, Position

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer

OPEN_MAX: Final = 10_000
"""Maximum number of open messages per topic or partition. The oldest is dropped for another one."""


class _Open(NamedTuple):
    span: Span | None
    begun: float


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

    def note_batch(self, messages: Sequence[Message], begun_ms: int) -> None:
        """Record one span for the messages that one call, started at ``begun_ms``, delivered.

        It is linked to the spans in which they were sent.
        """
        if self._tracer is not None:
            links = [link for message in messages for link in link_to_creation(message.properties)]
            self._tracer.start_span(
                f"receive {self._topic}",
                kind=SpanKind.CLIENT,
                attributes={**self._of_batches, MESSAGE_COUNT: len(messages)},
                links=links,
                start_time=begun_ms * 1_000_000,
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
        self._seconds.record(time.perf_counter() - opened.begun, self._attributes)
        if opened.span is not None:
            if how is not None:
                opened.span.set_attribute(ACKNOWLEDGMENT_TYPE, how)
                opened.span.set_status(StatusCode.OK)
            opened.span.end()

"""Messages in the hands of the application: a span each, from handing it out to its acknowledgement (PIP-446)."""

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

__all__ = ["OPEN_MAX", "Processing"]

OPEN_MAX: Final = 10_000
"""Messages that are followed at a time, per topic or partition; the oldest is given up for one more."""


class _Open(NamedTuple):
    span: Span | None
    begun: float


class Processing:
    """Follows the messages of one topic or partition that are not acknowledged yet."""

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
        """The application has the message. Its span is a child of the one it was sent in."""
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
        """The application has these messages of one call, which began then (ms since the epoch): one span, linked to
        those that they were sent in."""
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
        """Inside it, spans that begin are children of the message's. An exception becomes an event of that span."""
        found = self._open.get(message.id)
        if found is None or found.span is None:
            return nullcontext()
        return use_span(found.span, set_status_on_exception=False)

    def end(self, message_id: MessageId, how: AcknowledgmentType) -> None:
        """The application is done with the message."""
        self._end(self._open.pop(message_id, None), how)

    def end_up_to(self, message_id: MessageId) -> None:
        """The application is done with the message and all before it."""
        self._end_those([each for each in self._open if each <= message_id], "cumulative_acknowledge")

    def end_entries(self, positions: Iterable[Position]) -> None:
        """The messages of these entries took too long, and come again."""
        late = set(positions)
        self._end_those([each for each in self._open if each.position in late], "ack_timeout")

    def end_all(self) -> None:
        """Whatever is in the application's hands comes again, or is of a consumer that is closed."""
        self._end_those(list(self._open), None)

    def _end_those(self, ids: Iterable[MessageId], how: AcknowledgmentType | None) -> None:
        for each in ids:
            self._end(self._open.pop(each), how)

    def _end(self, found: _Open | None, how: AcknowledgmentType | None) -> None:
        """Without an acknowledgement the span says nothing of how it ended."""
        if found is None:
            return
        self._seconds.record(time.perf_counter() - found.begun, self._attributes)
        if found.span is not None:
            if how is not None:
                found.span.set_attribute(ACKNOWLEDGMENT_TYPE, how)
                found.span.set_status(StatusCode.OK)
            found.span.end()

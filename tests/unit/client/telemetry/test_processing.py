"""Messages in the hands of an application."""

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from interpulse.client.messages import Message
from interpulse.client.telemetry import processing as module
from interpulse.client.telemetry.processing import Processing
from interpulse.client.telemetry.telemetry import Telemetry
from interpulse.model.ids import MessageId, Position
from tests.support.spans import Spans, metered, points_of

TOPIC = "persistent://public/default/t"
SENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
HOW = "messaging.pulsar.acknowledgment.type"


def received(entry: int, batch_index: int = -1, properties: Mapping[str, str] = SENT) -> Message:
    fields: dict[str, Any] = dict.fromkeys(Message.__slots__)
    return Message(**{**fields, "id": MessageId(1, entry, -1, batch_index), "topic": TOPIC, "properties": properties})


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def processing(spans: Spans) -> Processing:
    return Telemetry(spans.provider, False).processing(TOPIC, "s")


def how_ended(spans: Spans) -> list[tuple[str, str | None]]:
    return [(span.attributes["messaging.message.id"], span.attributes.get(HOW)) for span in spans.ended("process")]


def test_message_when_acknowledged_then_span_is_a_child_of_the_one_it_was_sent_in(
    spans: Spans, processing: Processing
) -> None:
    message = received(7)
    processing.begin(message)
    with processing.current(message), spans.provider.get_tracer("application").start_as_current_span("work"):
        pass
    assert spans.ended("process") == []
    processing.end(message.id, "acknowledge")
    processing.end(message.id, "acknowledge")
    work, span = spans.ended()
    assert (span.name, span.kind, span.status.status_code) == (f"process {TOPIC}", SpanKind.CONSUMER, StatusCode.OK)
    assert (span.parent.span_id, span.context.trace_id) == (0xB7AD6B7169203331, 0x0AF7651916CD43DD8448EB211C80319C)
    assert work.parent.span_id == span.context.span_id
    assert span.attributes[HOW] == "acknowledge"
    assert span.attributes["messaging.destination.subscription.name"] == "s"
    assert span.attributes["messaging.message.id"] == "1:7:-1"


def test_message_when_it_has_no_context_then_begins_a_trace(spans: Spans, processing: Processing) -> None:
    message = received(7, properties={})
    processing.begin(message)
    processing.end(message.id, "negative_acknowledge")
    (span,) = spans.ended()
    assert span.parent is None
    assert span.status.status_code is StatusCode.OK


def test_messages_when_acknowledged_up_to_one_then_those_behind_it_stay_open(
    spans: Spans, processing: Processing
) -> None:
    for message in (received(1), received(2, 0), received(2, 1), received(2, 2), received(3)):
        processing.begin(message)
    processing.end_up_to(MessageId(1, 2, -1, 1))
    assert how_ended(spans) == [(f"1:{each}", "cumulative_acknowledge") for each in ("1:-1", "2:-1:0", "2:-1:1")]
    processing.end_all()
    assert how_ended(spans)[3:] == [("1:2:-1:2", None), ("1:3:-1", None)]


def test_messages_when_too_late_then_those_of_the_entry_end(spans: Spans, processing: Processing) -> None:
    for message in (received(1, 0), received(1, 1), received(2)):
        processing.begin(message)
    processing.end_entries([Position(1, 1), Position(9, 9)])
    assert how_ended(spans) == [("1:1:-1:0", "ack_timeout"), ("1:1:-1:1", "ack_timeout")]


def test_message_when_it_comes_again_then_has_a_new_span(spans: Spans, processing: Processing) -> None:
    processing.begin(received(1))
    processing.begin(received(1))
    assert how_ended(spans) == [("1:1:-1", None)]
    processing.end(MessageId(1, 1), "acknowledge")
    assert how_ended(spans)[1:] == [("1:1:-1", "acknowledge")]


def test_messages_when_never_acknowledged_then_only_so_many_are_followed(
    spans: Spans, processing: Processing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OPEN_MAX", 2)
    for entry in (1, 2, 3):
        processing.begin(received(entry))
    assert how_ended(spans) == [("1:1:-1", None)]


def test_exception_when_processing_then_is_an_event_of_the_span(spans: Spans, processing: Processing) -> None:
    message = received(1)
    processing.begin(message)
    with pytest.raises(RuntimeError), processing.current(message):
        raise RuntimeError("no stock")
    processing.end(message.id, "negative_acknowledge")
    (span,) = spans.ended()
    assert [event.attributes["exception.message"] for event in span.events] == ["no stock"]
    assert span.status.status_code is StatusCode.OK


def test_batch_when_received_then_one_span_has_links_to_its_messages(spans: Spans, processing: Processing) -> None:
    processing.note_batch([received(1), received(2, properties={}), received(3)], 1_700_000_000_000)
    (span,) = spans.ended()
    assert (span.name, span.kind) == (f"receive {TOPIC}", SpanKind.CLIENT)
    assert [link.context.span_id for link in span.links] == [0xB7AD6B7169203331] * 2
    assert span.attributes["messaging.batch.message_count"] == 3
    assert span.start_time == 1_700_000_000_000 * 1_000_000


def test_message_when_only_metrics_are_on_then_is_counted_and_timed() -> None:
    meters, reader = metered()
    processing = Telemetry(False, meters).processing(TOPIC, "s")
    message = received(1)
    processing.begin(message)
    processing.note_batch([message], 1)
    with processing.current(message):
        pass
    processing.end(message.id, "acknowledge")
    points = points_of(reader)
    ((attributes, consumed),) = points["messaging.client.consumed.messages"]
    assert (attributes["messaging.destination.subscription.name"], consumed) == ("s", 1)
    assert [count for _, count in points["messaging.process.duration"]] == [1]

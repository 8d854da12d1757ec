"""Spans, metrics and their names."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    get_tracer,
    set_span_in_context,
)

from interpulse.client import telemetry as module
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.client.telemetry import (
    Processing,
    Telemetry,
    attributes_of,
    context_of,
    link_to_creation,
    traceparent_of,
)
from interpulse.model.errors import TopicTerminated
from interpulse.model.ids import MessageId, Position
from tests.support.spans import Spans, metered, points_of

EXAMPLE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""The example of W3C's recommendation."""


def test_attributes_when_of_a_partition_then_name_it_besides() -> None:
    assert attributes_of("process", "persistent://public/default/t-partition-2", subscription="s") == {
        "messaging.system": "pulsar",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "persistent://public/default/t-partition-2",
        "messaging.destination.partition.id": "2",
        "messaging.destination.subscription.name": "s",
    }
    assert attributes_of("send", "persistent://public/default/t") == {
        "messaging.system": "pulsar",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "persistent://public/default/t",
    }


def test_context_when_written_then_is_the_traceparent_of_w3c_and_is_read_again() -> None:
    made_in = SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, False, TraceFlags(1))
    properties = traceparent_of(set_span_in_context(NonRecordingSpan(made_in), Context()))
    assert properties == {"traceparent": EXAMPLE}
    read = get_current_span(context_of(properties, Context())).get_span_context()
    assert (read.trace_id, read.span_id, read.trace_flags) == (made_in.trace_id, made_in.span_id, 1)
    assert [link.context.span_id for link in link_to_creation(properties)] == [made_in.span_id]


@pytest.mark.parametrize(
    "value", ["", "no", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "ff" + EXAMPLE[2:], "\x00" * 55]
)
def test_context_when_it_cannot_be_read_then_counts_as_none(value: str) -> None:
    assert link_to_creation({"traceparent": value}) == []
    assert not get_current_span(context_of({"traceparent": value}, Context())).get_span_context().is_valid


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


OWN = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class Partition:
    """Takes every message, or none."""

    topic = TOPIC

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.taken: list[OutgoingMessage] = []
        self.futures: list[asyncio.Future[MessageId]] = []

    async def send(self, message: OutgoingMessage) -> MessageId:
        if self.failure is not None:
            raise self.failure
        self.taken.append(message)
        return MessageId(3, len(self.taken))

    async def enqueue(self, message: OutgoingMessage) -> asyncio.Future[MessageId]:
        await self.send(message)
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]


async def test_message_when_sent_then_carries_the_context_of_its_span() -> None:
    spans, partition = Spans(), Partition()
    sending = Telemetry(spans.provider, False).sending()
    message = OutgoingMessage(b"x", properties={"a": "b"})
    with spans.provider.get_tracer("application").start_as_current_span("order") as outer:
        await sending.send(partition, message)
    (span,) = spans.ended("send")
    context = span.get_span_context()
    assert (span.name, span.kind, span.status.status_code) == (f"send {TOPIC}", SpanKind.PRODUCER, StatusCode.OK)
    assert span.parent.span_id == outer.get_span_context().span_id
    assert span.attributes["messaging.message.id"] == "3:1:-1"
    assert message.properties == {"a": "b"}
    assert partition.taken[0].properties == {
        "a": "b",
        "traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}",
    }


async def test_message_when_it_has_a_context_then_keeps_it_and_the_span_is_linked_to_it() -> None:
    spans, partition = Spans(), Partition()
    await Telemetry(spans.provider, False).sending().send(partition, OutgoingMessage(b"x", properties=OWN))
    assert partition.taken[0].properties == OWN
    (span,) = spans.ended()
    assert [link.context.span_id for link in span.links] == [0xB7AD6B7169203331]


async def test_message_when_refused_then_span_and_metrics_name_the_error() -> None:
    spans, (meters, reader) = Spans(), metered()
    sending = Telemetry(spans.provider, meters).sending()
    for attempt in (sending.send, sending.enqueue):
        with pytest.raises(TopicTerminated):
            await attempt(Partition(TopicTerminated("t is terminated")), OutgoingMessage(b"x"))
    for span in spans.ended():
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "t is terminated")
        assert span.attributes["error.type"] == "TopicTerminated"
        assert "messaging.message.id" not in span.attributes
    ((attributes, count),) = points_of(reader)["messaging.client.sent.messages"]
    assert (attributes["error.type"], count) == ("TopicTerminated", 2)


async def test_message_when_queued_then_span_ends_with_its_receipt() -> None:
    spans, partition = Spans(), Partition()
    sending = Telemetry(spans.provider, False).sending()
    futures = [await sending.enqueue(partition, OutgoingMessage(b"x")) for _ in range(3)]
    assert spans.ended() == []
    futures[0].set_result(MessageId(5, 6))
    futures[1].set_exception(TopicTerminated("t is terminated"))
    futures[2].cancel()
    await asyncio.sleep(0)
    said = [(span.attributes.get("messaging.message.id"), span.attributes.get("error.type")) for span in spans.ended()]
    assert said == [("5:6:-1", None), (None, "TopicTerminated"), (None, "CancelledError")]
    with pytest.raises(TopicTerminated):
        futures[1].result()


async def test_message_when_only_metrics_are_on_then_is_sent_as_it_is() -> None:
    partition, (meters, reader) = Partition(), metered()
    sending = Telemetry(False, meters).sending()
    message = OutgoingMessage(b"x")
    with Spans().provider.get_tracer("application").start_as_current_span("order"):
        await sending.send(partition, message)
    assert partition.taken == [message]
    points = points_of(reader)
    assert [count for _, count in points["messaging.client.sent.messages"]] == [1]
    assert [count for _, count in points["messaging.client.operation.duration"]] == [1]


async def test_message_when_its_properties_are_nonsense_then_the_producer_says_so() -> None:
    partition = Partition()
    message = OutgoingMessage(b"x", properties=["a"])  # type: ignore[arg-type]
    await Telemetry(Spans().provider, False).sending().send(partition, message)
    assert partition.taken == [message]


async def test_provider_when_none_was_set_for_the_process_then_messages_go_as_they_are() -> None:
    partition = Partition()
    await Telemetry(True, True).sending().send(partition, OutgoingMessage(b"x"))
    assert not get_tracer("application").start_span("s").is_recording()
    assert partition.taken[0].properties == {}


def test_changes_of_site_and_late_acknowledgements_when_they_happen_then_are_counted() -> None:
    meters, reader = metered()
    telemetry = Telemetry(tracing=False, metrics=meters)
    telemetry.count_site_change()
    for _ in range(2):
        telemetry.count_late_acknowledgement()
    points = points_of(reader)
    assert points["interpulse.client.site_changes"] == [({}, 1)]
    assert points["interpulse.client.late_acknowledgements"] == [({}, 2)]

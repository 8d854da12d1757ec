"""Messages on their way to a broker."""

import asyncio

import pytest
from opentelemetry.trace import SpanKind, StatusCode, get_tracer

from interpulse.client.messages import OutgoingMessage
from interpulse.client.telemetry.telemetry import Telemetry
from interpulse.model.errors import TopicTerminated
from interpulse.model.ids import MessageId
from tests.support.spans import Spans, metered, points_of

TOPIC = "persistent://public/default/t"
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

"""Tracing of the client, against our broker."""

import subprocess
import sys

import pytest

from interpulse.client import Client
from interpulse.model.errors import TopicTerminated
from interpulse.sync import Client as SyncClient
from interpulse.testing.broker import InProcessBroker
from tests.support.spans import Spans, metered, points_of

TOPIC = "persistent://public/default/t"
HOW = "messaging.pulsar.acknowledgment.type"

WITHOUT = """
import sys
from interpulse.sync import Client
with Client(sys.argv[1]) as client:
    with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        producer.send(b"x")
        message = consumer.receive(60_000)
        with consumer.processing(message):
            consumer.acknowledge(message)
assert message.properties == {}
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_client_when_tracing_is_off_then_nothing_of_it_is_loaded(pulsar_broker: InProcessBroker) -> None:
    command = [sys.executable, "-c", WITHOUT, pulsar_broker.service_url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_messages_when_traced_then_one_trace_goes_from_caller_to_worker(pulsar_broker: InProcessBroker) -> None:
    """Through the blocking client, whose event loop has a thread of its own."""
    spans = Spans()
    tracer = spans.provider.get_tracer("application")
    with (
        SyncClient(pulsar_broker.service_url, tracing=spans.provider) as client,
        client.subscribe(TOPIC, "s") as consumer,
        client.create_producer(TOPIC) as producer,
    ):
        with tracer.start_as_current_span("order"):
            futures = [producer.send_async(b"%d" % number) for number in range(3)]
            producer.send(b"last")
        sent_ids = [str(future.result()) for future in futures]
        messages = [consumer.receive(60_000) for _ in range(4)]
        with consumer.processing(messages[0]), tracer.start_as_current_span("work"):
            pass
        consumer.acknowledge(messages[0])
        consumer.negative_acknowledge(messages[3])
        consumer.acknowledge_cumulative(messages[2])
    (order,), (work,) = spans.ended("order"), spans.ended("work")
    sent = {span.attributes["messaging.message.id"]: span for span in spans.ended("send")}
    done = {span.attributes["messaging.message.id"]: span for span in spans.ended("process")}
    assert sent.keys() == done.keys() > set(sent_ids)
    for message_id, span in done.items():
        assert span.parent.span_id == sent[message_id].context.span_id
        assert sent[message_id].parent.span_id == order.context.span_id
    assert [done[str(message.id)].attributes[HOW] for message in messages] == [
        "acknowledge",
        "cumulative_acknowledge",
        "cumulative_acknowledge",
        "negative_acknowledge",
    ]
    assert work.parent.span_id == done[str(messages[0].id)].context.span_id
    assert {span.context.trace_id for span in spans.ended()} == {order.context.trace_id}


async def test_message_when_not_acknowledged_in_time_then_its_span_says_so(pulsar_broker: InProcessBroker) -> None:
    spans = Spans()
    async with Client(pulsar_broker.service_url, tracing=spans.provider) as client:
        consumer = await client.subscribe(TOPIC, "s", subscription_type="shared", ack_timeout_ms=50)
        producer = await client.create_producer(TOPIC)
        await producer.send(b"x")
        await consumer.receive(60_000)
        again = await consumer.receive(60_000)
        consumer.acknowledge(again)
        (batch,) = [await consumer.receive_batch(timeout_ms=1)]
        assert batch == []
    assert [span.attributes[HOW] for span in spans.ended("process")] == ["ack_timeout", "acknowledge"]
    assert spans.ended("receive") == []


async def test_batch_when_received_then_its_span_is_linked_to_what_sent_it(pulsar_broker: InProcessBroker) -> None:
    spans, (meters, reader) = Spans(), metered()
    async with Client(pulsar_broker.service_url, tracing=spans.provider, metrics=meters) as client:
        consumer = await client.subscribe([TOPIC, "u"], "s")
        for topic in (TOPIC, "u"):
            producer = await client.create_producer(topic)
            futures = [await producer.enqueue(b"x") for _ in range(2)]
            for future in futures:
                await future
        assert len(await consumer.receive_batch(messages_max=4, timeout_ms=60_000)) == 4
    sent = {span.context.span_id for span in spans.ended("send")}
    batches = spans.ended("receive")
    assert [len(span.links) for span in batches] == [2, 2]
    assert {link.context.span_id for span in batches for link in span.links} == sent
    points = points_of(reader)
    assert sum(count for _, count in points["messaging.client.sent.messages"]) == 4
    assert sum(count for _, count in points["messaging.client.consumed.messages"]) == 4


async def test_message_when_refused_then_its_span_has_the_error(pulsar_broker: InProcessBroker) -> None:
    spans = Spans()
    async with Client(pulsar_broker.service_url, tracing=spans.provider) as client:
        producer = await client.create_producer(TOPIC)
        pulsar_broker.admin.topics.terminate(TOPIC)
        with pytest.raises(TopicTerminated):
            await producer.send(b"x")
    (span,) = spans.ended("send")
    assert span.attributes["error.type"] == "TopicTerminated"

"""Recorded clients at one broker: what they write, and what is read of the log and the cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from interpulse.client import AdminClient, Client
from interpulse.failover.history.events import Acknowledge, Deliver, MessageName, Outcome, Publish, Subscribe
from interpulse.failover.history.reading import SiteClients, read_cursor, read_cursors, read_log
from interpulse.failover.history.recorded_clients import RecordedConsumer, RecordedProducer
from interpulse.failover.history.recorder import HistoryRecorder
from interpulse.model.errors import InvalidRequest, OperationTimeout, SubscriptionNotFound
from interpulse.testing import InProcessBroker

TOPIC = "persistent://public/default/orders"


@pytest.fixture
async def clients(pulsar_broker: InProcessBroker) -> AsyncIterator[SiteClients]:
    async with AsyncExitStack() as closing:
        client = await closing.enter_async_context(Client(pulsar_broker.service_url))
        admin = await closing.enter_async_context(AdminClient(pulsar_broker.web_url))
        yield SiteClients(client, admin)


@pytest.fixture
def recorder(pulsar_broker: InProcessBroker) -> HistoryRecorder:
    return HistoryRecorder({"east": [pulsar_broker.service_url]})


def of_kind(recorder: HistoryRecorder, kind: type[Publish | Deliver | Acknowledge]) -> list[tuple[int, str]]:
    """Return number and outcome of the events of a kind."""
    events = [event for event in recorder.events if isinstance(event, kind)]
    return [(event.message.number, getattr(event, "outcome", "")) for event in events]


async def test_messages_when_sent_then_named_in_the_log_with_their_batches(
    clients: SiteClients, recorder: HistoryRecorder
) -> None:
    async with await RecordedProducer.create(recorder, clients.client, TOPIC, name="p") as producer:
        assert await producer.send("x", key="k") == MessageName(TOPIC, "p", 0)
        assert await producer.send("y") == MessageName(TOPIC, "p", 1)
    assert of_kind(recorder, Publish) == [(0, "invoked"), (0, "ok"), (1, "invoked"), (1, "ok")]
    log = await read_log(clients.client, "east", TOPIC)
    received = [event.position for event in recorder.events if isinstance(event, Publish) and event.position]
    assert [logged.position for logged in log.messages] == [position.position for position in received]
    assert [(logged.message.number, logged.batch_index, logged.source) for logged in log.messages] == [
        (0, 0, None),
        (1, 0, None),
    ]


async def test_message_when_its_receipt_does_not_come_then_unknown(
    clients: SiteClients, recorder: HistoryRecorder, pulsar_broker: InProcessBroker
) -> None:
    producer = await RecordedProducer.create(recorder, clients.client, TOPIC, name="p", send_timeout_ms=200)
    pulsar_broker.faults.lose_receipts(1)
    with pytest.raises(OperationTimeout):
        await producer.send("x")
    assert of_kind(recorder, Publish) == [(0, "invoked"), (0, "unknown")]
    assert len((await read_log(clients.client, "east", TOPIC)).messages) == 1


async def test_message_when_too_large_then_refused(clients: SiteClients, recorder: HistoryRecorder) -> None:
    producer = await RecordedProducer.create(recorder, clients.client, TOPIC, name="p")
    with pytest.raises(InvalidRequest):
        await producer.send(bytes(6 * 1024 * 1024))
    assert of_kind(recorder, Publish) == [(0, "invoked"), (0, "refused")]


async def test_acknowledgements_when_the_cursor_holds_them_then_confirmed(
    clients: SiteClients, recorder: HistoryRecorder
) -> None:
    consumer = await RecordedConsumer.subscribe(recorder, clients.client, TOPIC, "s", name="c")
    async with await RecordedProducer.create(recorder, clients.client, TOPIC, name="p") as producer:
        for text in ("x", "y", "z"):
            await producer.send(text)
    messages = [await consumer.receive() for _ in range(3)]
    consumer.acknowledge(messages[1], cumulative=True)
    await consumer.close()
    assert await consumer.confirm("east", clients.admin) == 0
    assert [event for event in recorder.events if isinstance(event, Subscribe)]
    assert of_kind(recorder, Deliver) == [(0, ""), (1, ""), (2, "")]
    assert of_kind(recorder, Acknowledge) == [(1, Outcome.INVOKED), (1, Outcome.OK)]
    log = await read_log(clients.client, "east", TOPIC)
    (cursor,) = await read_cursors(clients.admin, "east", TOPIC)
    assert [cursor.holds(logged) for logged in log.messages] == [True, True, False]


async def test_clients_when_of_several_partitions_or_unrecorded_messages_then_refused(
    clients: SiteClients, recorder: HistoryRecorder
) -> None:
    await clients.admin.topics.create_partitioned("several", 2)
    with pytest.raises(InvalidRequest, match="several has 2 partitions: record a producer of each partition"):
        await RecordedProducer.create(recorder, clients.client, "several")
    with pytest.raises(InvalidRequest, match="several has 2 partitions: record a consumer of each one"):
        await RecordedConsumer.subscribe(recorder, clients.client, "several", "s", name="c")
    consumer = await RecordedConsumer.subscribe(recorder, clients.client, TOPIC, "s", name="c")
    async with await clients.client.create_producer(TOPIC) as producer:
        await producer.send("x")
    with pytest.raises(InvalidRequest, match="was not sent by a recorded producer"):
        await consumer.receive()
    with pytest.raises(SubscriptionNotFound, match="Subscription t not found"):
        await read_cursor(clients.admin, "east", TOPIC, "t")

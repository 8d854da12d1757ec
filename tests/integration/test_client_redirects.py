"""Our client when a namespace has moved to another cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import Client
from interpulse.model.ids import Position
from interpulse.testing.broker import InProcessBroker
from tests.support.shared_brokers import shared_brokers
from tests.support.site_pair import TOPIC, site_pair

NAMESPACE = "public/default"


async def test_topic_of_another_broker_than_the_one_of_the_redirect_then_is_found_there(
    pulsar_broker: InProcessBroker,
) -> None:
    east = pulsar_broker
    async with shared_brokers(2, BrokerConfig(cluster_name="west")) as west:
        owner, other = await west.take(TOPIC)
        async with Client(east.service_url, backoff_max_ms=200) as client, asyncio.timeout(60):
            consumer = await client.subscribe(TOPIC, "s")
            producer = await client.create_producer(TOPIC, name="p")
            await producer.send(b"on east")
            former = await consumer.receive()
            await asyncio.to_thread(
                east.admin.namespaces.set_failover_role,
                *(NAMESPACE, "moved", 1),
                url=other.service_url,
                subscriptions_ready=True,
            )
            message_id = await producer.send(b"on west")
            assert message_id.cluster == other.service_url
            message = await consumer.receive()
            assert (message.content, message.id.cluster) == (b"on west", other.service_url)
            consumer.acknowledge(former)
            assert client.session.late_acknowledgements == 1
            topic = next(each for each in owner.app.registry.topics() if str(each.name) == TOPIC)
            assert list(topic.producers.by_name) == ["p"]
            await west.move(TOPIC, other)
            await producer.send(b"on its other broker")
            contents = {(await consumer.receive()).content, (await consumer.receive()).content}
            assert contents == {b"on west", b"on its other broker"}  # the first one was not acknowledged


async def test_reader_when_redirected_then_goes_on_behind_the_copy_of_its_last_message(tmp_path: Path) -> None:
    with site_pair(tmp_path) as pair:
        await pair.raise_ledgers()
        async with Client(pair.east.service_url, backoff_max_ms=200) as client, asyncio.timeout(60):
            producer = await client.create_producer(TOPIC, batch_messages_max=1)
            ids = [await producer.send(b"%d" % number) for number in range(6)]
            await pair.copy(Position(ids[-1].ledger, ids[-1].entry))
            reader = await client.create_reader(TOPIC, receiver_queue_size=1)
            for number in range(3):
                assert (await reader.read_next(10_000)).content == b"%d" % number
            await asyncio.to_thread(
                pair.east.admin.namespaces.set_failover_role,
                *(NAMESPACE, "moved", 1),
                url=pair.west.service_url,
                subscriptions_ready=True,
            )
            newest = await producer.send(b"6")
            assert newest.cluster == pair.west.service_url
            contents = [(await reader.read_next(10_000)).content for _ in range(4)]
            assert contents == [b"3", b"4", b"5", b"6"]
            late = await client.create_reader(TOPIC, start=newest, start_included=True)
            assert (await late.read_next(10_000)).content == b"6"

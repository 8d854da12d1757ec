"""Our client while our broker goes away and comes back."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interpulse.client import Client
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.waiting import until

TOPIC = "persistent://public/default/t"


class Restartable:
    """A broker that comes back at the same address with the same data."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._broker = InProcessBroker(data_dir).start()
        self.service_url = self._broker.service_url

    def stop(self) -> None:
        self._broker.stop()

    def start(self) -> None:
        port = str(urlsplit(self.service_url).port)
        self._broker = InProcessBroker(self._data_dir, {"brokerServicePort": port}).start()

    def sent_count(self, topic: str) -> int:
        """How many messages were sent to consumers that are connected."""
        return sum(each["msgOutCounter"] for each in self._broker.admin.topics.stats(topic)["subscriptions"].values())

    def unload(self, topic: str) -> None:
        self._broker.admin.topics.unload(topic)

    async def restart(self) -> None:
        await asyncio.to_thread(self.stop)
        await asyncio.to_thread(self.start)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restartable]:
    restartable = Restartable(tmp_path / "pulsar")
    yield restartable
    restartable.stop()


async def test_producer_and_consumer_when_the_broker_restarts_then_every_message_arrives_in_order(
    broker: Restartable,
) -> None:
    async with Client(broker.service_url, backoff_max_ms=200) as client:
        consumer = await client.subscribe(TOPIC, "s")
        producer = await client.create_producer(TOPIC, batch_messages_max=10)
        futures = []
        for number in range(300):
            futures.append(await producer.enqueue(b"%d" % number))
            if number == 150:
                await broker.restart()
        await asyncio.wait_for(producer.flush(), 120)
        assert all(future.result().ledger >= 0 for future in futures)
        seen: list[bytes | None] = []
        while not seen or seen[-1] != b"299":
            message = await consumer.receive(60_000)
            consumer.acknowledge(message)
            if message.content not in seen:
                seen.append(message.content)
        assert seen == [b"%d" % number for number in range(300)]


async def test_readers_at_the_end_when_the_topic_is_unloaded_then_what_waits_for_the_program_comes_once(
    broker: Restartable,
) -> None:
    async with Client(broker.service_url, backoff_max_ms=200) as client:
        consumer = await client.subscribe(TOPIC, "s", durable=False)
        reader = await client.create_reader(TOPIC, start=LATEST)
        producer = await client.create_producer(TOPIC)
        expected = [b"%d" % number for number in range(20)]
        for content in expected[:10]:
            await producer.send(content)
        await asyncio.to_thread(until, lambda: broker.sent_count(TOPIC) == 20)
        await asyncio.to_thread(broker.unload, TOPIC)
        for content in expected[10:]:
            await producer.send(content)
        assert [(await consumer.receive(60_000)).content for _ in expected] == expected
        assert [(await reader.read_next(60_000)).content for _ in expected] == expected


async def test_entry_reader_when_the_broker_restarts_then_reads_each_entry_once(broker: Restartable) -> None:
    async with Client(broker.service_url, backoff_max_ms=200) as client:
        sender = await client.create_entry_sender(TOPIC, "lane")
        futures = []
        for number in range(2000):
            metadata = pb.MessageMetadata(producer_name="lane", sequence_id=number, publish_time=1)
            futures.append(await sender.send(metadata.SerializeToString(), bytes(1000), sequence_id=number))
        await sender.drain()
        await sender.close()
        upto = futures[-1].result().position
        reader = await client.create_entry_reader(TOPIC, after=EARLIEST, upto=upto, buffer_bytes=100_000)
        positions: list[Position] = []
        async for entry in reader:
            positions.append(entry.position)
            if len(positions) == 500:
                await broker.restart()
        assert positions == [future.result().position for future in futures]
        assert reader.resubscribed_count >= 1
        await reader.close()


async def test_entry_sender_when_the_broker_restarts_then_nothing_is_lost(broker: Restartable) -> None:
    async with Client(broker.service_url, backoff_max_ms=200) as client:
        sender = await client.create_entry_sender(TOPIC, "lane")
        futures = []
        for number in range(400):
            metadata = pb.MessageMetadata(producer_name="lane", sequence_id=number, publish_time=1)
            futures.append(await sender.send(metadata.SerializeToString(), bytes(1000), sequence_id=number))
            if number == 200:
                await broker.restart()
        await asyncio.wait_for(sender.drain(), 120)
        positions = [future.result().position for future in futures]
        assert positions == sorted(set(positions))
        await sender.close()
        reader = await client.create_entry_reader(TOPIC, after=EARLIEST, upto=positions[-1])
        stored = [(entry.position, entry.parsed.metadata.sequence_id) async for entry in reader]
        await reader.close()
        assert stored == list(zip(positions, range(400), strict=True))


async def test_client_when_the_broker_is_down_then_waits_for_it_when_opening(broker: Restartable) -> None:
    await asyncio.to_thread(broker.stop)
    async with Client(broker.service_url, backoff_max_ms=100) as client:
        opening = asyncio.create_task(client.create_producer(TOPIC))
        await asyncio.to_thread(broker.start)
        producer = await asyncio.wait_for(opening, 120)
        await producer.send(b"at last")

"""What one entry costs in the live topic, over a log in memory: microseconds of CPU per entry.

    python -m benchmarks.micro_topic [entries]

The sinks of the front ends are empty, so this is the broker between the front ends and the log.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence

from interpulse.broker.live.api import Delivery, ProducerRequest, SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.registry.topic_registry import TopicRegistry, TopicStores
from interpulse.broker.live.topic.topic import Topic
from interpulse.clock import SystemClock
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.storage.api import Put
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from tests.support.memory_storage import MemoryMetadataStore, memory_log_store

ENTRY = build_entry(
    pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1).SerializeToString(), b"x" * 100
)
GROUP = 200
"""Entries published between two group commits."""


class Sink:
    """Both sinks; counts what it is told."""

    writable = True

    def __init__(self) -> None:
        self.receipt_count = 0
        self.entries = 0
        self.last: Sequence[Delivery] = ()

    def receipts(self, producer_id: int, receipts: Sequence[tuple[int, int, int, int]]) -> None:
        self.receipt_count += len(receipts)

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        self.entries += len(batch)
        self.last = batch

    def send_failed(self, producer_id: int, sequence_id: int, error: PulsarError) -> None:
        raise error

    def active_changed(self, consumer_id: int, active: bool) -> None: ...

    def producer_ready(self, producer_id: int, topic_epoch: int) -> None: ...

    def producer_refused(self, producer_id: int, error: PulsarError) -> None: ...

    def producer_closed(self, producer_id: int) -> None: ...

    def consumer_closed(self, consumer_id: int) -> None: ...

    def end_of_topic(self, consumer_id: int) -> None: ...

    async def is_alive(self) -> bool:
        return True


class Rig:
    """One topic and its registry."""

    def __init__(self, *, deduplication: bool = False) -> None:
        self.metadata = MemoryMetadataStore()
        self.settings = TopicSettings(deduplication_enabled=deduplication)
        self.registry = TopicRegistry(
            TopicStores(self.metadata, memory_log_store(self.metadata)),
            cluster="bench",
            clock=SystemClock(),
            open_rule=self._create,
            settings_of=self._settings,
        )

    async def _create(self, name: TopicName, by: Requester, create: bool) -> None:
        record = {"ledgers": [], "properties": {}}
        await self.metadata.commit([Put(f"/managed-ledgers/{name.log_name}", json.dumps(record).encode())])

    async def _settings(self, name: TopicName) -> TopicSettings:
        return self.settings

    async def topic(self) -> Topic:
        await self.registry.start()
        topic = await self.registry.open(TopicName.parse("bench"))
        assert isinstance(topic, Topic)
        return topic


async def publish_all(topic: Topic, entries: int) -> None:
    sink = Sink()
    producer = await topic.add_producer(ProducerRequest(1, "p"), sink)
    for start in range(0, entries, GROUP):
        for number in range(start, start + GROUP):
            producer.publish([number], [ENTRY])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert sink.receipt_count == entries
    producer.close()


async def publish(entries: int, *, deduplication: bool, subscriptions: int = 0) -> float:
    rig = Rig(deduplication=deduplication)
    topic = await rig.topic()
    sink = Sink()
    for number in range(subscriptions):
        consumer = await topic.subscribe(SubscribeRequest(number, f"s{number}"), sink)
        consumer.flow(entries)
    begin = time.process_time()
    await publish_all(topic, entries)
    spent = time.process_time() - begin
    assert sink.entries == entries * subscriptions
    await rig.registry.close()
    return spent


async def drain(entries: int, sub_type: SubType, *, acknowledge: str) -> float:
    rig = Rig()
    topic = await rig.topic()
    await topic.create_subscription("s")
    await publish_all(topic, entries)
    sink = Sink()
    begin = time.process_time()
    consumer = await topic.subscribe(SubscribeRequest(1, "s", sub_type), sink)
    while sink.entries < entries:
        before = sink.entries
        consumer.flow(1000)
        if acknowledge == "each":
            for delivery in sink.last:
                consumer.acknowledge(delivery.position)
        elif acknowledge == "cumulative" and sink.last:
            consumer.acknowledge_cumulative(sink.last[-1].position)
        if sink.entries == before:
            await asyncio.sleep(0)
    spent = time.process_time() - begin
    await rig.registry.close()
    return spent


async def main(entries: int) -> None:
    cases = {
        "publish and receipt": lambda: publish(entries, deduplication=False),
        "publish and receipt, de-duplication": lambda: publish(entries, deduplication=True),
        "publish, receipt, one consumer": lambda: publish(entries, deduplication=False, subscriptions=1),
        "publish, receipt, ten consumers": lambda: publish(entries, deduplication=False, subscriptions=10),
        "drain Exclusive, cumulative": lambda: drain(entries, SubType.EXCLUSIVE, acknowledge="cumulative"),
        "drain Shared, each acknowledged": lambda: drain(entries, SubType.SHARED, acknowledge="each"),
        "drain Key_Shared, each acknowledged": lambda: drain(entries, SubType.KEY_SHARED, acknowledge="each"),
    }
    for name, run in cases.items():
        best = min([await run() for _ in range(3)])
        print(f"{name:40} {best / entries * 1e6:6.2f} us")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))

"""What dispatch costs in the live topic, over a log in memory: microseconds of CPU per entry or message.

    python benchmarks/micro_dispatch.py [entries]

Key_Shared among consumers of which one may be slow, redelivery, batches acknowledged message by message, ten
subscriptions on one topic, live and behind, and delayed entries: each of them beside the simpler thing that it should
not be much dearer than. The garbage collector is set as in the broker.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable

from benchmarks.micro_topic import GROUP, Rig, Sink
from interpulse.broker.live.api import ProducerRequest, SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.policies.policy_records import DelayedDelivery
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry

KEYS = 1000
KEYS_MANY = 100_000
HELD = 10_000
BATCH = 100
FAR_MS = 10**13
TURNS_MAX = 1_000_000


def stored(**metadata: object) -> bytes:
    """An entry of 100 bytes."""
    values = {"producer_name": "p", "sequence_id": 1, "publish_time": 1, **metadata}
    return build_entry(pb.MessageMetadata(**values).SerializeToString(), b"x" * 100)  # type: ignore[arg-type]


async def publish(topic: Topic, entries: list[bytes], *, messages: int = 1) -> None:
    producer = await topic.add_producer(ProducerRequest(1, "p"), Sink())
    for start in range(0, len(entries), GROUP):
        for number, entry in enumerate(entries[start : start + GROUP], start):
            producer.publish([number], [entry], num_messages=messages)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    producer.close()


async def loaded(settings: TopicSettings | None = None) -> tuple[Rig, Topic]:
    rig = Rig()
    if settings is not None:
        rig.settings = settings
    topic = await rig.topic()
    await topic.create_subscription("s")
    return rig, topic


class Member:
    """A consumer that acknowledges what it gets, and grants as many permits again."""

    def __init__(self, consumer: Consumer, sink: Sink) -> None:
        self.consumer, self.sink = consumer, sink

    def work(self) -> None:
        self.consumer.acknowledge(*self.consumer.pending)
        self.consumer.flow(1000 - self.consumer.permits)


async def share(entries: int, sub_type: SubType, *, consumers: int, keys: int = KEYS, slow: bool = False) -> float:
    """Consumers drain a backlog of many keys; a slow one among them holds its keys until all others are done."""
    rig, topic = await loaded()
    await publish(topic, [stored(partition_key=f"k{number % keys}") for number in range(entries)])
    members = []
    for number in range(consumers):
        sink = Sink()
        request = SubscribeRequest(number, "s", sub_type, f"c{number}")
        members.append(Member(await topic.subscribe(request, sink), sink))
    if slow:
        members.pop(0).consumer.flow(10)
    begin = time.process_time()
    before = -1
    for _ in range(TURNS_MAX):
        for member in members:
            member.work()
        await asyncio.sleep(0)
        done = sum(member.sink.entries for member in members)
        if done in (entries, before):
            break
        before = done
    spent = time.process_time() - begin
    await rig.registry.close()
    return spent / max(done, 1)


async def redelivery(entries: int, sub_type: SubType, *, named: bool = False) -> float:
    """A consumer gives back what it holds and gets it again, over and over; per entry, ``named`` one by one or not."""
    rig, topic = await loaded()
    await publish(topic, [stored(partition_key=f"k{number % KEYS}") for number in range(HELD)])
    sink = Sink()
    consumer = await topic.subscribe(SubscribeRequest(1, "s", sub_type), sink)
    consumer.flow(HELD)
    for _ in range(TURNS_MAX):
        if sink.entries == HELD:
            break
        await asyncio.sleep(0)
    rounds = max(entries // HELD, 1)
    begin = time.process_time()
    for _ in range(rounds):
        consumer.redeliver(list(consumer.pending) if named else ())
        consumer.flow(HELD)
    spent = time.process_time() - begin
    assert sink.entries == (rounds + 1) * HELD
    await rig.registry.close()
    return spent / rounds / HELD


async def batch_index(entries: int) -> float:
    """Every message of every batch is acknowledged by itself; per message."""
    rig, topic = await loaded()
    batches = entries // BATCH
    await publish(topic, [stored(num_messages_in_batch=BATCH)] * batches, messages=BATCH)
    sink = Sink()
    consumer = await topic.subscribe(SubscribeRequest(1, "s", SubType.SHARED), sink)
    consumer.flow(entries)
    positions = list(consumer.pending)
    every = (1 << BATCH) - 1
    words = [_words(every ^ (1 << number)) for number in range(BATCH)]
    begin = time.process_time()
    for position in positions:
        for each in words:
            consumer.acknowledge(position, ack_set=each)
    spent = time.process_time() - begin
    assert not consumer.pending
    await rig.registry.close()
    return spent / entries


def _words(mask: int) -> tuple[int, ...]:
    return tuple(mask >> shift & (1 << 64) - 1 for shift in range(0, BATCH, 64))


async def fan_out(entries: int, subscriptions: int) -> float:
    """Each subscription has a consumer while entries are published; per delivery."""
    rig, topic = await loaded()
    sinks = [Sink() for _ in range(subscriptions)]
    for number, sink in enumerate(sinks):
        (await topic.subscribe(SubscribeRequest(number, f"s{number}", SubType.SHARED), sink)).flow(entries)
    begin = time.process_time()
    await publish(topic, [stored()] * entries)
    spent = time.process_time() - begin
    assert all(sink.entries == entries for sink in sinks)
    await rig.registry.close()
    return spent / entries / subscriptions


async def drain(entries: int, subscriptions: int) -> float:
    """Exclusive subscriptions begin to read a backlog that the log has in memory, together; per delivery."""
    rig, topic = await loaded()
    names = [f"s{number}" for number in range(subscriptions)]
    for name in names:
        await topic.create_subscription(name)
    await publish(topic, [stored()] * entries)
    sinks = [Sink() for _ in names]
    consumers = [
        await topic.subscribe(SubscribeRequest(number, name, SubType.EXCLUSIVE), sinks[number])
        for number, name in enumerate(names)
    ]
    begin = time.process_time()
    for _ in range(0, entries, 1000):
        for consumer in consumers:
            consumer.flow(1000)
        await asyncio.sleep(0)
    spent = time.process_time() - begin
    assert all(sink.entries == entries for sink in sinks)
    await rig.registry.close()
    return spent / entries / subscriptions


async def delayed(entries: int) -> float:
    """Entries that wait for their time are looked at, and kept."""
    rig, topic = await loaded(TopicSettings(delayed_delivery=DelayedDelivery()))
    await publish(topic, [stored(deliver_at_time=FAR_MS + number % 1000) for number in range(entries)])
    consumer = await topic.subscribe(SubscribeRequest(1, "s", SubType.SHARED), Sink())
    begin = time.process_time()
    consumer.flow(1000)
    for _ in range(TURNS_MAX):
        if topic.measure().subscriptions["s"].delayed == entries:
            break
        await asyncio.sleep(0)  # they are looked at in several turns
    spent = time.process_time() - begin
    await rig.registry.close()
    return spent / entries


async def main(entries: int) -> None:
    cases: dict[str, Callable[[], Awaitable[float]]] = {
        "Shared, 8 consumers": lambda: share(entries, SubType.SHARED, consumers=8),
        "Key_Shared, 8 consumers": lambda: share(entries, SubType.KEY_SHARED, consumers=8),
        "Key_Shared, 8 consumers, 100,000 keys": lambda: share(
            entries, SubType.KEY_SHARED, consumers=8, keys=KEYS_MANY
        ),
        "Key_Shared, 8 consumers, one slow": lambda: share(entries, SubType.KEY_SHARED, consumers=8, slow=True),
        "redelivery, Shared": lambda: redelivery(entries, SubType.SHARED),
        "redelivery, Shared, entries named": lambda: redelivery(entries, SubType.SHARED, named=True),
        "redelivery, Key_Shared": lambda: redelivery(entries, SubType.KEY_SHARED),
        "message of a batch, acknowledged alone": lambda: batch_index(entries),
        "publish and one subscription": lambda: fan_out(entries, 1),
        "publish and ten subscriptions, each": lambda: fan_out(entries, 10),
        "ten Exclusive subscriptions drain a backlog, each": lambda: drain(entries, 10),
        "entry that waits for its time": lambda: delayed(entries),
    }
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    for name, run in cases.items():
        best = min([await run() for _ in range(3)])
        print(f"{name:50} {best * 1e6:6.2f} us")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))

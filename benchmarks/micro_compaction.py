"""What compacting a topic costs: time and CPU per message, memory, and how long others wait for their turn.

    python -m benchmarks.micro_compaction [--directory DIR] [--messages 200000] [--keys 10000] [--batch 1] [--bytes 100]

Over the segment log in one process without front ends. The longest wait is that of a task that wants a turn of the
event loop again and again while the compaction runs, beside its wait without one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.micro_topic import Sink
from interpulse.broker.live.api import ProducerRequest, SubscribeRequest, TopicSettings
from interpulse.broker.live.compaction.compaction import CompactionStatus
from interpulse.broker.live.registry.topic_registry import TopicRegistry, TopicStores
from interpulse.broker.live.topic.topic import Topic
from interpulse.clock import SystemClock
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.storage.api import Put
from interpulse.storage.segments.journal import open_log_store
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry
from tests.support.memory_storage import MemoryMetadataStore

NAME = TopicName.parse("persistent://bench/ns/compacted")
GROUP = 200
"""Entries published between two turns."""


@dataclass
class Load:
    messages: int
    keys: int
    batch: int
    size: int

    def entries(self) -> Iterator[bytes]:
        """Keys come in turn, so that every message but the last of its key goes."""
        for number in range(0, self.messages, self.batch):
            yield self._entry(number)

    def _entry(self, number: int) -> bytes:
        metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1)
        payload = b"x" * self.size
        if self.batch > 1:
            rows = ((pb.SingleMessageMetadata(partition_key=self._key(number + n)), payload) for n in range(self.batch))
            payload = pack_batch(rows)
            metadata.num_messages_in_batch = self.batch
            metadata.uncompressed_size = len(payload)
        else:
            metadata.partition_key = self._key(number)
        return build_entry(metadata.SerializeToString(), payload)

    def _key(self, number: int) -> str:
        return f"key-{number * 7919 % self.keys}"


async def open_rule(name: TopicName, by: Requester, create: bool) -> None:
    """Every topic may be opened."""


async def default_settings(name: TopicName) -> TopicSettings:
    return TopicSettings()


async def publish(topic: Topic, load: Load) -> None:
    sink = Sink()
    producer = await topic.add_producer(ProducerRequest(1, "p"), sink)
    sent = 0
    for sent, entry in enumerate(load.entries(), 1):
        producer.publish([sent], [entry], num_messages=load.batch)
        if sent % GROUP == 0:
            await asyncio.sleep(0)
    while sink.receipt_count < sent:  # noqa: ASYNC110  # the sink has no event
        await asyncio.sleep(0.001)
    producer.close()


async def compact(topic: Topic) -> None:
    topic.compaction.begin()
    while topic.compaction.status is CompactionStatus.RUNNING:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    if topic.compaction.status is not CompactionStatus.SUCCESS:
        raise SystemExit(topic.compaction.last_error)


async def read_compacted(topic: Topic) -> None:
    sink = Sink()
    current = topic.log.compacted.current
    assert current is not None
    request = SubscribeRequest(1, "r", durable=False, start_message_id=MessageId(*EARLIEST), read_compacted=True)
    consumer = await topic.subscribe(request, sink)
    consumer.flow(2**30)
    while sink.entries < current.entries:  # noqa: ASYNC110
        await asyncio.sleep(0)
    consumer.close()


async def longest_wait(work: Awaitable[None]) -> float:
    """Do the work; the longest time between two turns of another task meanwhile, in milliseconds."""
    longest = 0.0
    task = asyncio.ensure_future(work)
    before = time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before - 0.001), now
    await task
    return longest * 1000


async def measured(what: str, count: int, work: Awaitable[None]) -> None:
    clock, cpu, memory = time.perf_counter(), time.process_time(), peak_mb()
    wait = await longest_wait(work)
    seconds, used = time.perf_counter() - clock, time.process_time() - cpu
    print(
        f"{what:32} {seconds:7.2f} s  {used / count * 1e6:7.2f} us CPU per message"
        f"  {peak_mb() - memory:6.1f} MB more at the peak  longest wait {wait:6.1f} ms"
    )


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def run(directory: Path, load: Load) -> None:
    metadata = MemoryMetadataStore()
    await metadata.commit([Put(f"/managed-ledgers/{NAME.log_name}", json.dumps({"ledgers": []}).encode())])
    logs = await open_log_store(directory, metadata)
    registry = TopicRegistry(
        TopicStores(metadata, logs), cluster="c", clock=SystemClock(), open_rule=open_rule, settings_of=default_settings
    )
    await registry.start()
    topic = await registry.open(NAME)
    assert isinstance(topic, Topic)
    await measured("publish", load.messages, publish(topic, load))
    await measured("nothing for a second", load.messages, asyncio.sleep(1))
    await measured("compact", load.messages, compact(topic))
    await publish(topic, Load(load.batch, load.keys, load.batch, load.size))
    kept = topic.log.compacted.current
    assert kept is not None
    await measured("compact after one more entry", load.keys, compact(topic))
    await measured("read compacted", load.keys, read_compacted(topic))
    print(f"kept: {kept.entries} entries, {kept.size} bytes")
    await registry.close()
    await logs.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="on the disk you want to know about")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=100)
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(dir=options.directory))
    try:
        asyncio.run(run(directory, Load(options.messages, options.keys, options.batch, options.bytes)))
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()

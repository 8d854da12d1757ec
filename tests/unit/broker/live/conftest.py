"""A registry over memory, and sinks that write down what they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from interpulse.broker.committer import ALONE, IN_CLUSTER
from interpulse.broker.live.api import Delivery, ProducerRequest, SubscribeRequest, SubType, TopicSettings
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.producing.producer import Producer
from interpulse.broker.live.registry.topic_registry import RegistrySettings, TopicRegistry, TopicStores
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.rules.failover_role import FailoverRole
from interpulse.storage.api import Put
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.records import LogQuorums, Quorum
from interpulse.storage.cursors import CursorStore, RecordedCursors
from interpulse.storage.logs.topic_log import LogConfig
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.managed_ledger.cursor_ledgers import LedgerCursors
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry
from tests.support.cursor_ledgers import Ledgers
from tests.support.fake_clock import FakeClock
from tests.support.memory_storage import MemoryJournal, MemoryMetadataStore, memory_log_store

TOPIC = TopicName.parse("persistent://public/default/t")


@dataclass
class RecordingProducerSink:
    received: list[tuple[int, int, int, int]] = field(default_factory=list)
    """sequence id, highest, ledger, entry"""
    failures: list[tuple[int, PulsarError]] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    refused: list[PulsarError] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    moved: list[tuple[int, FailoverRole]] = field(default_factory=list)
    alive: bool = True
    throttled: list[int] = field(default_factory=list)
    """For how many ms nothing more was to be read"""
    order: list[int] = field(default_factory=list)
    """sequence ids in the order of all answers"""

    def receipts(self, producer_id: int, receipts: Sequence[tuple[int, int, int, int]]) -> None:
        self.received += receipts
        self.order += [receipt[0] for receipt in receipts]

    def send_failed(self, producer_id: int, sequence_id: int, error: PulsarError) -> None:
        self.failures.append((sequence_id, error))
        self.order.append(sequence_id)

    def throttle(self, wait_ms: int) -> None:
        self.throttled.append(wait_ms)

    def producer_ready(self, producer_id: int, topic_epoch: int) -> None:
        self.ready.append(topic_epoch)

    def producer_refused(self, producer_id: int, error: PulsarError) -> None:
        self.refused.append(error)

    def producer_closed(self, producer_id: int) -> None:
        self.closed.append(producer_id)

    def producer_moved(self, producer_id: int, moved: FailoverRole) -> None:
        self.moved.append((producer_id, moved))

    async def is_alive(self) -> bool:
        return self.alive


@dataclass
class RecordingConsumerSink:
    deliveries: list[Delivery] = field(default_factory=list)
    active: list[bool] = field(default_factory=list)
    consumer_ids: set[int] = field(default_factory=set)
    """All that it was ever told something of"""
    ended: int = 0
    closed: list[int] = field(default_factory=list)
    moved: list[tuple[int, FailoverRole]] = field(default_factory=list)
    alive: bool = True
    writable: bool = True

    def deliver(self, consumer_id: int, batch: Sequence[Delivery]) -> None:
        self.deliveries += batch
        self.consumer_ids.add(consumer_id)

    def active_changed(self, consumer_id: int, active: bool) -> None:
        self.active.append(active)
        self.consumer_ids.add(consumer_id)

    def end_of_topic(self, consumer_id: int) -> None:
        self.ended += 1
        self.consumer_ids.add(consumer_id)

    def consumer_closed(self, consumer_id: int) -> None:
        self.closed.append(consumer_id)

    def consumer_moved(self, consumer_id: int, moved: FailoverRole) -> None:
        self.moved.append((consumer_id, moved))

    async def is_alive(self) -> bool:
        return self.alive

    def take(self) -> list[Delivery]:
        taken, self.deliveries = self.deliveries, []
        return taken

    def numbers(self) -> list[int]:
        """The payloads of what was delivered since the last look, which tests make numbers."""
        return [number_of(each.entry) for each in self.take()]


def make_entry(number: int, *, producer: str = "p", **metadata: Any) -> bytes:
    """A stored entry whose payload is a number."""
    metadata.setdefault("publish_time", 1_000 + number)
    return build_entry(
        pb.MessageMetadata(producer_name=producer, sequence_id=number, **metadata).SerializeToString(),
        str(number).encode(),
    )


def number_of(entry: bytes) -> int:
    size = int.from_bytes(entry[6:10], "big")
    return int(entry[10 + size :])


class LiveBench:
    """One broker's worth of topics over memory, which can be restarted."""

    SHARED, FAILOVER, KEY_SHARED = SubType.SHARED, SubType.FAILOVER, SubType.KEY_SHARED

    def __init__(self, *, shared: bool = False) -> None:
        """``shared``: as in a cluster, in Pulsar's layout."""
        self.shared = shared
        self.layout = IN_CLUSTER if shared else ALONE
        self.cursor_ledgers = Ledgers(first_id=1_000)
        self.clock = FakeClock()
        self.metadata = MemoryMetadataStore()
        self.journal = MemoryJournal()
        self.settings = TopicSettings()
        self.broker_entry_fields: BrokerEntryFields | None = None
        """What the next start puts in front of entries."""
        self.log_config = LogConfig(ledger_age_min_ms=0)
        self.read_bytes_max = 1_000_000
        self.opened: list[TopicName] = []
        self.registry = self._make()

    def _make(self) -> TopicRegistry:
        cursors: CursorStore = RecordedCursors(self.metadata)
        self.logs = memory_log_store(self.metadata, self.log_config, self.journal)
        if self.shared:
            self.logs = TopicLogStore(
                self.metadata,
                self.journal,
                self.log_config,
                codec=self.layout.topic_records,
                compacted_form=PulsarCompacted(),
            )
            cursors = LedgerCursors(
                self.metadata, cast(BookKeeperClient, self.cursor_ledgers), LogQuorums(Quorum(3, 3, 2))
            )
        return TopicRegistry(
            TopicStores(self.metadata, self.logs, self.layout, cursors),
            cluster="c",
            clock=self.clock,
            open_rule=self._open_rule,
            settings_of=self._settings,
            settings=RegistrySettings(broker_entry_fields=self.broker_entry_fields, read_bytes_max=self.read_bytes_max),
        )

    async def _open_rule(self, name: TopicName, by: Requester, create: bool) -> None:
        self.opened.append(name)
        key = f"/managed-ledgers/{name.log_name}"
        if await self.metadata.get(key) is None:
            if not create:
                raise TopicNotFound(f"Topic {name} does not exist")
            if name.is_persistent:
                record = b"" if self.shared else json.dumps({"ledgers": [], "properties": {}}).encode()
                await self.metadata.commit([Put(key, record)])

    async def _settings(self, name: TopicName) -> TopicSettings:
        return self.settings

    async def topic(self, name: TopicName = TOPIC) -> Topic:
        topic = await self.registry.open(name)
        assert isinstance(topic, Topic)
        return topic

    async def restart(self) -> None:
        """End orderly and begin again on the same data."""
        await self.registry.close()
        self.registry = self._make()
        await self.registry.start()

    async def crash(self) -> None:
        """Begin again on the same data without having stored anything more."""
        for task in list(self.registry._tasks._tasks):
            task.cancel()
        self.registry = self._make()
        await self.registry.start()

    async def producer(self, topic: Any, name: str = "p", **request: Any) -> tuple[Producer, RecordingProducerSink]:
        sink = RecordingProducerSink()
        request.setdefault("producer_id", 1)
        return await topic.add_producer(ProducerRequest(name=name, **request), sink), sink

    async def consumer(
        self, topic: Any, subscription: str = "s", *, permits: int = 1000, **request: Any
    ) -> tuple[Consumer, RecordingConsumerSink]:
        sink = RecordingConsumerSink()
        request.setdefault("consumer_id", 1)
        consumer = await topic.subscribe(SubscribeRequest(subscription=subscription, **request), sink)
        consumer.flow(permits)
        await settle()
        return consumer, sink

    def entry(self, number: int, **metadata: Any) -> bytes:
        return make_entry(number, **metadata)

    async def settle(self) -> None:
        await settle()

    async def publish(self, topic: Any, *numbers: int, name: str = "filler") -> None:
        """Publish these numbers as entries, and wait until they are durable."""
        producer, _ = await self.producer(topic, name, producer_id=99)
        for number in numbers:
            producer.publish([number], [make_entry(number, producer=name)])
        await settle()
        producer.close()


async def settle() -> None:
    """Let the group commit and everything that follows from it happen."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def bench() -> AsyncIterator[LiveBench]:
    async with running(LiveBench()) as bench:
        yield bench


@asynccontextmanager
async def running(bench: LiveBench) -> AsyncIterator[LiveBench]:
    """A callback of the loop that raises fails the test."""
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    await bench.registry.start()
    yield bench
    await bench.registry.close()
    assert unhandled == []


@pytest.fixture
def topic_name() -> TopicName:
    return TOPIC


@pytest.fixture(name="settle")
def settle_fixture() -> Callable[[], Awaitable[None]]:
    return settle


@pytest.fixture(name="make_entry")
def make_entry_fixture() -> Callable[..., bytes]:
    return make_entry


@pytest.fixture
def publish() -> Callable[..., Awaitable[None]]:
    """Publish these numbers, and wait until they are answered."""

    async def publish_numbers(producer: Producer, *numbers: int, **metadata: Any) -> None:
        for number in numbers:
            producer.publish([number], [make_entry(number, producer=producer.name, **metadata)])
        await settle()

    return publish_numbers


@pytest.fixture
def join(bench: LiveBench) -> Any:
    async def join(topic: Any, name: str = "a", permits: int = 1000, **request: Any) -> tuple[Any, Any]:
        request.setdefault("sub_type", bench.SHARED)
        return await bench.consumer(topic, consumer_name=name, consumer_id=ord(name), permits=permits, **request)

    return join

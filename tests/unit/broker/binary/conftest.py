"""A connection without a socket, in front of a context that only remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from interpulse.broker.access.setup import Access
from interpulse.broker.binary.handlers import HANDLERS
from interpulse.broker.binary.transport.connection import ClientConnection
from interpulse.broker.binary.transport.context import ConnectionLimits
from interpulse.broker.binary.transport.flow_control import PublishBuffer
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.inconsistencies import InconsistencyCounters
from interpulse.broker.live.api import LastMessage, ProducerRequest, SubscribeRequest
from interpulse.broker.ownership.ownership import SoleOwner
from interpulse.broker.topics.lookup.lookup import Lookups
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, TopicWatch
from interpulse.model.errors import PulsarError, SchemaNotFound, TopicNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.bundles import boundaries_of
from interpulse.rules.lookup import LookupTarget
from interpulse.rules.topic_view import NamespaceStanding
from interpulse.serving.address_events import DroppedConnections
from interpulse.serving.admission import LookupPermits
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame, FrameDecoder
from interpulse.wire.protocols import ServerProtocol
from tests.support import commands

TOPIC = "persistent://public/default/t-partition-3"


class FakeTransport(asyncio.Transport):
    """Remembers what was written and whether it is read from."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5)})
        self.written: list[bytes] = []
        self.reading = True
        self.closed = False
        self.buffer_size = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high

    def get_write_buffer_size(self) -> int:
        return self.buffer_size

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.written.append(b"".join(list_of_data))

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class FakeProducer:
    def __init__(self, request: ProducerRequest, sink: Any) -> None:
        self.producer_id = request.producer_id
        self.request, self.sink = request, sink
        self.name = request.name or "standalone-0-1"
        self.ready, self.topic_epoch, self.last_sequence_id = True, None, -1
        self.published: list[tuple[Any, ...]] = []
        self.runs: list[tuple[list[int], list[bytes]]] = []
        self.takes_runs = False
        self.closed = False

    def takes_run(self, sequence_ids: Sequence[int], entries: Sequence[bytes]) -> bool:
        return self.takes_runs

    def publish(
        self,
        sequence_ids: Sequence[int],
        entries: Sequence[bytes],
        *,
        highest_sequence_id: int = -1,
        num_messages: int = 1,
        is_chunk: bool = False,
        marker: bool = False,
    ) -> None:
        if len(entries) > 1:
            self.runs.append((list(sequence_ids), list(entries)))
        else:
            row = (sequence_ids[0], highest_sequence_id, num_messages, entries[0], is_chunk, marker)
            self.published.append(row)

    def close(self) -> None:
        self.closed = True


class FakeConsumer:
    subscription_name = "s"
    read_compacted = False

    def __init__(self, request: SubscribeRequest, sink: Any) -> None:
        self.consumer_id, self.name, self.epoch = request.consumer_id, "c", request.epoch
        self.request, self.sink, self.metadata = request, sink, request.metadata
        self.calls: list[tuple[Any, ...]] = []
        self.failure: PulsarError | None = None
        self.closed = False

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    def flow(self, permits: int) -> None:
        self._note("flow", permits)

    def resume(self) -> None:
        self._note("resume")

    def acknowledge(self, *positions: Position, ack_set: Sequence[int] = ()) -> None:
        if len(positions) == 1:
            self._note("ack", positions[0], tuple(ack_set))
        else:
            self._note("ack_all", positions)

    def acknowledge_cumulative(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        self._note("ack_cumulative", position, tuple(ack_set))

    def redeliver(self, positions: Sequence[Position] = (), epoch: int | None = None) -> None:
        self._note("redeliver", tuple(positions), epoch)

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        self.sink.consumer_closed(self.consumer_id)
        self._note("seek", position, tuple(ack_set))

    async def seek_to_time(self, publish_time_ms: int) -> None:
        self._note("seek_to_time", publish_time_ms)

    async def unsubscribe(self, force: bool = False) -> None:
        self._note("unsubscribe", force)

    def close(self) -> None:
        self.closed = True

    def stats(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"msgRateOut": 2.5, "msgThroughputOut": 0.0, "msgRateRedeliver": 0.0}
        shown |= {"messageAckRate": 0.0, "consumerName": "c", "availablePermits": 7, "unackedMessages": 3}
        return shown | {"blockedConsumerOnUnackedMsgs": False, "address": "", "connectedSince": ""}


class FakeGate:
    """Serves every client unless there is a refusal."""

    def __init__(self) -> None:
        self.refusal: PulsarError | None = None

    def check_producer(self, request: ProducerRequest) -> None:
        if self.refusal is not None:
            raise self.refusal

    def check_consumer(self, request: SubscribeRequest) -> None:
        if self.refusal is not None:
            raise self.refusal


class FakeTopic:
    def __init__(self, name: TopicName) -> None:
        self.name = name
        self.producers: list[FakeProducer] = []
        self.consumers: list[FakeConsumer] = []
        self.failure: PulsarError | None = None
        self.gate: asyncio.Event | None = None
        self.failover_gate = FakeGate()
        self.ready = True
        self.early_active: bool | None = None
        self.broker_entry_metadata_possible = False
        self.has_consumers_without_auto_consume = False
        self.clients = self

    async def add_producer(self, request: ProducerRequest, sink: Any) -> FakeProducer:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        producer = FakeProducer(request, sink)
        producer.ready = self.ready
        self.producers.append(producer)
        return producer

    async def subscribe(self, request: SubscribeRequest, sink: Any) -> FakeConsumer:
        if self.failure is not None:
            raise self.failure
        consumer = FakeConsumer(request, sink)
        self.consumers.append(consumer)
        if self.early_active is not None:
            sink.active_changed(request.consumer_id, self.early_active)
        return consumer

    async def last_message(self, *, read_compacted: bool = False) -> LastMessage:
        return LastMessage(Position(-1, -1), -1)

    def mark_delete_position(self, subscription: str) -> Position:
        return Position(4, -1)

    def stats(self) -> dict[str, Any]:
        return {"publishers": [], "subscriptions": {"s": {"type": "Shared", "msgBacklog": 9, "consumers": []}}}


class FakeContext:
    """The whole context in one object: registry, the lifecycle, the namespaces and the schemas of a small broker."""

    replicator_prefix = "pulsar.repl"
    local_cluster = "standalone"
    access: Access | None = None
    serving = None

    def check_disk_space(self) -> None:
        if self.no_room is not None:
            raise self.no_room

    def __init__(self) -> None:
        self.registry = self.lifecycle = self.namespaces = self.schemas = self.clusters = self.topic_watches = self
        self.permits = LookupPermits(lambda: self.permits_max)
        self.permits_max = 10
        self.publish_buffer = PublishBuffer()
        self.dropped = DroppedConnections()
        self.inconsistencies = InconsistencyCounters(lambda: 0)
        self.batch_limits = BrokerConfig()
        self.lookups = Lookups(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            SoleOwner(LookupTarget("pulsar://127.0.0.1:6650")),
            permits=self.permits,
            config=lambda: self.batch_limits,
        )
        self.known: dict[str, int] = {}
        self.policies_unchanged = False
        self.topic = FakeTopic(TopicName.parse(TOPIC))
        self.opened: list[tuple[Any, ...]] = []
        self.admitted: list[SchemaInfo] = []
        self.registered: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None
        self.no_room: PulsarError | None = None
        self.gate: asyncio.Event | None = None
        self.listed = [TopicName.parse(f"persistent://public/default/{name}") for name in "ab"]
        self.watches: list[TopicWatch] = []

    async def open(self, name: TopicName, *, by: Any, create: bool) -> FakeTopic:
        self.opened.append((name, by, create))
        if self.failure is not None:
            raise self.failure
        return self.topic

    async def partitions(self, name: TopicName, *, create: bool) -> int:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if not create:
            raise TopicNotFound(f"Topic {name} not found")
        return 4

    def cached_partitions(self, name: str, *, create: bool) -> int | None:
        return self.known.get(name)

    async def versioned_policies(self, namespace: NamespaceName) -> tuple[NamespacePolicies | None, dict[str, Any]]:
        return NamespacePolicies() if namespace.tenant == "public" else None, {}

    async def versioned_boundaries(
        self, namespace: NamespaceName, policies: NamespacePolicies | None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        return boundaries_of(policies), {}

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        return self.policies_unchanged

    def standing(self, policies: NamespacePolicies | None) -> NamespaceStanding:
        return NamespaceStanding.MISSING if policies is None else NamespaceStanding.SERVED

    async def existences(self, names: Iterable[TopicName]) -> dict[TopicName, Existence]:
        return {name: await self.existence(name) for name in names}

    async def list_topics(self, namespace: NamespaceName, domain: str, *, include_system: bool) -> list[TopicName]:
        return self.listed if domain == "persistent" and namespace.tenant == "public" else []

    async def watch(self, namespace: NamespaceName, pattern: TopicPattern, on_change: Callable[[], None]) -> TopicWatch:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        watch = TopicWatch(pattern, on_change)
        self.watches.append(watch)
        await watch.begin(set(self.listed))
        return watch

    def end(self, namespace: NamespaceName, watch: TopicWatch) -> None:
        self.watches.remove(watch)

    async def existence(self, name: TopicName) -> Existence:
        return Existence(TopicKind.ABSENT if name.local_name == "missing" else TopicKind.NON_PARTITIONED)

    async def admit_producer(self, topic: TopicName, schema: SchemaInfo | None, *, by: Any) -> int | None:
        if schema is not None:
            self.admitted.append(schema)
        return None if schema is None else 5

    async def admit_consumer(self, topic: TopicName, schema: SchemaInfo, *, topic_active: bool) -> None:
        self.registered.append((topic, schema, topic_active))

    async def register(self, topic: TopicName, schema: SchemaInfo, *, by: Any) -> int:
        self.registered.append((topic, schema, by))
        return 6

    async def get(self, topic: TopicName, version: int | None = None) -> tuple[SchemaInfo, int]:
        if version == 9:
            raise SchemaNotFound("Topic not found or no-schema")
        return SchemaInfo(SchemaType.STRING), version or 0


class Client:
    """The far end of a connection: sends commands, sees what comes back."""

    def __init__(self, context: FakeContext, limits: ConnectionLimits) -> None:
        self.context = context
        self.transport = FakeTransport()
        self.connection = ClientConnection(
            context,  # type: ignore[arg-type]
            limits,
            HANDLERS,
            lambda now: ServerProtocol(
                server_version="Pulsar Server", feature_flags=pb.FeatureFlags(), now=now, gathers_runs=True
            ),
            lambda _: None,
            lambda _: None,
        )
        self.connection.connection_made(self.transport)
        self._decoder = FrameDecoder()
        self._frames_read = 0

    def send(self, *frames: bytes) -> None:
        self.connection.data_received(b"".join(frames))

    async def greet(
        self, client_version: str = "Pulsar-CPP-v4.2.0", protocol_version: int = 20, **abilities: bool
    ) -> None:
        flags = pb.FeatureFlags(**abilities)
        self.send(
            commands.connect(client_version=client_version, protocol_version=protocol_version, feature_flags=flags)
        )
        assert [answer.command.type for answer in await self.answers()] == [pb.BaseCommand.CONNECTED]

    async def answers(self) -> list[Frame]:
        """What was written since the last call, after everything that is ready to run has run."""
        for _ in range(10):
            await asyncio.sleep(0)
        written, self.transport.written = b"".join(self.transport.written), []
        return self._decoder.feed(written)

    async def ask(self, *frames: bytes) -> Any:
        """Send, and give the content of the single answer."""
        self.send(*frames)
        (answer,) = await self.answers()
        _, content = answer.command.ListFields()[1]
        return content

    async def open_producer(self, producer_id: int = 1, **options: Any) -> FakeProducer:
        await self.ask(commands.producer(1, producer_id, TOPIC, **options))
        return self.context.topic.producers[-1]

    async def subscribe(self, consumer_id: int = 1, **options: Any) -> FakeConsumer:
        await self.ask(commands.subscribe(1, consumer_id, TOPIC, "s", **options))
        return self.context.topic.consumers[-1]

    def end(self) -> None:
        """As the loop does when the socket is gone."""
        self.connection.connection_lost(None)


@pytest.fixture
def context() -> FakeContext:
    return FakeContext()


@pytest.fixture
async def dial(context: FakeContext) -> Any:
    """Make connections; they are ended after the test."""
    clients: list[Client] = []

    def make(**limits: Any) -> Client:
        clients.append(Client(context, ConnectionLimits(**limits)))
        return clients[-1]

    yield make
    for client in clients:
        client.end()


@pytest.fixture
async def client(dial: Callable[..., Client]) -> Client:
    """A client that was let in."""
    client = dial()
    await client.greet()
    return client

"""Producer of one topic or one partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from interpulse.client.checks import (
    check_choice,
    check_interval,
    check_key_reader,
    check_least,
    check_names,
    check_pairs,
    check_type,
)
from interpulse.client.closing import AsyncCloses
from interpulse.client.encryption.entries import Encryptor, ProducerCryptoFailureAction
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.client.messages import OutgoingMessage
from interpulse.client.producing.batcher import Batcher, EntryBuilder
from interpulse.client.producing.send_queue import ProducerRequest, SendQueue
from interpulse.client.producing.unconfirmed import Outgoing, Receipt
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import InvalidRequest, PulsarError
from interpulse.model.ids import ChunkMessageId, MessageId
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import pulsar_api_pb2 as pb

AccessMode = Literal["shared", "exclusive", "wait-for-exclusive", "exclusive-with-fencing"]
HashingScheme = Literal["java-string", "murmur3"]
RoutingMode = Literal["round-robin", "single"]
Compression = Literal["none", "lz4", "zlib", "zstd", "snappy"]

_ACCESS_MODES: Final[dict[str, pb.ProducerAccessMode.ValueType]] = {
    "shared": pb.Shared,
    "exclusive": pb.Exclusive,
    "wait-for-exclusive": pb.WaitForExclusive,
    "exclusive-with-fencing": pb.ExclusiveWithFencing,
}


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Settings of one producer."""

    name: str | None = None
    """Producer name. None: the broker assigns one."""

    schema: SchemaInfo | None = None
    access_mode: AccessMode = "shared"
    properties: Mapping[str, str] = field(default_factory=dict)
    initial_subscription_name: str | None = None
    initial_sequence_id: int | None = None
    """Sequence id before that of the first message. None: the highest one that the broker has."""

    send_timeout_ms: int = 30_000
    """Timeout for a receipt, 0 = no limit."""

    batching_enabled: bool = True
    batch_messages_max: int = 1000
    batch_bytes_max: int = 128 * 1024
    batch_delay_ms: int = 1
    chunking_enabled: bool = False
    """True: send messages above the broker's limit in several entries. Needs a persistent topic and no batching."""

    pending_messages_max: int = 1000
    """Maximum number of entries without receipt. Beyond it, sending waits."""

    pending_bytes_max: int = 64 * 1024 * 1024
    compression: Compression = "none"
    routing: RoutingMode = "round-robin"
    hashing: HashingScheme = "java-string"
    encryption_keys: Sequence[str] = ()
    """Names of public keys. The private key of any of them decrypts the messages."""

    crypto_key_reader: CryptoKeyReader | None = field(default=None, repr=False)
    """Source of the public keys: :class:`DefaultCryptoKeyReader` or your own."""

    crypto_failure_action: ProducerCryptoFailureAction = "fail"
    """Action for messages that cannot be encrypted. fail: raise CryptoError. send: send them unencrypted."""

    auto_update_partitions: bool = True
    """True: look for new partitions of a partitioned topic."""

    auto_update_partitions_interval_ms: int = 60_000
    """Interval between two searches for new partitions."""

    def __post_init__(self) -> None:
        check_interval("auto_update_partitions_interval_ms", self.auto_update_partitions_interval_ms)
        check_choice("access_mode", self.access_mode, AccessMode)
        check_choice("compression", self.compression, Compression)
        check_choice("routing", self.routing, RoutingMode)
        check_choice("hashing", self.hashing, HashingScheme)
        check_least(self, 1, "batch_messages_max", "batch_bytes_max", "pending_messages_max", "pending_bytes_max")
        check_least(self, 0, "send_timeout_ms", "batch_delay_ms")
        check_type("schema", self.schema, SchemaInfo, type(None))
        check_pairs("properties", self.properties)
        check_choice("crypto_failure_action", self.crypto_failure_action, ProducerCryptoFailureAction)
        check_names("encryption_keys", self.encryption_keys)
        check_key_reader(self.crypto_key_reader, "public_key")
        if bool(self.encryption_keys) != (self.crypto_key_reader is not None):
            raise ValueError(
                "encryption_keys (the names) and crypto_key_reader (the source of the keys) must be set together"
            )
        if self.chunking_enabled and self.batching_enabled:
            raise ValueError("chunking_enabled needs batching_enabled=False")


class PartitionProducer(AsyncCloses):
    """Producer of one topic or partition.

    Made by the client. Use it as an async context manager, or :meth:`close` it.
    """

    def __init__(self, session: Session, topic: TopicName, config: ProducerConfig) -> None:
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._partition = topic.partition_index
        request = ProducerRequest(
            name=config.name,
            schema=config.schema,
            access_mode=_ACCESS_MODES[config.access_mode],
            properties=config.properties,
            encrypted=bool(config.encryption_keys),
            initial_subscription_name=config.initial_subscription_name,
        )
        self._send_queue = SendQueue(session, topic, request, send_timeout_ms=config.send_timeout_ms)
        self._encryptor = None
        if (key_reader := config.crypto_key_reader) is not None:
            names = tuple(config.encryption_keys)
            self._encryptor = Encryptor(str(topic), names, key_reader, config.crypto_failure_action)
        codec = pb.CompressionType.Value(config.compression.upper())
        self._builder = EntryBuilder(codec=codec, encryptor=self._encryptor)
        self._batcher = Batcher(self._builder, messages_max=config.batch_messages_max, bytes_max=config.batch_bytes_max)
        self._waiting: list[asyncio.Future[MessageId]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sequence_id = -1

    async def open(self) -> None:
        """Register with the broker. Raise its refusal, or CryptoError before that."""
        if self._encryptor is not None:
            self._encryptor.open()
        await self._send_queue.open()
        start = self._config.initial_sequence_id
        self._sequence_id = self._send_queue.last_sequence_id if start is None else start

    @property
    def topic(self) -> str:
        return str(self._send_queue.topic)

    @property
    def name(self) -> str:
        return self._send_queue.name

    @property
    def last_sequence_id(self) -> int:
        """Sequence id of the last message sent. Before that, the highest one stored by the broker."""
        return self._sequence_id

    @property
    def schema_version(self) -> bytes:
        """Version of the schema at the broker, empty without one."""
        return self._send_queue.schema_version

    @property
    def is_connected(self) -> bool:
        return self._send_queue.is_connected

    async def send(self, message: OutgoingMessage) -> MessageId:
        """Send one message and wait until the broker has stored it."""
        future = await self.enqueue(message)
        if self._config.batching_enabled and not self._config.batch_delay_ms:
            self._flush_batch()
        return await future

    async def enqueue(self, message: OutgoingMessage) -> asyncio.Future[MessageId]:
        """Send one message, waiting only for room. Return a future with its id or the failure."""
        config = self._config
        if message.deliver_after_ms is not None:
            message = message.due_from(now_ms())
        if message.replication_clusters:
            check_names("replication_clusters", message.replication_clusters)
        await self._send_queue.room(entries_max=config.pending_messages_max, bytes_max=config.pending_bytes_max)
        sequence_id = self._sequence_id + 1 if message.sequence_id is None else message.sequence_id
        future: asyncio.Future[MessageId] = self._loop.create_future()
        if not config.batching_enabled or message.deliver_at_ms is not None:
            self._flush_batch()
            self._send_single(message, sequence_id, future)
            entry_gone = False
        else:
            entry_gone = self._send_batched(message, sequence_id, future)
        self._sequence_id = sequence_id
        if entry_gone:
            await asyncio.sleep(0)  # let receipts, timers and Ctrl-C run even if sending never waits for room
        return future

    def _send_single(self, message: OutgoingMessage, sequence_id: int, future: asyncio.Future[MessageId]) -> None:
        self._refresh_builder()
        published_ms = now_ms()
        built = self._builder.single(message, sequence_id, published_ms)
        if self._config.chunking_enabled and len(built.entries[0]) > self._send_queue.message_bytes_max:
            self._send_chunks(message, sequence_id, published_ms, future)
            return
        self._check_size(len(built.entries[0]))
        self._transmit(built, [future])

    def _send_chunks(
        self, message: OutgoingMessage, sequence_id: int, published_ms: int, future: asyncio.Future[MessageId]
    ) -> None:
        """Send a message in chunks. Its id is that of the last chunk; it fails with the first chunk that fails."""
        chunks = self._builder.chunks(message, sequence_id, published_ms, self._send_queue.message_bytes_max)
        receipts = [self._transmit(chunk, [], on_failure=future) for chunk in chunks[:-1]]
        self._transmit(chunks[-1], [future], first_chunk=receipts[0] if receipts else None)

    def _send_batched(self, message: OutgoingMessage, sequence_id: int, future: asyncio.Future[MessageId]) -> bool:
        """Add a message to the batch. Return True if an entry was sent, with this message or before it."""
        self._check_size(len(message.content or b""))
        entry_gone = not self._batcher.fits(message)
        if entry_gone:
            self._flush_batch()
        self._batcher.add(message, sequence_id)
        self._waiting.append(future)
        if self._batcher.is_full:
            self._flush_batch()
            return True
        if self._timer is None:
            self._timer = self._loop.call_later(self._config.batch_delay_ms / 1000, self._flush_batch)
        return entry_gone

    def _flush_batch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        self._refresh_builder()
        futures, self._waiting = self._waiting, []
        try:
            built = self._batcher.take(now_ms())
            self._check_size(len(built.entries[0]))
            self._transmit(built, futures, in_batch=True)
        except PulsarError as error:
            _fail_all(futures, error)

    def _refresh_builder(self) -> None:
        """Adopt the name and schema version that the broker assigned when the producer opened."""
        self._builder.producer_name = self._send_queue.name
        self._builder.schema_version = self._send_queue.schema_version

    def _check_size(self, size: int) -> None:
        limit = self._send_queue.message_bytes_max
        if size > limit:
            raise InvalidRequest(f"a message of {size} bytes is above the limit of {limit} bytes of {self.topic}")

    def _transmit(
        self,
        outgoing: Outgoing,
        futures: list[asyncio.Future[MessageId]],
        on_failure: asyncio.Future[MessageId] | None = None,
        first_chunk: asyncio.Future[Receipt] | None = None,
        in_batch: bool = False,
    ) -> asyncio.Future[Receipt]:
        receipt = self._send_queue.send(outgoing)
        if on_failure is not None:
            receipt.add_done_callback(lambda done: _pass_failure_on(done, on_failure))
        receipt.add_done_callback(lambda done: self._resolve(done, futures, in_batch=in_batch, first_chunk=first_chunk))
        return receipt

    def _resolve(
        self,
        done: asyncio.Future[Receipt],
        futures: list[asyncio.Future[MessageId]],
        *,
        in_batch: bool,
        first_chunk: asyncio.Future[Receipt] | None,
    ) -> None:
        if done.cancelled():
            return
        failure = done.exception()
        if failure is not None:
            _fail_all(futures, failure)
            return
        receipt = done.result()
        cluster = self._send_queue.cluster
        for index, future in enumerate(futures):
            if not future.done():
                message_id = MessageId(*receipt.position, self._partition, index if in_batch else -1)
                if first_chunk is not None and not receipt.is_duplicate:
                    # Its receipt arrived before this one. If it had failed, the future would be done.
                    message_id = ChunkMessageId(*message_id, first_chunk.result().position)
                future.set_result(message_id if cluster is None else message_id.of_site(cluster))

    async def flush(self) -> None:
        """Send the batch and wait for all receipts. Raise the first failure."""
        self._flush_batch()
        await self._send_queue.confirmed()

    async def close(self) -> None:
        """Send the batch, wait for all receipts, and close the producer."""
        try:
            await self.flush()
        finally:
            await self._send_queue.close()


def _pass_failure_on(done: asyncio.Future[Receipt], future: asyncio.Future[MessageId]) -> None:
    failure = None if done.cancelled() else done.exception()
    if failure is not None:
        _fail_all([future], failure)


def _fail_all(futures: list[asyncio.Future[MessageId]], failure: BaseException) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(failure)
            future.exception()  # an ignored future is not worth a warning of the event loop

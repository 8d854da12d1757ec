"""Send queue of one producer: entries are sent in order, and receipts arrive in order.

When the connection is lost or the broker moves the topic, the producer reconnects under the same name and sends every
unconfirmed entry again, in the same order. A permanent refusal fails all unconfirmed entries. Model:
docs/models/lane_settlement.tla.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.lookup.lookup import fetch_schema
from interpulse.client.producing.unconfirmed import Outgoing, Receipt, UnconfirmedEntries
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import (
    AlreadyClosed,
    ChecksumError,
    NotAllowed,
    OperationTimeout,
    ProducerBusy,
    ProducerFenced,
    PulsarError,
    QuotaExceededException,
    TopicTerminated,
    error_for_wire_code,
)
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.frames import ReceiptRun
from interpulse.wire.ids import position_from_wire
from interpulse.wire.schemas import schema_to_wire
from interpulse.wire.stamps import with_schema_version

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProducerRequest:
    """Fields of a PRODUCER command, and time limits for opening."""

    name: str | None = None
    schema: SchemaInfo | None = None
    schema_of_topic: bool = False
    """True: use the topic's current schema, if any, at every opening, like Pulsar's ``AUTO_PRODUCE_BYTES``.

    A broker that enforces schema validation refuses producers without a schema (IncompatibleSchema).
    """

    access_mode: pb.ProducerAccessMode.ValueType = pb.Shared
    properties: Mapping[str, str] = field(default_factory=dict)
    encrypted: bool = False
    """True if messages will be encrypted. Some namespaces require it."""

    initial_subscription_name: str | None = None
    busy_timeout_ms: int = 0
    """Time limit, when opening, for another holder of the name to leave."""

    reconnect_timeout_ms: int | None = None
    """Time limit for reconnecting; None = no limit."""

    waits_for_room: bool = False
    """True: while a quota or a full disk refuses the producer, keep unconfirmed entries until there is room."""

    resend_after_error: bool = True
    """True: if the broker failed to store an entry, reconnect and send it again. False: fail the producer."""


Permit = Callable[[int], Awaitable[None]]
"""Check of the sequence id of an entry right before it is sent. Raises a PulsarError to refuse it."""


class SendQueue:
    """Producer of entries on one topic or partition.

    Open it, then :meth:`send`. :meth:`close` does not wait for receipts.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        request: ProducerRequest,
        *,
        send_timeout_ms: int = 0,
        permit: Permit | None = None,
    ) -> None:
        """Create a queue. ``permit`` is called before unconfirmed entries are sent again; see :data:`Permit`."""
        self.topic = topic
        self.name = request.name or ""
        self.last_sequence_id = -1
        self.schema = request.schema
        self.schema_version = b""
        self.message_bytes_max = 0
        self._session = session
        self._request = request
        self._send_timeout = send_timeout_ms / 1000
        self._permit = permit
        self._id = session.next_id()
        self._epoch = 0
        self._topic_epoch: int | None = None
        self.cluster: str | None = None
        """Service URL of the site of the receipts; None if the client knows one cluster only."""
        self._handler = ConnectionHandler(
            session,
            topic,
            self,
            what="producer",
            timeout_ms=request.reconnect_timeout_ms,
            patient=request.access_mode == pb.WaitForExclusive,  # no time limit
        )
        self._generation = self._handler.generation
        self._unconfirmed = UnconfirmedEntries()
        self._encode = codec().send_encoder(self._id)
        self._room = asyncio.Event()
        self.failure: PulsarError | None = None
        """Reason why the producer accepts no more entries; None while it works."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def pending_count(self) -> int:
        """Number of entries without receipt."""
        return self._unconfirmed.count

    @property
    def is_connected(self) -> bool:
        return self._handler.connection is not None

    async def open(self) -> None:
        """Find the broker and register there. Raise its refusal."""
        operation_ms, busy_ms = self._session.config.operation_timeout_ms, self._request.busy_timeout_ms
        began = self._loop.time()

        def retriable(error: PulsarError) -> bool:
            """Return True to try again. ``busy_ms`` applies only to another holder of the name."""
            waited_ms = (self._loop.time() - began) * 1000
            return (
                waited_ms < busy_ms if isinstance(error, ProducerBusy) else error.retriable and waited_ms < operation_ms
            )

        await self._handler.open(timeout_ms=max(operation_ms, busy_ms), retriable=retriable)

    async def register(self, connection: Connection) -> None:
        """Open the producer and send the unconfirmed entries again; called by the connection handler."""
        if self._handler.is_reconnecting:
            self._epoch += 1
            self._unconfirmed.drop_markers()
        generation, cluster = self._handler.generation, self._handler.session.cluster
        if generation != self._generation:
            self._topic_epoch = None  # exclusive access is asked for again
        schema = await self._schema_at(connection)
        name = self._request.name
        holds = None if name is None else (self.topic, name)
        try:
            answer = (
                await connection.producers.open(self._id, self, self._producer_command(schema), holds=holds)
            ).producer_success
        except QuotaExceededException as refusal:
            self._on_no_room(refusal)
            raise
        await self._check_permit(connection)
        self.name = answer.producer_name
        self.last_sequence_id = max(self.last_sequence_id, answer.last_sequence_id)
        if generation != self._generation:
            self._renumber_schema(self.schema_version, answer.schema_version)
        self._generation, self.cluster = generation, cluster
        self.schema, self.schema_version = schema, answer.schema_version
        self.message_bytes_max = connection.message_bytes_max
        if answer.HasField("topic_epoch"):
            self._topic_epoch = answer.topic_epoch
        self._handler.on_connected(connection)
        for outgoing in self._unconfirmed:
            connection.write(*self._frames(outgoing))

    def _on_no_room(self, refusal: QuotaExceededException) -> None:
        """Fail unconfirmed entries, unless they may wait. Without `resend_after_error` none may come after them."""
        if self._request.waits_for_room:
            return
        if self._request.resend_after_error:
            self._unconfirmed.fail_all(refusal)  # as official clients do; later messages may still succeed
        else:
            self.on_failed(refusal)

    def _renumber_schema(self, before: bytes, after: bytes) -> None:
        """Give unconfirmed entries the version that their schema has at another site."""
        if before and before != after:
            self._unconfirmed.rewrite(lambda entry: with_schema_version(entry, before, after))

    async def _check_permit(self, connection: Connection) -> None:
        """Raise the refusal of the first unconfirmed entry after closing the open producer."""
        next_id = self._unconfirmed.next_id
        if self._permit is None or next_id is None:
            return
        try:
            await self._permit(next_id)
        except BaseException:
            self._session.spawn(connection.producers.close(self._id))
            raise

    async def _schema_at(self, connection: Connection) -> SchemaInfo | None:
        if not self._request.schema_of_topic:
            return self._request.schema
        latest = await fetch_schema(connection, self.topic, None)
        # Pulsar answers a deleted schema with type None. Registering that would store it as a schema.
        return None if latest is None or latest.schema.type is SchemaType.NONE else latest.schema

    def _producer_command(self, schema: SchemaInfo | None) -> pb.CommandProducer:
        request = self._request
        return pb.CommandProducer(
            topic=str(self.topic),
            producer_id=self._id,
            producer_name=self.name or None,
            user_provided_producer_name=request.name is not None,
            epoch=self._epoch,
            schema=None if schema is None else schema_to_wire(schema),
            producer_access_mode=request.access_mode,
            topic_epoch=self._topic_epoch,
            encrypted=request.encrypted,
            metadata=commands.pairs(request.properties),
            initial_subscription_name=request.initial_subscription_name,
        )

    def send(self, outgoing: Outgoing) -> asyncio.Future[Receipt]:
        """Send entries. Return a future with their receipt, or with the failure of the first entry without one."""
        if self.failure is not None:
            raise self.failure
        deadline = self._loop.time() + self._send_timeout
        future: asyncio.Future[Receipt] = self._loop.create_future()
        self._unconfirmed.add(outgoing, future, deadline)
        connection = self._handler.connection
        if connection is not None:
            connection.write(*self._frames(outgoing))
        if self._send_timeout and self._timer is None:
            self._timer = self._loop.call_at(deadline, self._on_timeout)
        return future

    def _frames(self, outgoing: Outgoing) -> Sequence[bytes]:
        entries, sequence_ids, counts, highest_sequence_id, is_chunk, is_marker = outgoing
        if highest_sequence_id is None and not (is_chunk or is_marker):
            return self._encode(sequence_ids, counts, entries)
        head = commands.send_head(
            self._id,
            sequence_ids[0],
            len(entries[0]),
            num_messages=counts[0],
            highest_sequence_id=highest_sequence_id or 0,
            is_chunk=is_chunk,
            marker=is_marker,
        )
        return head, entries[0]

    async def room(self, *, entries_max: int, bytes_max: int) -> None:
        """Wait until fewer entries and bytes are unconfirmed. Raise the failure of the producer."""
        unconfirmed = self._unconfirmed
        while self.failure is None and (unconfirmed.count >= entries_max or unconfirmed.bytes >= bytes_max):
            self._room.clear()
            await self._room.wait()
        if self.failure is not None:
            raise self.failure

    async def confirmed(self) -> None:
        """Wait until everything sent so far has its receipt. Raise the first failure."""
        waiting = self._unconfirmed.futures
        if waiting:
            await asyncio.wait(waiting)
        for future in waiting:
            future.result()

    async def close(self) -> None:
        """Close the producer at its broker. Unconfirmed entries fail with AlreadyClosed."""
        self.on_failed(AlreadyClosed(f"the producer on {self.topic} is closed"))
        connection = await self._handler.stop()
        if connection is not None:
            await connection.producers.close(self._id)

    # ---- Called by the connection

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        self._take_receipts((receipt.sequence_id,), (position_from_wire(receipt.message_id),))

    def on_receipts(self, run: ReceiptRun) -> None:
        self._take_receipts(run.sequence_ids, run.positions)

    def _take_receipts(self, sequence_ids: Sequence[int], positions: Sequence[Position]) -> None:
        """Accept receipts in sending order. Ignore one for an entry that is no longer in the queue."""
        start = 0
        while start < len(positions):
            count = self._unconfirmed.confirm(sequence_ids, positions, start)
            if not count:
                count = 1
                self._check_order(sequence_ids[start])
            start += count
        self._room.set()

    def _check_order(self, sequence_id: int) -> None:
        """Send everything unconfirmed again if a receipt belongs to a later entry than the next one."""
        next_id = self._unconfirmed.next_id
        if next_id is not None and sequence_id > next_id:
            _log.warning("receipts are out of order topic=%s sequence_id=%d", self.topic, sequence_id)
            self._start_over()

    def on_send_error(self, error: pb.CommandSendError) -> None:
        failure = error_for_wire_code(error.error, error.message)
        if isinstance(failure, TopicTerminated | ProducerFenced) or not self._request.resend_after_error:
            self.on_failed(failure)
        elif isinstance(failure, ChecksumError | NotAllowed):
            if self._unconfirmed.next_id == error.sequence_id:
                self._unconfirmed.fail_front(failure)
                self._room.set()
        else:
            _log.info("broker could not store an entry, sending again topic=%s error=%s", self.topic, failure)
            self._start_over()

    def on_redirected(self, service_url: str) -> None:
        self._handler.redirect(service_url)

    def on_disconnected(self, assigned_url: str | None) -> None:
        if self._handler.on_lost(assigned_url) and self.failure is None:
            self._handler.reconnect(assigned_url)

    # ---- Internals

    def _start_over(self) -> None:
        """Drop the connection, so that everything unconfirmed is sent again in order."""
        if self._handler.connection is not None:
            self._handler.connection.close()

    def _on_timeout(self) -> None:
        """Fail the entries that waited too long. The others stay in the queue."""
        self._timer = None
        now = self._loop.time()
        while (deadline := self._unconfirmed.next_deadline) is not None and deadline <= now:
            self._unconfirmed.fail_front(OperationTimeout(f"{self.topic}: no receipt within {self._send_timeout:g} s"))
        self._room.set()
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, self._on_timeout)

    def on_failed(self, failure: PulsarError) -> None:
        """Accept no more entries. The broker keeps the producer and its name until it is closed."""
        if self.failure is not None:
            return
        self.failure = failure
        if self._timer is not None:
            self._timer.cancel()
        self._unconfirmed.fail_all(failure)
        self._room.set()

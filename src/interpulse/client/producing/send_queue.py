"""The entries of one producer that wait for a receipt: they leave in order, and receipts come back in order.

When the connection is lost, or the broker moves the topic, the producer reconnects under the same name and sends every
unconfirmed entry again, in the same order. A refusal for good fails all unconfirmed entries.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.lookup.topic_schemas import fetch_schema
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
)
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.received_errors import error_for_wire_code
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import position_from_wire

__all__ = ["OutgoingEntry", "ProducerRequest", "Receipt", "SendQueue"]

_log = logging.getLogger(__name__)
_NO_POSITION: Final = Position(-1, -1)


class OutgoingEntry(NamedTuple):
    """An entry, and what SEND says about it. ``entry`` has its checksum, as ``frames.build_entry`` makes it."""

    entry: bytes
    sequence_id: int
    highest_sequence_id: int = 0
    num_messages: int = 1
    is_chunk: bool = False


class Receipt(NamedTuple):
    """The broker has stored an entry, or recognised it as one that it had stored before."""

    sequence_id: int
    position: Position

    @property
    def is_duplicate(self) -> bool:
        """The entry was dropped: its sequence id is not above the highest one the broker knows for this name."""
        return self.position == _NO_POSITION


@dataclass(frozen=True, slots=True)
class ProducerRequest:
    """The fields of a PRODUCER command, and how long to wait for a name."""

    name: str | None = None
    schema: SchemaInfo | None = None
    schema_of_topic: bool = False
    """Instead of ``schema``: the one that the topic has whenever the producer is opened, if any; Pulsar's
    ``AUTO_PRODUCE_BYTES``. A broker that enforces schema validation refuses producers without (IncompatibleSchema)."""

    access_mode: pb.ProducerAccessMode.ValueType = pb.Shared
    properties: Mapping[str, str] = field(default_factory=dict)
    initial_subscription_name: str | None = None
    busy_timeout_ms: int = 0
    """How long to wait, when opening, for another holder of the name to go away."""

    reconnect_timeout_ms: int | None = None
    """How long to try to reconnect; None = no limit."""

    waits_for_room: bool = False
    """While a quota or a full disk refuses the producer, keep what is unconfirmed until there is room again."""

    resend_after_error: bool = True
    """After the broker failed to store an entry: send it again on a new connection, or (False) fail the producer."""


@dataclass(slots=True)
class _Unconfirmed:
    sequence_id: int
    head: bytes
    entry: bytes
    future: asyncio.Future[Receipt]
    deadline: float


class SendQueue:
    """One producer on one topic or partition. Open it, then :meth:`send`; :meth:`close` waits for nothing."""

    def __init__(
        self, session: Session, topic: TopicName, request: ProducerRequest, *, send_timeout_ms: int = 0
    ) -> None:
        self.topic = topic
        self.name = request.name or ""
        self.last_sequence_id = -1
        self.schema = request.schema
        self.schema_version = b""
        self.message_bytes_max = 0
        self._session = session
        self._request = request
        self._send_timeout = send_timeout_ms / 1000
        self._id = session.next_id()
        self._epoch = 0
        self._topic_epoch: int | None = None
        self._handler = ConnectionHandler(
            session,
            topic,
            self,
            what="producer",
            timeout_ms=request.reconnect_timeout_ms,
            patient=request.access_mode == pb.WaitForExclusive,  # waits as long as it takes
        )
        self._unconfirmed: deque[_Unconfirmed] = deque()
        self._pending_bytes = 0
        self._room = asyncio.Event()
        self._failure: PulsarError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def pending_count(self) -> int:
        """Entries without a receipt."""
        return len(self._unconfirmed)

    @property
    def pending_bytes(self) -> int:
        return self._pending_bytes

    @property
    def is_connected(self) -> bool:
        return self._handler.connection is not None

    @property
    def failure(self) -> PulsarError | None:
        """Why the producer accepts no more entries; None while it works."""
        return self._failure

    async def open(self) -> None:
        """Find the broker and register there. Raises what the broker refuses it with."""
        deadline = self._loop.time() + self._request.busy_timeout_ms / 1000
        timeout_ms = max(self._session.config.operation_timeout_ms, self._request.busy_timeout_ms)

        def retriable(error: PulsarError) -> bool:
            return error.retriable or (isinstance(error, ProducerBusy) and self._loop.time() < deadline)

        await self._handler.open(timeout_ms=timeout_ms, retriable=retriable)

    async def register(self, connection: Connection) -> None:
        """Called by the connection handler: open the producer, and send the unconfirmed entries again."""
        if self._handler.is_reconnecting:
            self._epoch += 1
        schema = await self._schema_at(connection)
        frame = partial(self._producer_frame, schema=schema)
        try:
            answer = (await connection.producers.open(self._id, self, frame)).producer_success
        except QuotaExceededException as refusal:
            if not self._request.waits_for_room:
                self._fail_pending(refusal)  # as official clients do; what is sent from now on has its own chance
            raise
        self.name = answer.producer_name
        self.last_sequence_id = max(self.last_sequence_id, answer.last_sequence_id)
        self.schema, self.schema_version = schema, answer.schema_version
        self.message_bytes_max = connection.message_bytes_max
        if answer.HasField("topic_epoch"):
            self._topic_epoch = answer.topic_epoch
        self._handler.on_connected(connection)
        for entry in self._unconfirmed:
            connection.write(entry.head, entry.entry)

    async def _schema_at(self, connection: Connection) -> SchemaInfo | None:
        if not self._request.schema_of_topic:
            return self._request.schema
        found = await fetch_schema(connection, self.topic, None)
        # Pulsar answers a deleted schema with type None, and would store that as one.
        return None if found is None or found.schema.type is SchemaType.NONE else found.schema

    def _producer_frame(self, request_id: int, *, schema: SchemaInfo | None) -> bytes:
        request = self._request
        return commands.producer(
            request_id,
            self._id,
            str(self.topic),
            name=self.name or None,
            name_given_by_user=request.name is not None,
            epoch=self._epoch,
            schema=schema,
            access_mode=request.access_mode,
            topic_epoch=self._topic_epoch,
            properties=request.properties,
            initial_subscription_name=request.initial_subscription_name,
        )

    def send(self, outgoing: OutgoingEntry) -> asyncio.Future[Receipt]:
        """Send one entry. The future has its receipt, or its failure."""
        if self._failure is not None:
            raise self._failure
        entry, sequence_id, highest_sequence_id, num_messages, is_chunk = outgoing
        head = commands.send_head(
            self._id,
            sequence_id,
            len(entry),
            num_messages=num_messages,
            highest_sequence_id=highest_sequence_id,
            is_chunk=is_chunk,
        )
        future: asyncio.Future[Receipt] = self._loop.create_future()
        deadline = self._loop.time() + self._send_timeout
        self._unconfirmed.append(_Unconfirmed(sequence_id, head, entry, future, deadline))
        self._pending_bytes += len(entry)
        connection = self._handler.connection
        if connection is not None:
            connection.write(head, entry)
        if self._send_timeout and self._timer is None:
            self._timer = self._loop.call_at(deadline, self._on_timeout)
        return future

    async def room(self, *, entries_max: int, bytes_max: int) -> None:
        """Return when less than that is unconfirmed. Raises the failure of the producer."""
        while self._failure is None and self._is_full(entries_max, bytes_max):
            self._room.clear()
            await self._room.wait()
        if self._failure is not None:
            raise self._failure

    def _is_full(self, entries_max: int, bytes_max: int) -> bool:
        return len(self._unconfirmed) >= entries_max or self._pending_bytes >= bytes_max

    async def confirmed(self) -> None:
        """Return when everything sent so far has its receipt. Raises the first failure."""
        waiting = [entry.future for entry in self._unconfirmed]
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
        """Receipts come in the order of sending; one for an entry that is no longer in the queue is ignored."""
        front = self._unconfirmed[0] if self._unconfirmed else None
        if front is None or receipt.sequence_id < front.sequence_id:
            return
        if receipt.sequence_id > front.sequence_id:
            _log.warning("receipts are out of order topic=%s sequence_id=%d", self.topic, receipt.sequence_id)
            self._start_over()
            return
        self._settle(Receipt(front.sequence_id, position_from_wire(receipt.message_id)))

    def on_send_error(self, error: pb.CommandSendError) -> None:
        failure = error_for_wire_code(error.error, error.message)
        if isinstance(failure, TopicTerminated | ProducerFenced) or not self._request.resend_after_error:
            self.on_failed(failure)
        elif isinstance(failure, ChecksumError | NotAllowed):
            front = self._unconfirmed[0] if self._unconfirmed else None
            if front is not None and front.sequence_id == error.sequence_id:
                self._settle(failure)
        else:
            _log.info("broker could not store an entry, sending again topic=%s error=%s", self.topic, failure)
            self._start_over()

    def on_disconnected(self, assigned_url: str | None) -> None:
        if self._handler.on_lost() and self._failure is None:
            self._handler.reconnect(assigned_url)

    # ---- Inside

    def _settle(self, outcome: Receipt | PulsarError) -> None:
        """The front of the queue has its answer."""
        front = self._unconfirmed.popleft()
        self._pending_bytes -= len(front.entry)
        self._room.set()
        if front.future.done():
            return
        if isinstance(outcome, Receipt):
            front.future.set_result(outcome)
        else:
            front.future.set_exception(outcome)
            front.future.exception()  # an ignored future is not worth a warning of the event loop

    def _start_over(self) -> None:
        """Drop the connection, so that everything unconfirmed is sent again in order."""
        if self._handler.connection is not None:
            self._handler.connection.close()

    def _on_timeout(self) -> None:
        """Fail the entries that waited too long; the others stay in the queue."""
        self._timer = None
        now = self._loop.time()
        while self._unconfirmed and self._unconfirmed[0].deadline <= now:
            self._settle(OperationTimeout(f"{self.topic}: no receipt within {self._send_timeout:g} s"))
        if self._unconfirmed:
            self._timer = self._loop.call_at(self._unconfirmed[0].deadline, self._on_timeout)

    def on_failed(self, failure: PulsarError) -> None:
        """The producer accepts no more entries. Its broker knows it until it is closed, and keeps its name."""
        if self._failure is not None:
            return
        self._failure = failure
        if self._timer is not None:
            self._timer.cancel()
        self._fail_pending(failure)
        self._room.set()

    def _fail_pending(self, failure: PulsarError) -> None:
        while self._unconfirmed:
            self._settle(failure)

"""The entries of one producer that wait for a receipt: they leave in order, and receipts come back in order.

When the connection is lost, or the broker moves the topic, the producer reconnects under the same name and sends every
unconfirmed entry again, in the same order. A refusal for good fails all unconfirmed entries.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from interpulse.wire.codec import codec
from interpulse.wire.frames import ReceiptRun
from interpulse.wire.ids import position_from_wire

__all__ = ["OutgoingEntry", "OutgoingRun", "ProducerRequest", "Receipt", "RunReceipt", "SendQueue"]

_log = logging.getLogger(__name__)
_NO_POSITION: Final = Position(-1, -1)


class OutgoingEntry(NamedTuple):
    """An entry, and what SEND says about it. ``entry`` has its checksum, as ``frames.build_entry`` makes it."""

    entry: bytes
    sequence_id: int
    highest_sequence_id: int = 0
    num_messages: int = 1
    is_chunk: bool = False


class OutgoingRun(NamedTuple):
    """Entries that follow each other: the sequence id, the message count and the bytes of each.

    The SEND of an entry of several messages says its sequence id as the highest one too.
    """

    sequence_ids: Sequence[int]
    counts: Sequence[int]
    entries: Sequence[bytes]


class Receipt(NamedTuple):
    """The broker has stored an entry, or recognised it as one that it had stored before."""

    sequence_id: int
    position: Position

    @property
    def is_duplicate(self) -> bool:
        """The entry was dropped: its sequence id is not above the highest one the broker knows for this name."""
        return self.position == _NO_POSITION


class RunReceipt(NamedTuple):
    """The receipts of the entries of a run."""

    sequence_ids: Sequence[int]
    positions: Sequence[Position]

    @property
    def duplicates(self) -> list[int]:
        """The sequence ids of those that were dropped, as of :attr:`Receipt.is_duplicate`."""
        if _NO_POSITION not in self.positions:
            return []
        pairs = zip(self.sequence_ids, self.positions, strict=True)
        return [sequence_id for sequence_id, position in pairs if position == _NO_POSITION]

    @property
    def last_position(self) -> Position | None:
        """Where the last entry that was not dropped is stored; positions rise."""
        last = max(self.positions, default=_NO_POSITION)
        return None if last == _NO_POSITION else last


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
    encrypted: bool = False
    """Messages will be; some namespaces demand it."""

    initial_subscription_name: str | None = None
    busy_timeout_ms: int = 0
    """How long to wait, when opening, for another holder of the name to go away."""

    reconnect_timeout_ms: int | None = None
    """How long to try to reconnect; None = no limit."""

    waits_for_room: bool = False
    """While a quota or a full disk refuses the producer, keep what is unconfirmed until there is room again."""

    resend_after_error: bool = True
    """After the broker failed to store an entry: send it again on a new connection, or (False) fail the producer."""


class _Unconfirmed:
    """An entry that waits for its receipt. It is confirmed when that has come."""

    __slots__ = ("_entry", "_head", "_sequence_id", "deadline", "future")

    def __init__(
        self, sequence_id: int, head: bytes, entry: bytes, future: asyncio.Future[Receipt], deadline: float
    ) -> None:
        self._sequence_id = sequence_id
        self._head = head
        self._entry = entry
        self.future = future
        self.deadline = deadline

    @property
    def pending(self) -> tuple[int, int]:
        """Entries, and their bytes."""
        return 1, len(self._entry)

    def next_ids(self, count: int) -> Sequence[int]:
        """The sequence ids that the next receipts are to have."""
        return (self._sequence_id,)

    def frames(self) -> Sequence[bytes]:
        """What to send, again."""
        return self._head, self._entry

    def confirm(self, positions: Sequence[Position]) -> int:
        """Take the next receipts; the bytes of their entries."""
        if not self.future.done():
            self.future.set_result(Receipt(self._sequence_id, positions[0]))
        return len(self._entry)

    @property
    def is_confirmed(self) -> bool:
        return True


class _UnconfirmedRun:
    """Entries that wait for their receipts, of which the first ones may be there."""

    __slots__ = ("_encode", "_positions", "_run", "deadline", "future")

    def __init__(
        self,
        run: OutgoingRun,
        encode: Callable[[Sequence[int], Sequence[int], Sequence[bytes]], list[bytes]],
        future: asyncio.Future[RunReceipt],
        deadline: float,
    ) -> None:
        self._run = run
        self._encode = encode
        self._positions: list[Position] = []
        self.future = future
        self.deadline = deadline

    @property
    def pending(self) -> tuple[int, int]:
        entries = self._run.entries[len(self._positions) :]
        return len(entries), sum(map(len, entries))

    def next_ids(self, count: int) -> Sequence[int]:
        start = len(self._positions)
        return self._run.sequence_ids[start : start + count]

    def frames(self) -> Sequence[bytes]:
        start = len(self._positions)
        sequence_ids, counts, entries = self._run
        return self._encode(sequence_ids[start:], counts[start:], entries[start:])

    def confirm(self, positions: Sequence[Position]) -> int:
        start = len(self._positions)
        self._positions += positions
        if self.is_confirmed and not self.future.done():
            self.future.set_result(RunReceipt(self._run.sequence_ids, self._positions))
        return sum(map(len, self._run.entries[start : len(self._positions)]))

    @property
    def is_confirmed(self) -> bool:
        return len(self._positions) == len(self._run.entries)


Permit = Callable[[int], Awaitable[None]]
"""Asked with the sequence id of an entry right before it is sent; raises the PulsarError that keeps it back."""


class SendQueue:
    """One producer on one topic or partition. Open it, then :meth:`send`; :meth:`close` waits for nothing."""

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        request: ProducerRequest,
        *,
        send_timeout_ms: int = 0,
        permit: Permit | None = None,
    ) -> None:
        """``permit`` is asked before what is unconfirmed is sent again; see :data:`Permit`."""
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
        self._handler = ConnectionHandler(
            session,
            topic,
            self,
            what="producer",
            timeout_ms=request.reconnect_timeout_ms,
            patient=request.access_mode == pb.WaitForExclusive,  # waits as long as it takes
        )
        self._unconfirmed: deque[_Unconfirmed | _UnconfirmedRun] = deque()
        self._pending_count = 0
        self._pending_bytes = 0
        self._encode = codec().send_encoder(self._id)
        self._room = asyncio.Event()
        self._failure: PulsarError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def pending_count(self) -> int:
        """Entries without a receipt."""
        return self._pending_count

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
        operation_ms, busy_ms = self._session.config.operation_timeout_ms, self._request.busy_timeout_ms
        began = self._loop.time()

        def retriable(error: PulsarError) -> bool:
            """The wait for another holder of the name is none for a cluster that is away."""
            waited_ms = (self._loop.time() - began) * 1000
            return (
                waited_ms < busy_ms if isinstance(error, ProducerBusy) else error.retriable and waited_ms < operation_ms
            )

        await self._handler.open(timeout_ms=max(operation_ms, busy_ms), retriable=retriable)

    async def register(self, connection: Connection) -> None:
        """Called by the connection handler: open the producer, and send the unconfirmed entries again."""
        if self._handler.is_reconnecting:
            self._epoch += 1
        schema = await self._schema_at(connection)
        frame = partial(self._producer_frame, schema=schema)
        name = self._request.name
        holds = None if name is None else (self.topic, name)
        try:
            answer = (await connection.producers.open(self._id, self, frame, holds=holds)).producer_success
        except QuotaExceededException as refusal:
            if not self._request.waits_for_room:
                self._fail_pending(refusal)  # as official clients do; what is sent from now on has its own chance
            raise
        await self._check_permit(connection)
        self.name = answer.producer_name
        self.last_sequence_id = max(self.last_sequence_id, answer.last_sequence_id)
        self.schema, self.schema_version = schema, answer.schema_version
        self.message_bytes_max = connection.message_bytes_max
        if answer.HasField("topic_epoch"):
            self._topic_epoch = answer.topic_epoch
        self._handler.on_connected(connection)
        for unconfirmed in self._unconfirmed:
            connection.write(*unconfirmed.frames())

    async def _check_permit(self, connection: Connection) -> None:
        """Raises what keeps back the first of the unconfirmed entries, after closing the producer that is open."""
        front = self._front()
        if self._permit is None or front is None:
            return
        try:
            await self._permit(front)
        except BaseException:
            self._session.spawn(connection.producers.close(self._id))
            raise

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
            encrypted=request.encrypted,
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
        self._add(_Unconfirmed(sequence_id, head, entry, future, self._loop.time() + self._send_timeout))
        return future

    def send_run(self, run: OutgoingRun) -> asyncio.Future[RunReceipt]:
        """Send entries, at least one. The future has all their receipts, or the failure of the first that has none."""
        if self._failure is not None:
            raise self._failure
        future: asyncio.Future[RunReceipt] = self._loop.create_future()
        self._add(_UnconfirmedRun(run, self._encode, future, self._loop.time() + self._send_timeout))
        return future

    def _add(self, unconfirmed: _Unconfirmed | _UnconfirmedRun) -> None:
        self._unconfirmed.append(unconfirmed)
        count, size = unconfirmed.pending
        self._pending_count += count
        self._pending_bytes += size
        connection = self._handler.connection
        if connection is not None:
            connection.write(*unconfirmed.frames())
        if self._send_timeout and self._timer is None:
            self._timer = self._loop.call_at(unconfirmed.deadline, self._on_timeout)

    async def room(self, *, entries_max: int, bytes_max: int) -> None:
        """Return when less than that is unconfirmed. Raises the failure of the producer."""
        while self._failure is None and self._is_full(entries_max, bytes_max):
            self._room.clear()
            await self._room.wait()
        if self._failure is not None:
            raise self._failure

    def _is_full(self, entries_max: int, bytes_max: int) -> bool:
        return self._pending_count >= entries_max or self._pending_bytes >= bytes_max

    async def confirmed(self) -> None:
        """Return when everything sent so far has its receipt. Raises the first failure."""
        waiting: list[asyncio.Future[Receipt] | asyncio.Future[RunReceipt]]
        waiting = [unconfirmed.future for unconfirmed in self._unconfirmed]
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
        self._take_receipt(receipt.sequence_id, position_from_wire(receipt.message_id))

    def on_receipts(self, run: ReceiptRun) -> None:
        sequence_ids, positions = run.sequence_ids, run.positions
        start, end = 0, len(positions)
        while start < end:
            awaited = self._unconfirmed[0].next_ids(end - start) if self._unconfirmed else ()
            after = start + len(awaited)
            if awaited and sequence_ids[start:after] == awaited:
                self._confirm(positions[start:after])
            else:
                after = start + 1
                self._take_receipt(sequence_ids[start], positions[start])
            start = after

    def _take_receipt(self, sequence_id: int, position: Position) -> None:
        """Receipts come in the order of sending; one for an entry that is no longer in the queue is ignored."""
        front = self._front()
        if front is None or sequence_id < front:
            return
        if sequence_id > front:
            _log.warning("receipts are out of order topic=%s sequence_id=%d", self.topic, sequence_id)
            self._start_over()
            return
        self._confirm((position,))

    def _front(self) -> int | None:
        """The sequence id that the next receipt is to have."""
        return self._unconfirmed[0].next_ids(1)[0] if self._unconfirmed else None

    def on_send_error(self, error: pb.CommandSendError) -> None:
        failure = error_for_wire_code(error.error, error.message)
        if isinstance(failure, TopicTerminated | ProducerFenced) or not self._request.resend_after_error:
            self.on_failed(failure)
        elif isinstance(failure, ChecksumError | NotAllowed):
            if self._front() == error.sequence_id:
                self._fail_front(failure)
        else:
            _log.info("broker could not store an entry, sending again topic=%s error=%s", self.topic, failure)
            self._start_over()

    def on_disconnected(self, assigned_url: str | None) -> None:
        if self._handler.on_lost() and self._failure is None:
            self._handler.reconnect(assigned_url)

    # ---- Inside

    def _confirm(self, positions: Sequence[Position]) -> None:
        """The front of the queue has these receipts, and leaves with the last of them."""
        front = self._unconfirmed[0]
        self._pending_count -= len(positions)
        self._pending_bytes -= front.confirm(positions)
        if front.is_confirmed:
            self._unconfirmed.popleft()
        self._room.set()

    def _fail_front(self, failure: PulsarError) -> None:
        front = self._unconfirmed.popleft()
        count, size = front.pending
        self._pending_count -= count
        self._pending_bytes -= size
        self._room.set()
        if not front.future.done():
            front.future.set_exception(failure)
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
            self._fail_front(OperationTimeout(f"{self.topic}: no receipt within {self._send_timeout:g} s"))
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
            self._fail_front(failure)

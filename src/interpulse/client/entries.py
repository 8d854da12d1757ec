"""Topics entry by entry: what replication, backup and Spark work on.

An entry is taken from the log and given to another log as it is: nothing is decompressed, decrypted or split.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

from interpulse.client.backoff import retry
from interpulse.client.connection import Connection
from interpulse.client.sending import ProducerRequest, Receipt, SendingLane
from interpulse.client.session import Session
from interpulse.model.errors import (
    AlreadyClosed,
    ChecksumError,
    DataLoss,
    NotConnected,
    OperationTimeout,
    PulsarError,
)
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import ParsedEntry, build_entry, parse_entry, verify_checksum
from interpulse.wire.ids import message_id_from_wire, position_from_wire

__all__ = ["Entry", "EntryReader", "EntrySender", "Receipt"]

_log = logging.getLogger(__name__)
_FIRST_PERMITS: Final = 32
_PERMITS_MAX: Final = 20_000


class Entry(NamedTuple):
    """One entry of a log. ``raw`` are its bytes as the broker sent them, ``parsed`` a view into them."""

    position: Position
    raw: bytes
    parsed: ParsedEntry


class EntryReader:
    """Reads the entries of one topic or partition behind ``after`` up to ``upto`` (included; None = without end).

    It never creates the topic and leaves no subscription behind. About ``buffer_bytes`` are in memory or on their way
    at most. When the connection is lost it subscribes anew behind the last entry it has: nothing comes twice, nothing
    is left out. Entries that the log does not give out (markers, aborted transactions) may be missing at the end of a
    range: after ``silence_ms`` without entries the reader makes sure, and then ends. Raises TopicNotFound if the topic
    is gone, DataLoss if it was trimmed or truncated behind an entry that had arrived, ChecksumError for damaged
    entries, OperationTimeout after ``poll_timeout_ms`` without any progress.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        *,
        after: Position,
        upto: Position | None = None,
        buffer_bytes: int = 32 * 1024 * 1024,
        subscription_prefix: str = "interpulse",
        checksum_verified: bool = True,
        read_compacted: bool = False,
        silence_ms: int = 2_000,
        poll_timeout_ms: int = 120_000,
    ) -> None:
        self.topic = topic
        self.reached = after
        """Position of the last entry that arrived."""

        self.resubscribed_count = 0
        self._session = session
        self._upto = upto
        self._buffer_bytes = buffer_bytes
        self._subscription_prefix = subscription_prefix
        self._checksum_verified = checksum_verified
        self._read_compacted = read_compacted
        self._silence = silence_ms / 1000
        self._poll_timeout = poll_timeout_ms / 1000
        self._buffer: deque[Entry] = deque()
        self._buffered_bytes = 0
        self._bytes_per_message = 0.0
        self._permits = 0
        self._complete = upto is not None and after >= upto
        self._failure: PulsarError | None = None
        self._changed = asyncio.Event()
        self._entry_count = 0
        self._echo_due = False  # a fresh subscription first repeats the last entry that arrived
        self._silent_count = 0  # fresh subscriptions since then that brought nothing new
        self._connection: Connection | None = None
        self._id = -1
        self._returning: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._backoff = session.backoff()
        self._attached_at = 0.0

    # ---- Reading

    async def open(self) -> None:
        """Begin reading. Raises what the broker refuses."""
        if not self._complete:
            timeout_ms = self._session.config.operation_timeout_ms
            await retry(self._attach, timeout_ms=timeout_ms, backoff=self._session.backoff())

    async def read_batch(self) -> list[Entry]:
        """All entries that are there, waiting for at least one; an empty list is the end of the range."""
        deadline = math.inf if self._upto is None else self._loop.time() + self._poll_timeout
        while not self._buffer:
            if self._failure is not None:
                raise self._failure
            if self._complete:
                return []
            if await self._changes_within(self._silence):
                continue
            if await self._is_exhausted():
                self._complete = True
            elif self._loop.time() >= deadline:
                raise OperationTimeout(f"{self.topic}: no entry behind {self.reached} for {self._poll_timeout:g} s")
        batch = list(self._buffer)
        self._buffer.clear()
        self._buffered_bytes = 0
        self._grant()
        return batch

    async def __aiter__(self) -> AsyncIterator[Entry]:
        while batch := await self.read_batch():
            for entry in batch:
                yield entry

    async def _changes_within(self, seconds: float) -> bool:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _is_exhausted(self) -> bool:
        """After silence: whether nothing is left in the range. Only fresh subscriptions can show that.

        One that repeats the last entry and nothing behind it is proof enough; one that does not even do that says that
        the broker is slow, or that the entries are gone. Where no entry has arrived yet, two silent ones are believed.
        """
        if self._connection is None or self._upto is None:
            return False
        try:
            last = (await self.last_message_id()).position
        except PulsarError as error:
            if not error.retriable:
                raise
            return False
        if self._buffer or self._connection is None or last == self.reached:
            return False
        silent_needed = 1 if self._entry_count else 2
        if self._silent_count >= silent_needed and not self._echo_due and last >= self._upto:
            return True
        if self._silent_count >= 2 and self._echo_due and last < self.reached:
            raise DataLoss(f"{self.topic}: entries behind {self.reached} are gone, the topic now ends at {last}")
        self._silent_count += 1
        self._restart()
        return False

    async def last_message_id(self) -> MessageId:
        """The last message of the topic now; entry -1 if it is empty."""
        connection = self._connection
        if connection is None:
            raise NotConnected(f"the reader of {self.topic} has no connection at the moment")
        consumer_id = self._id
        answer = await connection.request(lambda request_id: commands.get_last_message_id(request_id, consumer_id))
        return message_id_from_wire(answer.getLastMessageIdResponse.last_message_id)

    async def close(self) -> None:
        """Stop reading; nothing of the reader stays at the broker."""
        connection, self._connection = self._connection, None
        self._failure = self._failure or AlreadyClosed(f"the reader of {self.topic} is closed")
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        if connection is not None and connection.is_open:
            await self._close_consumer(connection)

    async def _close_consumer(self, connection: Connection) -> None:
        consumer_id = self._id
        connection.remove_consumer(consumer_id)
        try:
            await connection.request(lambda request_id: commands.close_consumer(consumer_id, request_id))
        except PulsarError as error:
            _log.debug("reader was not closed properly topic=%s error=%s", self.topic, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- Subscribing, again if need be

    async def _attach(self, assigned_url: str | None = None) -> None:
        """Each attempt is a new consumer with a new name: what an old one may still be sent cannot reach us."""
        connection = await self._session.connect(self.topic, assigned_url=assigned_url)
        self._id = self._session.next_id()
        connection.add_consumer(self._id, self)
        try:
            await connection.request(self._subscribe_frame)
        except BaseException:
            connection.remove_consumer(self._id)
            raise
        if not connection.hosts_consumer(self._id):
            raise NotConnected("the reader was closed right after it was opened")
        self._connection = connection
        self._attached_at = self._loop.time()
        self._permits = 0
        self._echo_due = self._entry_count > 0 and not self._read_compacted  # compaction may take that entry away
        self._grant()

    def _subscribe_frame(self, request_id: int) -> bytes:
        return commands.subscribe(
            request_id,
            self._id,
            str(self.topic),
            f"{self._subscription_prefix}-{secrets.token_hex(5)}",
            durable=False,
            start=self.reached,
            force_topic_creation=False,
            read_compacted=self._read_compacted,
        )

    def _restart(self) -> None:
        """Leave this subscription for a fresh one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._session.spawn(self._close_consumer(connection))
        self._come_back()

    def _come_back(self, assigned_url: str | None = None) -> None:
        if self._failure is None and not self._complete and self._returning is None and not self._session.is_closed:
            self._returning = self._session.spawn(self._return(assigned_url))

    async def _return(self, assigned_url: str | None) -> None:
        try:
            await self._session.return_to_broker(
                self._reattach,
                what=f"reader of {self.topic}",
                backoff=self._backoff,
                held_s=self._loop.time() - self._attached_at,
                assigned_url=assigned_url,
            )
        except PulsarError as failure:
            self._fail(failure)
        finally:
            self._returning = None

    async def _reattach(self, assigned_url: str | None) -> None:
        self.resubscribed_count += 1
        await self._attach(assigned_url)

    def _fail(self, failure: PulsarError) -> None:
        self._failure = failure
        self._changed.set()

    # ---- Called by the connection

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        if self._failure is not None:
            return
        position = position_from_wire(message.message_id)
        if self._complete:
            return
        if self._echo_due and position > self.reached:
            self._fail(DataLoss(f"{self.topic}: entries behind {self.reached} are gone, the next one is {position}"))
            return
        if self._upto is not None and position > self._upto:
            self._finish()
            return
        try:
            if position <= self.reached:
                self._echo_due = False
                self._pass_over(entry)
            else:
                self._accept(position, entry)
        except (ChecksumError, RemoteProtocolError) as error:
            self._fail(ChecksumError(f"{self.topic}: the entry at {position} is damaged: {error}"))
            return
        if position == self._upto:
            self._finish()

    def _pass_over(self, entry: memoryview) -> None:
        """A reader starts at an entry, not behind it; that entry costs as many permits as it has messages."""
        self._permits -= max(parse_entry(bytes(entry)).message_count, 1)
        self._grant()

    def _accept(self, position: Position, entry: memoryview) -> None:
        if self._checksum_verified and not verify_checksum(entry):
            raise ChecksumError("its checksum does not fit")
        raw = bytes(entry)
        parsed = parse_entry(raw)
        self._buffer.append(Entry(position, raw, parsed))
        self.reached = position
        self._entry_count += 1
        self._silent_count = 0
        count = max(parsed.message_count, 1)
        size = len(raw)
        self._buffered_bytes += size
        self._permits -= count
        average = self._bytes_per_message
        self._bytes_per_message = average * 0.9 + size / count * 0.1 if average else size / count
        self._changed.set()
        self._grant()

    def _finish(self) -> None:
        self._complete = True
        self._changed.set()

    def on_detached(self, assigned_url: str | None) -> None:
        if self._connection is None:
            return  # still opening: the request under way fails, and whoever opens tries again
        self._connection = None
        self._come_back(assigned_url)

    def on_active_change(self, active: bool) -> None:
        """Readers are alone on their subscription."""

    def on_end_of_topic(self) -> None:
        """The end of the range decides, not that of the topic."""

    def _grant(self) -> None:
        """Let the broker send as many messages as the free part of the buffer is expected to hold."""
        if self._connection is None or self._complete:
            return
        room = self._buffer_bytes - self._buffered_bytes
        if room <= 0:
            return
        wanted = _FIRST_PERMITS
        if self._bytes_per_message:
            wanted = min(max(int(room / self._bytes_per_message), 1), _PERMITS_MAX)
        if self._permits <= wanted // 2:
            self._connection.write(commands.flow(self._id, wanted - self._permits))
            self._permits = wanted


class EntrySender:
    """Stores ready-made entries under a producer name of the caller's and with the caller's sequence ids.

    Sends are pipelined: at most ``window_entries`` and ``window_bytes`` are without receipt. A lost connection is
    opened again under the same name and everything unconfirmed is sent again in order; the receipts of what had been
    stored before then say :attr:`Receipt.is_duplicate` (if the topic de-duplicates). Any entry that the broker fails to
    store ends the sender, unless the topic is merely being unloaded: nothing behind it is sent again, the caller
    decides. While another holder of the name lives, opening and coming back wait up to ``takeover_timeout_ms`` and then
    fail with ProducerBusy.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        name: str,
        *,
        schema: SchemaInfo | None = None,
        window_entries: int = 10_000,
        window_bytes: int = 64 * 1024 * 1024,
        takeover_timeout_ms: int = 60_000,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        request = ProducerRequest(
            name=name,
            schema=schema,
            properties=properties or {},
            busy_timeout_ms=takeover_timeout_ms,
            return_timeout_ms=takeover_timeout_ms,
            resend_after_error=False,
        )
        self._lane = SendingLane(session, topic, request)
        self._window_entries = window_entries
        self._window_bytes = window_bytes

    async def open(self) -> None:
        """Register the producer. Raises what the broker refuses it with."""
        await self._lane.open()

    @property
    def topic(self) -> TopicName:
        return self._lane.topic

    @property
    def name(self) -> str:
        return self._lane.name

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker knew for this name when it was opened last; -1 for none."""
        return self._lane.last_sequence_id

    @property
    def schema_version(self) -> bytes:
        """The version that the broker gave the schema, empty without one."""
        return self._lane.schema_version

    @property
    def message_bytes_max(self) -> int:
        """The largest message that the broker takes."""
        return self._lane.message_bytes_max

    @property
    def pending_count(self) -> int:
        """Entries without receipt."""
        return self._lane.pending_count

    @property
    def failure(self) -> PulsarError | None:
        """Why the sender takes nothing any more; None while it works."""
        return self._lane.failure

    async def send(
        self,
        metadata: bytes,
        payload: bytes | memoryview,
        *,
        sequence_id: int,
        highest_sequence_id: int = 0,
        num_messages: int = 1,
        is_chunk: bool = False,
    ) -> asyncio.Future[Receipt]:
        """Put one entry on its way, waiting only for room in the window. The future has its receipt.

        ``metadata`` is a serialized MessageMetadata; its sequence ids must be those given here, because brokers rebuild
        their de-duplication state from it. Raises the failure that ended the sender.
        """
        return await self.send_entry(
            build_entry(metadata, payload),
            sequence_id=sequence_id,
            highest_sequence_id=highest_sequence_id,
            num_messages=num_messages,
            is_chunk=is_chunk,
        )

    async def send_entry(
        self,
        entry: bytes,
        *,
        sequence_id: int,
        highest_sequence_id: int = 0,
        num_messages: int = 1,
        is_chunk: bool = False,
    ) -> asyncio.Future[Receipt]:
        """As :meth:`send`, for an entry with its checksum as ``frames.build_entry`` makes it."""
        await self._lane.room(entries_max=self._window_entries, bytes_max=self._window_bytes)
        return self._lane.send(
            entry,
            sequence_id=sequence_id,
            highest_sequence_id=highest_sequence_id,
            num_messages=num_messages,
            is_chunk=is_chunk,
        )

    async def drain(self) -> None:
        """Return when everything sent so far has its receipt. Raises the first failure."""
        await self._lane.confirmed()
        if self._lane.failure is not None:
            raise self._lane.failure

    async def close(self) -> None:
        """Give the name back. What has no receipt yet fails with AlreadyClosed."""
        await self._lane.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

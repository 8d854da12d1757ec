"""Reader of whole entries, for replication, backup and Spark.

Entries are copied unchanged: they are not decompressed, decrypted or split.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Sequence
from operator import lt
from typing import Final, NamedTuple

from interpulse.client.closing import AsyncCloses
from interpulse.client.connection_handler import ConnectionHandler
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import (
    AlreadyClosed,
    ChecksumError,
    DataLoss,
    MessageOfAnotherCluster,
    NotConnected,
    OperationTimeout,
    PulsarError,
)
from interpulse.model.ids import LATEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.cursor_promise import CURSOR_PROPERTY, ENTRY_READER_PROPERTY
from interpulse.wire.entries import ParsedEntry, parse_entry, verify_checksum
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.frames import MessageRun
from interpulse.wire.ids import message_id_from_wire, message_id_to_wire, position_from_wire

_log = logging.getLogger(__name__)
_FIRST_PERMITS: Final = 32
_PERMITS_MAX: Final = 20_000


class Entry(NamedTuple):
    """Entry of a log. ``raw`` holds its bytes as the broker sent them, ``parsed`` is a view into them."""

    position: Position
    raw: bytes
    parsed: ParsedEntry


class EntryRun(NamedTuple):
    """Consecutive entries of a log, at least one, as the broker sent them."""

    positions: Sequence[Position]
    raws: Sequence[bytes]
    parsed: Sequence[ParsedEntry] = ()
    """Parsed entries, if they were parsed on arrival."""

    def entry(self, index: int) -> Entry:
        raw = self.raws[index]
        return Entry(self.positions[index], raw, self.parsed[index] if self.parsed else parse_entry(raw))


def entries_of(runs: Iterable[EntryRun]) -> list[Entry]:
    """Return all entries of these runs one by one."""
    return [run.entry(index) for run in runs for index in range(len(run.positions))]


class EntryReader(AsyncCloses):
    """Reader of the entries of one topic or partition, after ``after`` up to and including ``upto`` (None = no end).

    It never creates the topic and leaves no subscription behind. At most about ``buffer_bytes`` are buffered or in
    flight. After a lost connection it resumes after the last entry it has, without duplicates or gaps.

    Entries that the broker does not deliver (markers, aborted transactions) may be missing at the end of a range;
    Interpulse delivers markers to readers with a ``replication_cursor``. With ``read_compacted``, entries removed by
    compaction may be missing as well. After ``silence_ms`` without entries the reader verifies that it has reached the
    end.

    Raise TopicNotFound if the topic was deleted. Raise DataLoss if entries not read yet were trimmed or truncated.
    Raise ChecksumError for damaged entries, and OperationTimeout after ``poll_timeout_ms`` without progress.
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
        reconnect_timeout_ms: int | None = 0,
        replication_cursor: str | None = None,
    ) -> None:
        """Create a reader; :meth:`open` starts it.

        ``reconnect_timeout_ms`` limits reconnecting (None = no limit, 0 = ``poll_timeout_ms``). ``replication_cursor``
        marks a reader that copies to another cluster, from behind this cursor of the topic.
        """
        self.topic = topic
        self.reached = after
        """Position of the last entry that arrived."""

        self.start_is_there = False
        """True if the broker has delivered the entry at ``after``, which proves that nothing after it is trimmed."""

        self.resubscribed_count = 0
        self._session = session
        self._after = after
        self._upto = upto
        self._buffer_bytes = buffer_bytes
        self._subscription_prefix = subscription_prefix
        self._checksum_verified = checksum_verified
        self._read_compacted = read_compacted
        cursor = {} if replication_cursor is None else {CURSOR_PROPERTY: replication_cursor}
        self._properties = {ENTRY_READER_PROPERTY: "true"} | cursor
        self._silence = silence_ms / 1000
        self._poll_timeout = poll_timeout_ms / 1000
        self._buffer: list[EntryRun] = []
        self._buffered_bytes = 0
        self._bytes_per_message = 0.0
        self._permits = 0
        self._complete = upto is not None and after >= upto
        self._failure: PulsarError | None = None
        self._changed = asyncio.Event()
        self._entry_count = 0
        self._echo_due = False  # a fresh subscription first repeats the last entry that arrived
        self._silent_count = 0  # fresh subscriptions since then without a new entry
        self._waits_for_connection = reconnect_timeout_ms != 0
        self._handler = ConnectionHandler(session, topic, self, what="reader", timeout_ms=reconnect_timeout_ms or None)
        self._id = -1
        self._generation = session.generation
        self._loop = asyncio.get_running_loop()

    # ---- Reading

    async def open(self) -> None:
        """Start reading. Raise the broker's refusal."""
        if not self._complete:
            await self._handler.open(timeout_ms=self._session.config.operation_timeout_ms)

    async def read_batch(self) -> list[Entry]:
        """Return all available entries, waiting for at least one. An empty list is the end of the range."""
        return entries_of(await self.read_runs())

    async def read_runs(self) -> list[EntryRun]:
        """Return all available entries as the runs in which they arrived; see :meth:`read_batch`."""
        deadline = math.inf if self._upto is None else self._loop.time() + self._poll_timeout
        while not self._buffer:
            if self._failure is not None:
                raise self._failure
            if self._complete:
                return []
            if await self._changes_within(self._silence):
                continue
            if self._waits_for_connection and self._handler.connection is None:
                deadline = self._loop.time() + self._poll_timeout
                continue
            if await self._is_exhausted():
                self._complete = True
            elif self._loop.time() >= deadline:
                raise OperationTimeout(f"{self.topic}: no entry after {self.reached} for {self._poll_timeout:g} s")
        batch, self._buffer, self._buffered_bytes = self._buffer, [], 0
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
        """Return True if the range is read completely. Call it after silence; fresh subscriptions provide the proof.

        A subscription that repeats the last entry and delivers nothing after it is sufficient. One that does not even
        repeat that entry means that the broker is slow or that the entries are gone. Before the first entry, two silent
        ones are required.
        """
        if self._handler.connection is None or self._upto is None:
            return False
        try:
            last = (await self.last_message_id()).position
        except PulsarError as error:
            if not error.retriable:
                raise
            return False
        if self._buffer or self._handler.connection is None:
            return False
        # Compaction may have removed the last entry of the range since it was planned.
        all_read = self._read_compacted and last <= self.reached
        if last == self.reached and not all_read:
            return False
        silent_needed = 1 if self._entry_count or all_read else 2
        if self._silent_count >= silent_needed and not self._echo_due and (all_read or last >= self._upto):
            return True
        unseen = not all_read and (self._echo_due or not (self._entry_count or self.start_is_there))
        if self._silent_count >= 2 and unseen and last < (self.reached if self._entry_count else self._upto):
            raise DataLoss(f"{self.topic}: entries after {self.reached} are missing, the topic now ends at {last}")
        self._silent_count += 1
        self._restart()
        return False

    def end(self) -> None:
        """End the range with the last entry that has arrived."""
        self._finish()

    async def last_message_id(self) -> MessageId:
        """Return the current last message id of the topic; entry -1 if it is empty."""
        return message_id_from_wire((await self._ends()).last_message_id)

    async def promised_position(self) -> Position:
        """Return the mark-delete position of the replication cursor; see ``wire.cursor_promise``."""
        return position_from_wire((await self._ends()).consumer_mark_delete_position)

    async def _ends(self) -> pb.CommandGetLastMessageIdResponse:
        connection = self._handler.connection
        if connection is None:
            if self._failure is not None:
                raise self._failure
            self._handler.reconnect()  # a reader whose entries are all there does not do so by itself
            raise NotConnected(f"the reader of {self.topic} has no connection at the moment")
        answer = await connection.request(pb.CommandGetLastMessageId(consumer_id=self._id))
        return answer.getLastMessageIdResponse

    async def close(self) -> None:
        """Stop reading. The broker keeps nothing of the reader."""
        self._failure = self._failure or AlreadyClosed(f"the reader of {self.topic} is closed")
        connection = await self._handler.stop()
        if connection is not None:
            await connection.consumers.close(self._id)

    # ---- Subscribing

    async def register(self, connection: Connection) -> None:
        """Subscribe; called by the connection handler.

        Each attempt is a new consumer with a new name, so messages for an old one do not arrive here.
        """
        if self._session.generation != self._generation:
            raise MessageOfAnotherCluster(
                f"the reader of {self.topic} has reached {self.reached} on a site that the client has left for "
                f"{self._session.cluster}: open another reader"
            )
        if self._handler.is_reconnecting:
            self.resubscribed_count += 1
        self._id = self._session.next_id()
        await connection.consumers.open(self._id, self, self._subscribe_command())
        self._handler.on_connected(connection)
        self._permits = 0
        self._echo_due = self._entry_count > 0 and not self._read_compacted  # compaction may remove that entry
        self._grant()

    def _subscribe_command(self) -> pb.CommandSubscribe:
        return pb.CommandSubscribe(
            topic=str(self.topic),
            subscription=f"{self._subscription_prefix}-{secrets.token_hex(5)}",
            subType=pb.CommandSubscribe.Exclusive,
            consumer_id=self._id,
            durable=False,
            start_message_id=message_id_to_wire(self.reached),
            initialPosition=pb.CommandSubscribe.Latest,
            force_topic_creation=False,
            read_compacted=self._read_compacted or None,
            metadata=commands.pairs(self._properties),
        )

    def _restart(self) -> None:
        connection = self._handler.connection
        if connection is not None:
            self._session.spawn(connection.consumers.close(self._id))
        self._handler.on_lost()
        self._reconnect()

    def _reconnect(self, assigned_url: str | None = None) -> None:
        if self._failure is None and not self._complete:
            self._handler.reconnect(assigned_url)

    def on_failed(self, failure: PulsarError) -> None:
        """End reading with this failure."""
        self._failure = failure
        self._changed.set()

    # ---- Called by the connection

    def on_messages(self, run: MessageRun) -> None:
        if self._failure is not None or self._complete:
            return
        start, positions = 0, run.positions
        while start < len(positions) and (self._echo_due or positions[start] <= self.reached):
            self._take(positions[start], memoryview(run.entries[start]))
            start += 1
        if not all(map(lt, positions[start:], positions[start + 1 :])):
            for position, entry in zip(positions[start:], run.entries[start:], strict=True):
                self._take(position, memoryview(entry))
        elif self._failure is None and not self._complete:
            self._accept_all(run, start)

    def _accept_all(self, run: MessageRun, start: int) -> None:
        """Accept entries with rising positions after the last one that arrived."""
        upto = self._upto
        end = len(run.positions) if upto is None else bisect_right(run.positions, upto, start)
        if end > start:
            positions, raws = run.positions[start:end], run.entries[start:end]
            self._buffer.append(EntryRun(positions, raws))
            self._note_arrival(positions[-1], len(raws), sum(run.counts[start:end]), sum(map(len, raws)))
        if end < len(run.positions) or self.reached == upto:
            self._finish()

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        self._take(position_from_wire(message.message_id), entry)

    def _take(self, position: Position, entry: memoryview) -> None:
        if self._failure is not None or self._complete:
            return
        if self._echo_due and position > self.reached:
            self.on_failed(
                DataLoss(f"{self.topic}: entries after {self.reached} are missing, the next one is {position}")
            )
            return
        if self._upto is not None and position > self._upto:
            self._finish()
            return
        try:
            if position <= self.reached:
                self._echo_due = False
                self.start_is_there = self.start_is_there or position == self._after
                self._permits -= parse_entry(bytes(entry)).message_count  # the entry at which the reader starts
                self._grant()
            else:
                self._accept(position, entry)
        except (ChecksumError, RemoteProtocolError) as error:
            self.on_failed(ChecksumError(f"{self.topic}: the entry at {position} is damaged: {error}"))
            return
        if position == self._upto:
            self._finish()

    def _accept(self, position: Position, entry: memoryview) -> None:
        if self._checksum_verified and not verify_checksum(entry):
            raise ChecksumError("its checksum does not match")
        whole = entry.obj  # a frame from several reads was joined; it holds this entry only
        raw = whole if isinstance(whole, bytes) and len(whole) == len(entry) else bytes(entry)
        parsed = parse_entry(raw)
        self._buffer.append(EntryRun([position], [raw], [parsed]))
        self._note_arrival(position, 1, parsed.message_count, len(raw))

    def _note_arrival(self, reached: Position, entries: int, messages: int, size: int) -> None:
        self.reached = reached
        self._entry_count += entries
        self._silent_count = 0
        self._buffered_bytes += size
        self._permits -= messages
        average = self._bytes_per_message
        self._bytes_per_message = average * 0.9 + size / messages * 0.1 if average else size / messages
        self._changed.set()
        self._grant()

    def _finish(self) -> None:
        self._complete = True
        self._changed.set()

    def on_disconnected(self, assigned_url: str | None) -> None:
        if self._handler.on_lost():
            self._reconnect(assigned_url)

    def on_active_change(self, active: bool) -> None:
        """Do nothing: readers are alone on their subscription."""

    def on_end_of_topic(self) -> None:
        """Do nothing: the end of the range decides."""

    def on_leaving(self) -> None:
        """Do nothing: a reader acknowledges nothing."""

    def on_redirected(self, service_url: str) -> None:
        """Do nothing: the positions of the range are those of this cluster."""

    def _grant(self) -> None:
        """Grant the broker as many messages as the free part of the buffer is expected to hold."""
        connection = self._handler.connection
        if connection is None or self._complete:
            return
        room = self._buffer_bytes - self._buffered_bytes
        if room <= 0:
            return
        wanted = _FIRST_PERMITS
        if self._bytes_per_message:
            wanted = min(max(int(room / self._bytes_per_message), 1), _PERMITS_MAX)
        if self._permits <= wanted // 2:
            connection.write(commands.flow(self._id, wanted - self._permits))
            self._permits = wanted


async def ask_last_position(session: Session, topic: TopicName) -> Position:
    """Return the position of the last entry of a topic or partition; that of an empty log has a negative entry.

    Raise TopicNotFound, and other failures of the request.
    """
    async with EntryReader(session, topic, after=LATEST, subscription_prefix="interpulse-check") as reader:
        await reader.open()
        return (await reader.last_message_id()).position

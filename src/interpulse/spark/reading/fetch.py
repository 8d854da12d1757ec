"""Executor side of reads: fetch exactly the ranges of one task and yield Arrow batches.

Several ranges are read concurrently in the portal's event loop; rows of one topic-partition stay in order. The
generator that Spark drives only takes entries that have arrived and builds Arrow batches.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from interpulse.client.consuming.entry_reader import Entry, EntryReader, EntryRun, entries_of
from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, DataLoss, NotConnected, OperationTimeout, PulsarError, TopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.spark.offsets import CutPosition, TopicRange
from interpulse.spark.options.option_values import key_paths
from interpulse.spark.processes.process_client import (
    Patience,
    in_portal,
    patiently,
    process_portal,
    relaxed_collector,
    session_for,
)
from interpulse.spark.reading.read_columns import ReadColumns
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.reading.source_searches import ledger_is_there
from interpulse.spark.rows.columns import Message

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_CHUNKS_WAITING: Final = 8


class _Chunk(NamedTuple):
    """Entries of a range, or the reason why it could not be read further, so that the sink holds it."""

    item: TopicRange
    arrived: Sequence[EntryRun]
    refusal: str | None = None


_Arrivals = queue.Queue[_Chunk | None]
"""Chunks for the thread of Spark; None when the reading is over."""


def fetch_batches(options: ReadOptions, columns: ReadColumns, ranges: Sequence[TopicRange]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the ranges. Raise DataLoss, ChecksumError, or a refusal of the brokers."""
    if not ranges:
        return
    from interpulse.spark.rows.row_builder import Decryption  # tasks that copy build no rows

    keys = options.encryption_private_keys
    key_reader = DefaultCryptoKeyReader(private_keys=key_paths(keys)) if keys else None
    decryption = Decryption(key_reader, options.crypto_failure_action)
    builder = columns.builder(partial(_schema_of_version, options), admission(ranges), decryption)
    arrived: _Arrivals = queue.Queue()
    taken = asyncio.Semaphore(_CHUNKS_WAITING)
    portal = process_portal()
    reading = portal.submit(lambda: _read_all(options, ranges, arrived, taken))
    with relaxed_collector():
        try:
            while True:
                chunks = [arrived.get()]
                while not arrived.empty():  # the other thread wakes up once for all of them
                    chunks.append(arrived.get_nowait())
                for chunk in chunks:
                    if chunk is None:
                        reading.result()
                        if builder.rows:
                            yield builder.take()
                        return
                    if chunk.refusal is not None:
                        builder.add_refusal(chunk.item.topic, chunk.item.after, chunk.refusal)
                    for entries in _pieces(entries_of(chunk.arrived), options.arrow_batch_bytes // 4):
                        builder.add(chunk.item.topic, entries)
                        if builder.bytes >= options.arrow_batch_bytes or builder.rows >= options.arrow_batch_rows:
                            yield builder.take()
                portal.post(partial(_release, taken, len(chunks)))
        finally:
            reading.cancel()


def _release(taken: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        taken.release()


def _pieces(entries: Sequence[Entry], size: int) -> Iterator[Sequence[Entry]]:
    """Split entries into pieces of about ``size`` bytes, since a decompressed piece is in memory as a whole."""
    begin = taken = 0
    for end, entry in enumerate(entries, 1):
        taken += len(entry.raw)
        if taken >= size or end == len(entries):
            yield entries[begin:end]
            begin, taken = end, 0


@in_portal
async def _schema_of_version(options: ReadOptions, topic: str, version: bytes) -> SchemaInfo | None:
    session = await reading_session(options)
    stored = await patiently(session, lambda: session.lookup.schema(TopicName.parse(topic).base, version))
    return None if stored is None else stored.schema


async def reading_session(options: ReadOptions) -> Session:
    """Return this process's session with the source. Call it in the portal's loop."""
    patience = Patience(options.outage_timeout_ms)
    return await session_for(options.service_url, options.operation_timeout_ms, options.access, patience)


async def _read_all(
    options: ReadOptions, ranges: Sequence[TopicRange], arrived: _Arrivals, taken: asyncio.Semaphore
) -> None:
    async def take(item: TopicRange, entries: Sequence[EntryRun]) -> None:
        await taken.acquire()
        arrived.put(_Chunk(item, entries))

    async def refuse(item: TopicRange, reason: str) -> None:
        await taken.acquire()
        arrived.put(_Chunk(item, (), reason))

    try:
        await read_ranges(options, ranges, take, refuse)
    finally:
        arrived.put(None)


async def read_ranges(
    options: ReadOptions,
    ranges: Sequence[TopicRange],
    take: Callable[[TopicRange, Sequence[EntryRun]], Awaitable[None]],
    refuse: Callable[[TopicRange, str], Awaitable[None]],
    begin: Callable[[TopicRange], None] = lambda item: None,
    admit: Callable[[TopicRange, EntryReader], Awaitable[TopicRange]] | None = None,
    follow: Callable[[TopicRange], Awaitable[None]] | None = None,
) -> None:
    """Read ranges, a bounded number at a time, and pass their entries to ``take``, in order for each range.

    Call it in the portal's loop. ``begin`` is called with each range when its turn comes. ``admit`` gets a range with
    its open reader and returns the end up to which to read it, which may be its start. ``follow`` is called with each
    range that was read, while others are read.

    If a list of topics selects what is read, a range that cannot be read goes to ``refuse`` with the reason, and the
    others are read anyway. Raises the first other error that stopped the reading, or what ``take`` raised.
    """
    session = await reading_session(options)
    slots = asyncio.Semaphore(options.range_concurrency)
    buffer_bytes = max(options.fetch_buffer_bytes // min(len(ranges), options.range_concurrency), 64 * 1024)

    async def read_one(item: TopicRange) -> None:
        async with slots, aclosing(_read_range(session, options, item, buffer_bytes, admit)) as chunks:
            begin(item)
            while True:
                try:
                    entries = await anext(chunks, None)
                except PulsarError as refusal:
                    if options.topics_file is None or isinstance(refusal, NotConnected | OperationTimeout):
                        raise
                    await refuse(item, str(refusal))
                    return
                if entries is None:
                    break
                await take(item, entries)
        if follow is not None:
            await follow(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read_one(item)) for item in ranges]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if any(task.cancelled() for task in tasks):  # task groups take that for success
        raise AlreadyClosed("the client was closed while ranges were read")


async def _read_range(
    session: Session,
    options: ReadOptions,
    item: TopicRange,
    buffer_bytes: int,
    admit: Callable[[TopicRange, EntryReader], Awaitable[TopicRange]] | None = None,
) -> AsyncGenerator[Sequence[EntryRun], None]:
    outages = session.outages
    reader = EntryReader(
        session,
        TopicName.parse(item.topic),
        after=item.after,
        upto=item.upto,
        buffer_bytes=buffer_bytes,
        subscription_prefix=options.subscription_prefix,
        checksum_verified=options.verify_checksum,
        read_compacted=options.read_compacted,
        # A broker that is merely slow must never look like one that has nothing left. Of what is compacted it says so.
        silence_ms=2_000 if options.read_compacted else max(2_000, options.poll_timeout_ms // 4),
        poll_timeout_ms=options.poll_timeout_ms,
        reconnect_timeout_ms=0 if outages is None else outages.timeout_ms,
        replication_cursor=None if admit is None else options.predefined_subscription,
    )
    count, first = 0, None
    try:
        await patiently(session, reader.open)
        if admit is not None and (left := await patiently(session, lambda: admit(item, reader))) != item:
            if left.after < left.upto:
                async with aclosing(_read_range(session, options, left, buffer_bytes)) as chunks:
                    async for arrived in chunks:
                        yield arrived
            return
        while arrived := await reader.read_runs():
            count += sum(len(run.positions) for run in arrived)
            first = first or arrived[0].positions[0]
            yield arrived
    except DataLoss as gone:
        _lost(options, str(gone))
        return
    except TopicNotFound as gone:
        _lost(options, f"{item.topic} no longer exists, its entries up to {item.upto} were not read: {gone}")
        return
    finally:
        session.spawn(reader.close())  # what is read waits for no answer about that
    if item.sparse or options.read_compacted:
        return
    loss = _possible_loss(item, count, first, start_is_there=reader.start_is_there)
    if loss is None:
        return
    look = partial(ledger_is_there, session, options, item.topic, item.after.ledger, first or item.upto)
    if not await patiently(session, look):
        _lost(options, loss)


def _possible_loss(item: TopicRange, count: int, first: Position | None, *, start_is_there: bool) -> str | None:
    """Describe what is lost if the ledger that the range begins in is gone. Return None if nothing can be.

    Brokers trim whole ledgers, the oldest first. Holes inside a ledger are legitimate (markers, compaction), and a
    range may begin behind the last entry of its ledger.
    """
    if item.after.ledger == item.upto.ledger:
        expected = item.upto.entry - item.after.entry
        if count:
            return None
        return f"{item.topic}: {expected} entries behind {item.after} up to {item.upto} are gone, all of them"
    if start_is_there or item.first is None or (first is not None and first.ledger <= item.first.ledger):
        return None
    now = "none of them is there" if first is None else f"the first one there is {first}"
    return f"{item.topic}: entries behind {item.after} up to {item.upto} are gone, from {item.first} on; {now}"


def _lost(options: ReadOptions, text: str) -> None:
    if options.fail_on_data_loss:
        raise DataLoss(f"{text}. Start again from earliest, or set failOnDataLoss=false to go on without them")
    log.warning("data loss reason=%s", text)


def admission(ranges: Iterable[TopicRange]) -> Callable[[Message], bool] | None:
    """Return the predicate that selects the messages to read, or None if all are. Both ends are inclusive.

    The ranges decide, not the options: a stream that resumes from its checkpoint began elsewhere.
    """
    firsts: dict[str, CutPosition] = {}
    lasts: dict[str, CutPosition] = {}
    for item in ranges:
        if isinstance(item.after, CutPosition):
            firsts[item.topic] = item.after
        if isinstance(item.upto, CutPosition):
            lasts[item.topic] = item.upto
    if not firsts and not lasts:
        return None

    def admits(message: Message) -> bool:
        if message.batch_index < 0:
            return True
        first, last = firsts.get(message.topic), lasts.get(message.topic)
        place = Position(message.ledger, message.entry)
        if first is not None and place == (first.ledger, first.entry + 1) and message.batch_index < first.batch_index:
            return False
        return last is None or place != last or message.batch_index <= last.batch_index

    return admits

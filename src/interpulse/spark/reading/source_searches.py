"""Searches on the source cluster: topics and schemas, ledgers, positions by time. Nothing is created."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.consuming.reader import Reader, ReaderConfig
from interpulse.client.session import Session
from interpulse.model.errors import DataLoss, TopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.spark.options.option import OptionError
from interpulse.spark.processes.process_client import process_portal, session_for
from interpulse.spark.reading.planner import Following, Ledger
from interpulse.spark.reading.read_options import ReadOptions

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

log = logging.getLogger(__name__)

CONCURRENT_MAX: Final = 1000
"""Concurrent requests."""

_LITERAL: Final = re.compile(r"(?:persistent://)?([A-Za-z0-9_\-=:.]+/[A-Za-z0-9_\-=:.]+)/")


async def selected_topics(session: Session, options: ReadOptions) -> list[TopicName]:
    """Return the base names, and the partitions that are named by themselves."""
    named = options.topics or options.assigned
    if named:
        topics = [TopicName.parse(name) for name in named]
    else:
        namespaces = _namespaces(options, str(options.topics_pattern))
        listed = await asyncio.gather(*(session.lookup.topics_of_namespace(namespace) for namespace in namespaces))
        topics = sorted({TopicName.parse(name).base for answer in listed for name in answer.names}, key=str)
    return [topic for topic in topics if options.names(topic)]


def _namespaces(options: ReadOptions, pattern: str) -> Sequence[NamespaceName]:
    literal = _LITERAL.match(pattern)
    if options.namespaces:
        return options.namespaces
    if literal is None:
        raise OptionError(
            f"topicsPattern {pattern!r} does not begin with a literal tenant/namespace/: list them with namespaces"
        )
    return [NamespaceName.parse(literal[1])]


def schemas_of_topics(options: ReadOptions) -> dict[str, SchemaInfo | None]:
    """Return the newest schema of each topic, None if it has none. Return nothing if the options ask for bytes.

    Raises TopicNotFound.
    """
    return process_portal().call(lambda: _schemas(options)) if options.is_typed and not options.topics_file else {}


async def _schemas(options: ReadOptions) -> dict[str, SchemaInfo | None]:
    session = await session_for(options.service_url, options.operation_timeout_ms, options.access)
    topics = {topic.base for topic in await selected_topics(session, options)}
    slots = asyncio.Semaphore(CONCURRENT_MAX)

    async def schema(topic: TopicName) -> SchemaInfo | None:
        async with slots:
            try:
                await session.lookup.partitions(topic, create=False)  # refuses what is not there
            except TopicNotFound:
                if not options.awaits_topics:
                    raise
                log.warning("topic does not exist yet, its payloads are read as bytes topic=%s", topic)
                return None
            stored = await session.lookup.schema(topic)
        return None if stored is None else stored.schema

    schemas = await asyncio.gather(*(schema(topic) for topic in topics))
    return {str(topic): schema for topic, schema in zip(topics, schemas, strict=True)}


_REQUESTS_MAX: Final = 16
_SEARCHES_MAX: Final = 64


async def ledger_tables(admin: AdminClient, topics: Iterable[str]) -> dict[str, list[Ledger]]:
    """Return the ledgers by topic-partition, in order, with one request per topic. Raise refusals of the broker."""
    partitions: dict[str, list[str]] = {}
    for name in topics:
        partitions.setdefault(str(TopicName.parse(name).base), []).append(name)
    slots = asyncio.Semaphore(_REQUESTS_MAX)

    async def ask(base: str, names: list[str]) -> dict[str, list[Ledger]]:
        async with slots:
            if names == [base]:
                return {base: _table(await admin.topics.internal_stats(base))}
            stats = (await admin.topics.partitioned_internal_stats(base)).get("partitions", {})
        return {name: _table(stats[name]) for name in names if name in stats}

    answers = await asyncio.gather(*(ask(base, names) for base, names in partitions.items()))
    return {name: table for tables in answers for name, table in tables.items()}


def _table(stats: Mapping[str, Any]) -> list[Ledger]:
    """Return the ledgers of one topic-partition. The open ledger has its numbers beside the list."""
    rows = stats["ledgers"]
    ledgers = [Ledger(int(row["ledgerId"]), int(row["entries"]), int(row["size"])) for row in rows]
    if ledgers and not ledgers[-1].entries:
        ledgers[-1] = Ledger(ledgers[-1].id, int(stats["currentLedgerEntries"]), int(stats["currentLedgerSize"]))
    return ledgers


async def entry_after(
    session: Session, options: ReadOptions, topic: str, after: Position, upto: Position
) -> tuple[Following | None, bool]:
    """Return the first entry of ``(after, upto]``, if any, and True if the entry at ``after`` exists."""
    async with _small_reader(session, options, topic, after, upto) as reader:
        await reader.open()
        batch = await reader.read_batch()
        intact = reader.start_is_there
        return (Following(batch[0].position, len(batch[0].raw), intact) if batch else None), intact


async def ledger_is_there(session: Session, options: ReadOptions, topic: str, ledger: int, upto: Position) -> bool:
    """Return True if an entry of the ledger can be read, so that nothing in or behind it was trimmed.

    Brokers trim whole ledgers, the oldest first. ``upto`` is an entry behind the ledger, or in it, where the look ends.
    Positions of earlier releases may lie beyond the end of their ledger, where no entry proves that it exists.
    """
    async with _small_reader(session, options, topic, Position(ledger, -1), upto) as reader:
        await reader.open()
        try:
            batch = await reader.read_batch()
        except DataLoss:
            return False  # nothing is there at all
    return bool(batch) and batch[0].position.ledger == ledger


def _small_reader(session: Session, options: ReadOptions, topic: str, after: Position, upto: Position) -> EntryReader:
    return EntryReader(
        session,
        TopicName.parse(topic),
        after=after,
        upto=upto,
        buffer_bytes=64 * 1024,
        subscription_prefix=options.subscription_prefix,
        poll_timeout_ms=session.config.operation_timeout_ms,
        read_compacted=options.read_compacted,
    )


async def positions_before(session: Session, options: ReadOptions, times: Mapping[str, int]) -> dict[str, Position]:
    """Return the position before the first message published at or after a time (ms since 1970), by topic-partition.

    Topic-partitions without such a message are left out. The broker searches, as when a consumer seeks by time.
    """
    slots = asyncio.Semaphore(_SEARCHES_MAX)
    config = ReaderConfig(
        force_topic_creation=False,
        receiver_queue_size=1,
        subscription_prefix=options.subscription_prefix,
        read_compacted=options.read_compacted,
        crypto_failure_action="consume",
        auto_update_partitions=False,
    )

    async def search(topic: str, time_ms: int) -> Position | None:
        async with slots, Reader(session, [TopicName.parse(topic)], config) as reader:
            await reader.open()
            await reader.seek(time_ms)
            if not await reader.has_message_available():
                return None
            first = (await reader.read_next(session.config.operation_timeout_ms)).id
        start = first.first_chunk or first.position
        return Position(start.ledger, start.entry - 1)

    positions = await asyncio.gather(*(search(topic, time_ms) for topic, time_ms in times.items()))
    return {topic: position for topic, position in zip(times, positions, strict=True) if position is not None}

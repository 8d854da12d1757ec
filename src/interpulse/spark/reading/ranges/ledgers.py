"""Ledgers of topic-partitions: their tables at the admin API, and a check that one still exists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.model.errors import DataLoss
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.reading.ranges.splitting import Ledger

_CONCURRENT_MAX: Final = 16


async def ledger_tables(admin: AdminClient, topics: Iterable[str]) -> dict[str, list[Ledger]]:
    """Return the ledgers by topic-partition, in order, with one request per topic. Raise refusals of the broker."""
    partitions: dict[str, list[str]] = {}
    for name in topics:
        partitions.setdefault(str(TopicName.parse(name).base), []).append(name)
    slots = asyncio.Semaphore(_CONCURRENT_MAX)

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


async def ledger_is_there(session: Session, topic: TopicName, ledger: int, *, upto: Position, prefix: str) -> bool:
    """Return True if an entry of the ledger can be read, so that nothing in or behind it was trimmed.

    Brokers trim whole ledgers, the oldest first. ``upto`` is an entry behind the ledger, or in it, where the look ends.
    """
    reader = EntryReader(
        session,
        topic,
        after=Position(ledger, -1),
        upto=upto,
        buffer_bytes=64 * 1024,
        subscription_prefix=prefix,
        poll_timeout_ms=session.config.operation_timeout_ms,
    )
    async with reader:
        await reader.open()
        try:
            batch = await reader.read_batch()
        except DataLoss:
            return False  # nothing is there at all
    return bool(batch) and batch[0].position.ledger == ledger

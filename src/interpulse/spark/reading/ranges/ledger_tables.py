"""Ledgers of topic-partitions, from the admin API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.spark.reading.ranges.splitting import Ledger

__all__ = ["ledger_tables"]

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

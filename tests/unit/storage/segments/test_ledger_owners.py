from __future__ import annotations

import asyncio

from interpulse.storage.api import LedgerRecord, Put
from interpulse.storage.logs.topic_records import TopicRecords, record_key, with_ledgers
from interpulse.storage.segments.ledger_owners import (
    LEDGER_COUNTER_KEY,
    LedgerIds,
    ledger_key,
    living_ledgers,
    owner_changes,
)
from tests.support.memory_storage import MemoryMetadataStore

ROWS = (LedgerRecord(3, 10, 100, 7), LedgerRecord(5, 0, 0, 9))


async def test_ledger_ids_when_taken_by_many_at_once_then_each_once_and_reserved_before() -> None:
    metadata = MemoryMetadataStore()
    ids = LedgerIds(metadata)
    taken = await asyncio.gather(*(ids.take() for _ in range(2500)))
    assert sorted(taken) == list(range(1, 2501))
    stored = await metadata.get(LEDGER_COUNTER_KEY)
    assert stored is not None
    assert int(stored.value) > max(taken)
    assert await LedgerIds(metadata).first_unreserved() == int(stored.value)
    assert await LedgerIds(metadata).take() == int(stored.value), "a new process starts behind every reserved id"


async def test_living_when_owner_record_or_listing_is_missing_then_dead() -> None:
    metadata = MemoryMetadataStore()
    records = TopicRecords(metadata, along=owner_changes)
    await records.change("a", lambda old: with_ledgers(old, ROWS))
    await metadata.commit(
        [
            Put(ledger_key(6), b"a"),  # its log does not list it
            Put(ledger_key(7), b"gone"),  # its log has no record
            Put(ledger_key(8), b"broken"),  # not readable: kept
            Put(record_key("broken"), b"{"),
        ]
    )
    assert await living_ledgers(metadata, [3, 5, 6, 7, 8, 9]) == {3: "a", 5: "a", 8: "broken"}

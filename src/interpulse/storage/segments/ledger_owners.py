"""The ledger ids of a data directory, and the log of each ledger.

* ``/ledgers/L<id>`` names the log of a ledger. It is written and deleted in one commit with the log's record, so that
  ledgers in a segment are known to be alive or dead without reading every record.
* ``/ledgers/id-counter`` is the first ledger id that was never reserved. Ids are reserved in blocks *before* use, so a
  crash may skip ids but never assigns one twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from interpulse.storage.api import Change, Delete, MetadataStore, MetadataUnavailable, Put, Versioned
from interpulse.storage.cas import advance_counter
from interpulse.storage.logs.topic_records import JSON_RECORDS, decode_record, record_key

LEDGER_COUNTER_KEY = "/ledgers/id-counter"
_BLOCK = 1000  # one commit per thousand ledgers; a restart skips at most one block


def ledger_key(ledger_id: int) -> str:
    """Return the key that names the log of a ledger."""
    return f"/ledgers/L{ledger_id:010d}"


class LedgerIds:
    """A source of ledger ids, each unique in the life of the metadata store."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._next = 1
        self._end = 1
        self._reserving = asyncio.Lock()

    async def take(self) -> int:
        """Return a ledger id that was never used."""
        while self._next == self._end:
            async with self._reserving:
                if self._next == self._end:
                    self._next = await advance_counter(self._metadata, LEDGER_COUNTER_KEY, _BLOCK, start=1)
                    self._end = self._next + _BLOCK
        self._next += 1
        return self._next - 1

    async def first_unreserved(self) -> int:
        """Return an id above every ledger id that was ever assigned."""
        stored = await self._metadata.get(LEDGER_COUNTER_KEY)
        return int(stored.value) if stored else 1


def owner_changes(name: str, before: Collection[int], after: Collection[int]) -> list[Change]:
    """Return the changes to commit with a record that names other ledgers than before."""
    added, removed = set(after).difference(before), set(before).difference(after)
    puts: list[Change] = [Put(ledger_key(ledger), name.encode()) for ledger in sorted(added)]
    return puts + [Delete(ledger_key(ledger)) for ledger in sorted(removed)]


async def living_ledgers(metadata: MetadataStore, ledger_ids: Iterable[int]) -> dict[int, str]:
    """Return the ledgers that still belong to a log, with the name of the log."""
    owners = await metadata.get_many([ledger_key(ledger) for ledger in ledger_ids])
    claims = {int(key.rpartition("L")[2]): owner.value.decode() for key, owner in owners.items()}
    stored = await metadata.get_many([record_key(name) for name in sorted(set(claims.values()))])
    return {ledger: name for ledger, name in claims.items() if _lists(name, stored.get(record_key(name)), ledger)}


def _lists(name: str, stored: Versioned | None, ledger_id: int) -> bool:
    if stored is None:
        return False
    try:
        return ledger_id in decode_record(JSON_RECORDS, name, stored.value).ledger_ids
    except MetadataUnavailable:
        return True  # the log cannot be opened before its record is repaired; its entries must still exist then

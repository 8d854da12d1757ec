"""The records of a topic in Pulsar's JSON (``ManagedLedgerInfo``), read without loading it.

So it can be told of a topic that is refused too. Ledgers that were not closed are recorded without their counts.
"""

from __future__ import annotations

from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.live.cursor import CursorRecord
from interpulse.broker.live.producing.deduplication import DEDUPLICATION_CURSOR
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import TopicName, decode_local_name
from interpulse.storage.api import LedgerRecord, MetadataStore
from interpulse.storage.topic_records import TopicRecord

__all__ = ["internal_info"]


async def internal_info(store: MetadataStore, name: TopicName) -> dict[str, Any]:
    """Ledgers and cursors of one stored topic; raises TopicNotFound."""
    key = keys.topic_record(name)
    children = [f"{key}/{child}" for child in await store.children(key)]
    found = await store.get_many([key, *children])
    if key not in found:
        raise TopicNotFound(f"Topic {name} not found")
    record = TopicRecord.decode(found[key].value)
    info: dict[str, Any] = {"version": found[key].version, "ledgers": [_ledger(each) for each in record.ledgers]}
    if record.terminated is not None:
        info["terminatedPosition"] = {"ledgerId": record.terminated.ledger, "entryId": record.terminated.entry}
    cursors = {child.rpartition("/")[2]: found[child].value for child in children if child in found}
    return info | {"cursors": {decode_local_name(each): _cursor(each, raw) for each, raw in cursors.items()}}


def _ledger(ledger: LedgerRecord) -> dict[str, Any]:
    counts = {"entries": ledger.entries, "size": ledger.size} if ledger.entries else {}
    return {"ledgerId": ledger.ledger_id, **counts, "timestamp": ledger.created_ms, "isOffloaded": False}


def _cursor(name: str, raw: bytes) -> dict[str, Any]:
    """Acknowledgements are recorded with the cursor itself, never in a ledger of its own."""
    body: dict[str, Any] = {"cursorsLedgerId": -1}
    if name == DEDUPLICATION_CURSOR:
        return body
    record = CursorRecord.load(raw)
    body["markDelete"] = {"ledgerId": record.mark_delete.ledger, "entryId": record.mark_delete.entry}
    if record.ranges:
        body["individualDeletedMessages"] = [
            {"from": {"ledgerId": ledger, "entryId": first}, "to": {"ledgerId": ledger, "entryId": last}}
            for ledger, first, last in record.ranges
        ]
    return body

"""The records of a topic in the JSON of Pulsar's admin API (``ManagedLedgerInfo``), read without loading the topic.

This also works for a topic that is refused. Ledgers that were not closed are recorded without their counts.
"""

from __future__ import annotations

from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.metadata.layout import Layout
from interpulse.model.errors import TopicNotFound
from interpulse.model.names import TopicName, decode_local_name
from interpulse.storage.api import LedgerRecord, MetadataStore
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, CursorCodec
from interpulse.storage.logs.topic_records import decode_record


async def internal_info(store: MetadataStore, name: TopicName, layout: Layout) -> dict[str, Any]:
    """Return the ledgers and cursors of one stored topic. Raise TopicNotFound."""
    key = keys.topic_record(name)
    children = [f"{key}/{child}" for child in await store.children(key)]
    records = await store.get_many([key, *children])
    if key not in records:
        raise TopicNotFound(f"Topic {name} not found")
    record = decode_record(layout.topic_records, name.log_name, records[key].value)
    info: dict[str, Any] = {"version": records[key].version, "ledgers": [_ledger(ledger) for ledger in record.ledgers]}
    if record.terminated is not None:
        info["terminatedPosition"] = {"ledgerId": record.terminated.ledger, "entryId": record.terminated.entry}
    stored = {decode_local_name(key.rpartition("/")[2]): records[key].value for key in children if key in records}
    return info | {"cursors": {cursor: _cursor(cursor, value, layout.cursors) for cursor, value in stored.items()}}


def _ledger(ledger: LedgerRecord) -> dict[str, Any]:
    counts = {"entries": ledger.entries, "size": ledger.size} if ledger.entries else {}
    return {"ledgerId": ledger.ledger_id, **counts, "timestamp": ledger.created_ms, "isOffloaded": False}


def _cursor(name: str, value: bytes, codec: CursorCodec) -> dict[str, Any]:
    """Return the acknowledgements in the cursor's record; a ledger may have newer ones."""
    record = codec.decode(name, value)
    body: dict[str, Any] = {"cursorsLedgerId": codec.ledger_of(value)}
    if name == DEDUPLICATION_CURSOR:
        return body
    body["markDelete"] = {"ledgerId": record.mark_delete.ledger, "entryId": record.mark_delete.entry}
    if record.ranges:
        body["individualDeletedMessages"] = [
            {"from": {"ledgerId": ledger, "entryId": first}, "to": {"ledgerId": ledger, "entryId": last}}
            for ledger, first, last in record.ranges
        ]
    return body

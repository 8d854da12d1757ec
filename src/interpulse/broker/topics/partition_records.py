"""The stored records of topics: partitions, the subscriptions that a new partition takes over, and records as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import ALONE, Layout
from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName, decode_local_name
from interpulse.storage.api import LedgerRecord, MetadataStore, Put, scan_pages
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, CursorCodec
from interpulse.storage.logs.topic_records import decode_record

_KEYS_PER_PAGE = 1000


@dataclass(slots=True)
class StoredPartition:
    """The record of a partition with its version in the store, and its cursors by encoded name."""

    record: bytes
    version: int
    cursors: dict[str, bytes] = field(default_factory=dict)


async def stored_partitions(store: MetadataStore, name: TopicName) -> dict[int, StoredPartition]:
    """Return every partition of the base name that has a record, by index, whatever the metadata says."""
    found: dict[int, StoredPartition] = {}
    if not name.is_persistent:
        return found
    prefix = keys.partition_records(name)
    async for page in scan_pages(store, prefix, limit=_KEYS_PER_PAGE):
        for key, stored in page:
            index, _, cursor = key.removeprefix(prefix).partition("/")
            if not index.isdecimal() or str(int(index)) != index:
                continue  # another topic with this prefix
            if not cursor:
                found[int(index)] = StoredPartition(stored.value, stored.version)
            elif int(index) in found:
                found[int(index)].cursors[cursor] = stored.value
    return found


def new_cursors(
    name: TopicName,
    stored: Mapping[int, StoredPartition],
    indices: Iterable[int],
    *,
    replicator_prefix: str,
    layout: Layout = ALONE,
) -> list[Put]:
    """Return a cursor on each of these partitions for every durable subscription of partition 0.

    The client-set properties of a subscription are copied. Its acknowledgements are not, nor are the broker's own
    cursors: those of replication and of sequence ids begin when the partition is loaded. A new partition is read from
    its beginning. A partition that was stored already is read from its end, as in Pulsar; its record is written again
    unchanged, so that a deletion under way sees the new cursors, unless only its owner may write it.
    """
    subscriptions = {
        cursor: layout.cursors.decode(decode_local_name(cursor), raw)
        for cursor, raw in (stored[0].cursors if 0 in stored else {}).items()
        if cursor != DEDUPLICATION_CURSOR and not cursor.startswith(f"{replicator_prefix}.")
    }
    encode = layout.cursors.encode
    from_beginning = {
        subscription: encode(subscription, of.of_new_partition(EARLIEST)) for subscription, of in subscriptions.items()
    }
    puts = []
    for index in indices:
        key, present = keys.topic_record(name.partition(index)), stored.get(index)
        if present is not None and not layout.shared:
            puts.append(Put(key, present.record))
        for cursor, record in subscriptions.items():
            if present is None:
                puts.append(Put(f"{key}/{cursor}", from_beginning[cursor]))
            elif cursor not in present.cursors:
                end = _end_of(key, present.record, layout)
                puts.append(Put(f"{key}/{cursor}", encode(cursor, record.of_new_partition(end))))
    return puts


def _end_of(key: str, record: bytes, layout: Layout) -> Position:
    """Return the position after every entry: the next ledger has a higher id."""
    ledgers = decode_record(layout.topic_records, key.removeprefix(f"{keys.TOPIC_RECORDS}/"), record).ledgers
    return Position(ledgers[-1].ledger_id + 1, -1) if ledgers else EARLIEST


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

from __future__ import annotations

import base64
from typing import Any

import pytest

from interpulse.broker.live.entry_metadata import (
    MARKER,
    ORDINARY,
    EntryMetadata,
    EntryMetadataCache,
    entry_metadata_of,
    sticky_slot_of,
    sticky_slots_of,
)
from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry


def entry(**metadata: Any) -> bytes:
    full = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, **metadata)
    return build_entry(full.SerializeToString(), b"payload")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ORDINARY),
        ({"num_messages_in_batch": 1}, ORDINARY),
        ({"num_messages_in_batch": 5}, EntryMetadata(5)),
        ({"marker_type": 10}, MARKER),
        ({"uuid": "u", "num_chunks_from_msg": 3, "chunk_id": 0}, EntryMetadata(1, False, "u", False)),
        ({"uuid": "u", "num_chunks_from_msg": 3, "chunk_id": 2}, EntryMetadata(1, False, "u", True)),
    ],
)
def test_entry_metadata_of(metadata: dict[str, Any], expected: EntryMetadata) -> None:
    assert entry_metadata_of(entry(**metadata)) == expected


def test_entry_metadata_of_bytes_that_are_no_entry_are_ordinary() -> None:
    assert entry_metadata_of(b"\x0e\x01garbage") == ORDINARY
    assert 1 <= sticky_slot_of(b"\x0e\x01garbage") < 65536


def test_sticky_slot_of_a_key_that_is_no_utf8_is_that_of_its_bytes() -> None:
    """No producer may bring the topic down."""
    strange = entry(partition_key="AAAA").replace(b"AAAA", b"\xff\xfe\xed\xa0")
    assert 1 <= sticky_slot_of(strange) < 65536


@pytest.mark.parametrize(
    ("metadata", "slot"),
    [
        ({"partition_key": "key1"}, 293),
        ({"partition_key": "key2"}, 14772),
        ({"partition_key": "key2", "ordering_key": b"key1"}, 293),
        ({"partition_key": base64.b64encode(b"key1").decode(), "partition_key_b64_encoded": True}, 293),
        ({"partition_key": "order-42"}, 41358),
    ],
)
def test_sticky_slot_of(metadata: dict[str, Any], slot: int) -> None:
    assert sticky_slot_of(entry(**metadata)) == slot
    assert sticky_slots_of([entry(**metadata), entry(partition_key="key2")]) == [slot, 14772]


def test_sticky_slots_of_entries_without_a_plain_key_are_those_of_each() -> None:
    entries = [entry(partition_key="key1"), entry(), b"\x0e\x01garbage"]
    assert sticky_slots_of(entries) == [293, *map(sticky_slot_of, entries[1:])]


def test_entry_metadata_cache_knows_what_was_published_and_parses_the_rest_once() -> None:
    cache = EntryMetadataCache(Position(5, 0))
    assert cache.all_ordinary_since(Position(5, 0))
    assert not cache.all_ordinary_since(Position(4, 9))
    assert cache.get(Position(5, 0), b"not looked at") == ORDINARY
    cache.remember(Position(5, 1), EntryMetadata(9))
    assert not cache.all_ordinary_since(Position(5, 0))
    assert cache.get(Position(5, 1), b"not looked at") == EntryMetadata(9)
    assert cache.get(Position(4, 0), entry(num_messages_in_batch=3)) == EntryMetadata(3)
    assert cache.get(Position(4, 0), b"not looked at again") == EntryMetadata(3)


def test_entry_metadata_cache_when_entries_were_read_together_then_those_that_are_plain_are_known() -> None:
    cache = EntryMetadataCache(Position(5, 0))
    rows = [entry(), entry(num_messages_in_batch=3), entry(marker_type=10), entry(num_messages_in_batch=1)]
    cache.learn([LogEntry(Position(4, number), row) for number, row in enumerate(rows)])
    unread = b"not looked at"
    known = [cache.get(Position(4, number), row if number == 2 else unread) for number, row in enumerate(rows)]
    assert known == [ORDINARY, EntryMetadata(3), MARKER, ORDINARY]
    cache.learn([])
    cache.learn([LogEntry(Position(5, 0), entry(num_messages_in_batch=3))])
    assert cache.get(Position(5, 0), unread) == ORDINARY  # it was published, and was ordinary then


def test_entry_metadata_cache_when_full_then_old_entries_are_parsed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interpulse.broker.live.entry_metadata._CACHED_MAX", 4)
    cache = EntryMetadataCache(Position(5, 0))
    for number in range(5):
        cache.remember(Position(5, number), EntryMetadata(9))
    assert cache.get(Position(5, 0), entry(num_messages_in_batch=3)) == EntryMetadata(3)
    assert cache.get(Position(5, 4), b"not looked at") == EntryMetadata(9)


def test_entry_metadata_cache_when_entries_read_together_are_too_many_then_older_ones_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interpulse.broker.live.entry_metadata._CACHED_MAX", 4)
    cache = EntryMetadataCache(Position(5, 0))
    for first in (0, 3):
        cache.learn([LogEntry(Position(4, first + number), entry(num_messages_in_batch=3)) for number in range(3)])
    assert cache.get(Position(4, 0), entry(num_messages_in_batch=2)) == EntryMetadata(2)
    assert cache.get(Position(4, 3), b"not looked at") == EntryMetadata(3)

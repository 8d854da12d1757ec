from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from interpulse.model.ids import Position
from interpulse.storage.api import Change, CommitConflict, LedgerRecord, MetadataUnavailable, Put
from interpulse.storage.logs.topic_records import (
    JSON_RECORDS,
    TopicRecord,
    TopicRecords,
    record_key,
    with_ledgers,
)
from tests.support.memory_storage import MemoryMetadataStore

ROWS = (LedgerRecord(3, 10, 100, 7), LedgerRecord(5, 0, 0, 9))


def test_record_when_written_and_read_then_equal_and_in_pulsars_words() -> None:
    record = TopicRecord(ROWS, Position(5, -1), {"properties": {"k": "v"}})
    assert JSON_RECORDS.decode(JSON_RECORDS.encode(record)) == record
    assert JSON_RECORDS.encode(record) == (
        b'{"ledgers":[{"ledgerId":3,"entries":10,"size":100,"timestamp":7},'
        b'{"ledgerId":5,"entries":0,"size":0,"timestamp":9}],'
        b'"properties":{"k":"v"},"terminated":{"ledgerId":5,"entryId":-1}}'
    )
    assert JSON_RECORDS.decode(b"{}").ledgers == ()


class Contended(MemoryMetadataStore):
    """Another one commits the same key first, a few times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        if self.times and expect:
            self.times -= 1
            raise CommitConflict(next(iter(expect)))
        await super().commit(changes, expect)


async def test_changes_when_others_are_faster_then_tried_again() -> None:
    metadata = Contended(3)
    records = TopicRecords(metadata)
    await records.change("t/n/persistent/a", lambda old: with_ledgers(old, ROWS))
    assert await records.get("t/n/persistent/a") == TopicRecord(ROWS)
    metadata.times = 3
    assert await records.delete("t/n/persistent/a") == [3, 5]


async def test_get_when_record_is_broken_then_error_names_the_log() -> None:
    metadata = MemoryMetadataStore()
    await metadata.commit([Put(record_key("t/n/persistent/a"), b"null")])
    with pytest.raises(MetadataUnavailable, match="t/n/persistent/a"):
        await TopicRecords(metadata).get("t/n/persistent/a")

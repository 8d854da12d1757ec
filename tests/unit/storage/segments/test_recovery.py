"""The rules for one segment; tests/durability breaks every byte of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.storage.api import DataDirectoryUnusable
from interpulse.storage.logs.journal import Run
from interpulse.storage.segments import records
from interpulse.storage.segments.records import (
    SEGMENT_HEAD,
    Row,
    encode_chunk,
    encode_record,
    location,
    pack_index_head,
    pack_segment_head,
    parse_index,
)
from interpulse.storage.segments.recovery import recover_segments
from interpulse.storage.segments.segment_set import SegmentSet
from tests.simulation.disk import SimulatedDisk

DIRECTORY = Path("/log")
SEGMENT, INDEX = DIRECTORY / "0000000001.seg", DIRECTORY / "0000000001.idx"


class Builder:
    """Writes groups of records the way the writer does."""

    def __init__(self) -> None:
        self.content = pack_segment_head(1)
        self.index = pack_index_head(1)

    def group(self, *runs: Run, indexed: bool = True) -> None:
        begin, rows = len(self.content), []
        for run in runs:
            offset = len(self.content)
            self.content += b"".join(encode_record(run, offset - begin, location(1, offset)))
            rows.append(Row(run.ledger_id, run.first, len(run.entries), offset, len(self.content) - offset))
        if indexed:
            self.index += encode_chunk(rows, len(self.content))

    def disk(self, *, index: bool = True) -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.create(SEGMENT).write_durably(self.content)
        if index:
            disk.create(INDEX).write_durably(self.index)
        disk.sync_directory(DIRECTORY)
        disk.steps.clear()
        return disk


def run(ledger: int, first: int, *entries: bytes) -> Run:
    return Run(ledger, first, list(entries))


def test_recover_when_nothing_is_there_then_nothing() -> None:
    assert recover_segments(DIRECTORY, SimulatedDisk()) == []


def test_recover_when_sealed_then_the_segment_is_not_read() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), run(2, 0, b"b"))
    built.index += encode_chunk([], len(built.content), sealed=True)
    disk = built.disk()
    (segment,) = recover_segments(DIRECTORY, disk)
    assert disk.steps == []
    assert {ledger: (rows.end, rows.verified) for ledger, rows in segment.ledgers.items()} == {
        1: (1, False),
        2: (1, False),
    }
    assert segment.sealed


def test_recover_when_records_are_behind_the_index_then_read_written_again_and_sealed() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"))
    built.group(run(1, 1, b"b", b"c"), indexed=False)
    disk = built.disk()
    (segment,) = recover_segments(DIRECTORY, disk)
    assert segment.ledgers[1].end == 3
    assert "rewrite" in disk.steps
    index = parse_index(bytes(disk.content(INDEX)), 1)
    assert (index.sealed, index.covered, len(index.rows)) == (True, len(built.content), 2)
    assert disk.names_synced == disk.names_now
    assert disk.names_now.keys() == {SEGMENT, INDEX}


def test_recover_when_the_last_group_is_torn_in_its_first_record_then_all_of_it_is_cut() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), indexed=False)
    begin = len(built.content)
    built.group(run(1, 1, b"b"), run(2, 0, b"c"), indexed=False)
    disk = built.disk(index=False)
    disk.content(SEGMENT)[begin + 2] = 0
    (segment,) = recover_segments(DIRECTORY, disk)
    assert segment.size == len(disk.content(SEGMENT)) == begin
    assert list(segment.ledgers) == [1]


def test_recover_when_damage_is_before_a_later_group_then_its_ledger_is_damaged() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), run(2, 0, b"b"), indexed=False)
    built.group(run(2, 1, b"c"), indexed=False)
    disk = built.disk(index=False)
    disk.content(SEGMENT)[SEGMENT_HEAD + 44] ^= 1  # the body of the first record
    (segment,) = recover_segments(DIRECTORY, disk)
    assert segment.ledgers[1].damaged_at == SEGMENT_HEAD
    assert segment.ledgers[2].damaged_at is None
    assert len(disk.content(SEGMENT)) == len(built.content)
    assert INDEX not in disk.names_now, "an index would hide the damage from the next start"


def test_recover_when_two_records_of_a_ledger_are_damaged_then_the_first_is_named() -> None:
    built = Builder()
    for first in range(3):
        built.group(run(1, first, b"a"), indexed=False)
    disk = built.disk(index=False)
    disk.content(SEGMENT)[SEGMENT_HEAD + 44] ^= 1
    disk.content(SEGMENT)[SEGMENT_HEAD + 45 + 44] ^= 1
    (segment,) = recover_segments(DIRECTORY, disk)
    assert segment.ledgers[1].damaged_at == SEGMENT_HEAD


def test_recover_when_headers_are_lost_then_only_gapless_ledgers_are_intact() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), run(2, 0, b"b"), run(3, 0, b"c"), run(4, 0, b"d"), indexed=False)
    built.group(run(2, 1, b"b"), run(4, 1, b"x"), indexed=False)
    lost = len(built.content)
    built.group(run(1, 1, b"a"), run(1, 2, b"a"), indexed=False)
    built.group(run(2, 2, b"b"), indexed=False)
    disk = built.disk(index=False)
    disk.content(SEGMENT)[lost - 1] ^= 1  # the last record before has a wrong body
    for offset in (lost, lost + 45):
        disk.content(SEGMENT)[offset] = 0
    (segment,) = recover_segments(DIRECTORY, disk)
    assert {ledger: rows.damaged_at for ledger, rows in segment.ledgers.items()} == {
        1: lost,
        2: None,
        3: lost,
        4: lost - 45,
    }
    assert len(disk.content(SEGMENT)) == len(built.content)
    assert INDEX not in disk.names_now
    segments = SegmentSet([segment])
    assert segments.forget([1, 2, 3, 4]) == [], "a rescue may still find out whose the lost records are"


def test_recover_when_the_index_has_everything_but_its_seal_then_sealed() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"))
    disk = built.disk()
    recover_segments(DIRECTORY, disk)
    index = parse_index(bytes(disk.content(INDEX)), 1)
    assert (index.sealed, index.covered, len(index.rows)) == (True, len(built.content), 1)
    assert disk.content(SEGMENT) == built.content


def test_recover_when_a_newer_program_wrote_the_segment_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(records, "VERSION", 2)
        disk = Builder().disk()
    with pytest.raises(DataDirectoryUnusable, match=r"0000000001\.seg has format 2, this program knows 1"):
        recover_segments(DIRECTORY, disk)


@pytest.mark.parametrize(
    ("size", "damaged", "told"), [(20, False, False), (19, True, False), (20, True, False), (65, True, True)]
)
def test_recover_when_a_segment_head_is_damaged_then_logged_if_records_follow(
    caplog: pytest.LogCaptureFixture, size: int, damaged: bool, told: bool
) -> None:
    built = Builder()
    built.group(run(1, 0, b"a"))
    content = bytearray(built.content[:size])
    content[0] ^= damaged
    disk = SimulatedDisk()
    disk.create(SEGMENT).write_durably(bytes(content))
    recover_segments(DIRECTORY, disk)
    assert ("log segment has a damaged head" in caplog.text) == told


def test_recover_when_the_segment_head_was_not_written_then_it_is_empty() -> None:
    disk = SimulatedDisk()
    disk.create(SEGMENT).write_durably(pack_segment_head(1)[:7])
    (segment,) = recover_segments(DIRECTORY, disk)
    assert not segment.ledgers
    assert segment.sealed


def test_recover_when_a_draft_was_left_then_removed() -> None:
    disk = SimulatedDisk()
    disk.create(DIRECTORY / "0000000001.tmp")
    disk.create(DIRECTORY / "notes.txt")
    assert recover_segments(DIRECTORY, disk) == []
    assert set(disk.names_now) == {DIRECTORY / "notes.txt"}


def test_recover_when_the_segment_ends_before_its_index_does_then_damaged_where_records_are_missing() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), run(2, 0, b"b"))
    end = len(built.content)
    built.group(run(2, 1, b"c"), run(3, 0, b"d"))
    built.group(run(2, 2, b"e"))
    built.content = built.content[: end + 5]
    (segment,) = recover_segments(DIRECTORY, built.disk())
    assert {ledger: rows.damaged_at for ledger, rows in segment.ledgers.items()} == {1: None, 2: end, 3: end + 45}


def test_recover_when_the_segment_is_missing_then_all_that_its_index_names_is_damaged() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), run(2, 0, b"b"))
    disk = built.disk()
    disk.unlink(SEGMENT)
    (segment,) = recover_segments(DIRECTORY, disk)
    assert {ledger: rows.damaged_at for ledger, rows in segment.ledgers.items()} == {1: 20, 2: 65}
    assert SEGMENT not in disk.names_now


def test_recover_when_there_is_an_index_without_records_and_no_segment_then_nothing_is_lost() -> None:
    disk = Builder().disk()
    disk.unlink(SEGMENT)
    (segment,) = recover_segments(DIRECTORY, disk)
    assert (segment.ledgers, segment.mysterious) == ({}, False)


def test_recover_when_killed_while_rebuilding_an_index_then_no_draft_is_left() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), indexed=False)
    disk = built.disk(index=False)
    disk.fail_at, disk.for_good = 4, True  # the rename: behind rewrite, create, write and sync
    recover_segments(DIRECTORY, disk)
    assert disk.names_now.keys() == {SEGMENT, DIRECTORY / "0000000001.tmp"}
    disk = disk.healthy()
    recover_segments(DIRECTORY, disk)
    assert disk.names_now.keys() == {SEGMENT, INDEX}


def test_recover_when_the_index_cannot_be_rebuilt_then_started_all_the_same() -> None:
    built = Builder()
    built.group(run(1, 0, b"a"), indexed=False)
    disk = built.disk()
    disk.fail_at = 1  # after the rewrite
    (segment,) = recover_segments(DIRECTORY, disk)
    assert segment.ledgers[1].end == 1
    (again,) = recover_segments(DIRECTORY, disk.healthy())
    assert again.ledgers[1].end == 1

from __future__ import annotations

from pathlib import Path

from interpulse.storage.segments.records import Row
from interpulse.storage.segments.segment_set import Segment, SegmentSet, index_path, segment_path


def segment(number: int, *rows: Row, sealed: bool = True) -> Segment:
    made = Segment(number, Path(f"{number}.seg"), sealed=sealed)
    for row in rows:
        made.add(row)
    return made


def three_entries(ledger: int, first: int, offset: int) -> Row:
    return Row(ledger, first, 3, offset, 40 + 3 * 4 + 30)


def test_paths_when_made_then_sorted_by_number() -> None:
    assert segment_path(Path("/d"), 7) == Path("/d/0000000007.seg")
    assert index_path(Path("/d"), 7) == Path("/d/0000000007.idx")


def test_extents_when_a_ledger_spans_segments_then_just_enough_records() -> None:
    segments = SegmentSet(
        [
            segment(2, three_entries(5, 6, 20)),
            segment(1, three_entries(5, 0, 20), three_entries(9, 0, 200), three_entries(5, 3, 300)),
        ]
    )

    def plan(first: int, entries_max: int, bytes_max: int) -> list[tuple[int, int, int, int]]:
        found = segments.extents(5, first, entries_max, bytes_max)
        return [(each.segment.number, each.row.offset, each.skip, each.count) for each in found]

    assert plan(0, 100, 10_000) == [(1, 20, 0, 3), (1, 300, 0, 3), (2, 20, 0, 3)]
    assert plan(4, 3, 10_000) == [(1, 300, 1, 2), (2, 20, 0, 1)]
    assert plan(1, 100, 1) == [(1, 20, 1, 2)]
    assert plan(0, 100, 82) == [(1, 20, 0, 3)], "a record has 82 bytes"
    assert plan(0, 100, 83) == [(1, 20, 0, 3), (1, 300, 0, 3)]
    assert plan(9, 100, 10_000) == []
    assert segments.extents(77, 0, 1, 1) == []
    assert segments.measure(5) == (9, 90)
    assert segments.measure(77) == (0, 0)
    assert segments.next_number == 3


def test_forget_when_segments_become_empty_then_only_sealed_ones_are_given_up() -> None:
    active = segment(3, three_entries(5, 3, 20), sealed=False)
    segments = SegmentSet([segment(1, three_entries(5, 0, 20)), segment(2, three_entries(9, 0, 20)), active])
    assert [each.number for each in segments.forget([5, 77])] == [1]
    assert segments.ledger_ids == [9]
    active.sealed = True
    assert [each.number for each in segments.remove_empty()] == [3]
    assert segments.next_number == 3


def test_forget_when_a_segment_has_unattributed_lost_records_then_it_stays() -> None:
    strange = segment(1, three_entries(5, 0, 20))
    strange.mysterious = True
    segments = SegmentSet([strange])
    assert segments.forget([5]) == []
    assert segments.remove_empty() == []


def test_add_when_a_ledger_is_new_in_a_segment_then_its_parts_are_in_order() -> None:
    segments = SegmentSet([segment(1, three_entries(5, 0, 20))])
    second = segment(2, sealed=False)
    segments.begin(second)
    segments.add(second, three_entries(5, 3, 20))
    segments.add(second, three_entries(5, 6, 200))
    assert [(each.number, rows.begin, rows.end) for each, rows in segments.parts(5)] == [(1, 0, 3), (2, 3, 9)]

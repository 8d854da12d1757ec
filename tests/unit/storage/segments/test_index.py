from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.segments.index import (
    INDEX_HEAD,
    IndexContent,
    LedgerRows,
    Row,
    encode_chunk,
    pack_index_head,
    parse_index,
)
from interpulse.storage.segments.records import RECORD_HEAD

rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 2**63),
        st.integers(0, 2**40),
        st.integers(1, 2**31),
        st.integers(0, 2**40),
        st.integers(1, 2**31),
    ),
    max_size=5,
)


@given(st.lists(rows, max_size=4), st.booleans())
def test_index_when_written_in_chunks_then_all_rows_come_back(chunks: list[list[Row]], sealed: bool) -> None:
    content = pack_index_head(3)
    for number, chunk in enumerate(chunks):
        content += encode_chunk(chunk, 100 + number)
    if sealed:
        content += encode_chunk([], 1000, sealed=True)
    index = parse_index(content, 3)
    assert index.rows == [row for chunk in chunks for row in chunk]
    assert index.covered == (1000 if sealed else 99 + len(chunks) if chunks else 0)
    assert index.sealed == sealed


def test_index_when_any_byte_is_wrong_then_only_chunks_before_it_count() -> None:
    one, two = Row(1, 0, 1, 20, 60), Row(2, 0, 1, 80, 60)
    first = pack_index_head(3) + encode_chunk([one], 80)
    content = first + encode_chunk([two], 140)
    for at in range(len(content)):
        broken = bytearray(content)
        broken[at] ^= 1
        index = parse_index(bytes(broken), 3)
        assert not index.sealed
        assert index.rows == ([] if at < len(first) else [one])
        assert index.covered == (0 if at < len(first) else 80)
    for end in range(INDEX_HEAD + 1, len(content)):
        index = parse_index(content[:end], 3)
        assert index.rows == ([one] if end >= len(first) else [])
        assert index.covered == (80 if end >= len(first) else 0)


def test_index_when_it_belongs_to_another_segment_then_ignored() -> None:
    content = pack_index_head(3) + encode_chunk([Row(1, 0, 1, 20, 60)], 80)
    assert parse_index(content, 4) == IndexContent()


def test_ledger_rows_when_dense_then_found_by_entry() -> None:
    known = LedgerRows()
    known.add(4, 3, 20, RECORD_HEAD + 3 * 4 + 30)
    known.add(7, 1, 200, RECORD_HEAD + 4 + 5)
    assert (known.begin, known.end, known.size, known.damaged_at) == (4, 8, 35, None)
    assert [known.row_of(entry) for entry in (4, 6, 7)] == [0, 0, 1]
    assert known.row(0, 9) == Row(9, 4, 3, 20, RECORD_HEAD + 42)
    assert known.row(1, 9) == Row(9, 7, 1, 200, RECORD_HEAD + 9)


def test_ledger_rows_when_entries_are_skipped_then_damage_is_at_the_record_behind() -> None:
    known = LedgerRows()
    known.add(0, 1, 20, 60)
    known.add(2, 1, 140, 60)
    known.add(5, 1, 300, 60)
    assert known.damaged_at == 140

from __future__ import annotations

from struct import pack_into

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.logs.journal import Run
from interpulse.storage.segments import records
from interpulse.storage.segments.records import (
    INDEX_HEAD,
    RECORD_HEAD,
    SEGMENT_HEAD,
    DamagedRecord,
    IndexContent,
    LedgerRows,
    Row,
    check_body,
    encode_chunk,
    encode_record,
    find_record,
    location,
    pack_index_head,
    pack_segment_head,
    parse_entries,
    parse_index,
    parse_record_head,
    segment_head_version,
    split_run,
)

entries = st.lists(st.binary(max_size=40), min_size=1, max_size=8)


def encode(run: Run, number: int = 1, offset: int = 20) -> bytes:
    return b"".join(encode_record(run, 0, location(number, offset)))


@given(entries, st.integers(0, 2**63 - 1), st.integers(0, 2**40), st.integers(1, 9), st.integers(20, 2**40))
def test_record_when_encoded_then_parsed_to_the_same(
    payloads: list[bytes], ledger: int, first: int, number: int, offset: int
) -> None:
    content = encode(Run(ledger, first, payloads), number, offset)
    head = parse_record_head(content, location(number, offset))
    assert (head.ledger_id, head.first, head.entries, head.length) == (ledger, first, len(payloads), len(content))
    check_body(head, content)
    assert parse_entries(head, content, 0, len(payloads)) == payloads
    assert parse_entries(head, content, 1, 1) == payloads[1:2]


def test_record_when_written_then_bytes_are_as_documented() -> None:
    content = encode(Run(258, 7, [b"ab", b""]), number=1, offset=20)
    assert content[:32].hex(" ", 4) == "d1495072 02010000 00000000 07000000 00000000 02000000 0a000000 00000000"
    assert content[RECORD_HEAD:] == b"\x02\0\0\0\0\0\0\0ab"
    assert RECORD_HEAD == 40


@given(entries, st.data())
def test_record_when_any_bit_is_flipped_then_noticed(payloads: list[bytes], data: st.DataObject) -> None:
    content = bytearray(encode(Run(1, 0, payloads)))
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamagedRecord):
        check_body(parse_record_head(bytes(content), location(1, 20)), bytes(content))


def test_record_when_cut_anywhere_then_noticed() -> None:
    content = encode(Run(1, 0, [b"abc", b"d"]))
    for end in range(len(content)):
        with pytest.raises(DamagedRecord):
            check_body(parse_record_head(content[:end], location(1, 20)), content[:end])


def test_record_when_at_another_location_then_refused() -> None:
    content = encode(Run(1, 0, [b"abc"]), number=1, offset=20)
    for number, offset in [(2, 20), (1, 21), (1, 20 + 2**31)]:
        with pytest.raises(DamagedRecord, match="header"):
            parse_record_head(content, location(number, offset))


def test_location_when_computed_then_as_documented() -> None:
    assert [location(0, 20), location(1, 20), location(2, 5)] == [20, 0x9E3779B1 + 20, (2 * 0x9E3779B1 + 5) % 2**32]
    assert location(0, 2**32 + 7) == 7


def test_record_head_when_nothing_follows_it_then_parsed_and_beyond_the_end_refused() -> None:
    content = encode(Run(1, 0, [b"abc"]))
    assert parse_record_head(content[:RECORD_HEAD], location(1, 20)).length == len(content)
    with pytest.raises(DamagedRecord, match="cut off"):
        parse_record_head(content, location(1, 20), len(content))


@pytest.mark.parametrize(("entries", "body_length"), [(0, 12), (4, 12), (1, 3)])
def test_record_head_when_its_body_has_no_room_for_the_table_then_refused(entries: int, body_length: int) -> None:
    head = bytearray(encode(Run(1, 0, [b"", b"", b""])))
    pack_into("<II", head, 20, entries, body_length)
    pack_into("<I", head, 36, crc32c(head[:36], location(1, 20)))
    with pytest.raises(DamagedRecord, match="contradicts itself"):
        parse_record_head(bytes(head), location(1, 20))


def test_parse_entries_when_lengths_contradict_the_record_then_refused() -> None:
    content = bytearray(encode(Run(1, 0, [b"abc"])))
    head = parse_record_head(bytes(content), location(1, 20))
    content[RECORD_HEAD] = 2
    with pytest.raises(DamagedRecord, match="lengths"):
        parse_entries(head, bytes(content), 0, 1)


def test_find_record_when_noise_and_magic_precede_then_the_next_intact_header() -> None:
    noise = b"...\xd1IPr" + b"x" * 50
    record = encode(Run(1, 0, [b"abc"]), number=3, offset=100 + len(noise))
    assert find_record(noise + record, 3, 100, 0) == len(noise)
    assert find_record(noise + record, 3, 100, len(noise) + 1) == -1
    assert find_record(noise, 3, 100, 0) == -1


def test_find_record_when_several_are_there_then_the_first_at_or_behind_the_offset() -> None:
    first = encode(Run(1, 0, [b"abc"]), number=3, offset=100)
    second = encode(Run(1, 1, [b"d"]), number=3, offset=100 + len(first))
    content = first + second
    assert [find_record(content, 3, 100, offset) for offset in (0, 1, len(first), len(first) + 1)] == [
        0,
        len(first),
        len(first),
        -1,
    ]


@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=20))
def test_split_run_when_large_then_bounded_parts_that_make_the_whole(sizes: list[int]) -> None:
    run = Run(1, 5, [bytes(size) for size in sizes])
    parts = split_run(run)
    assert [entry for part in parts for entry in part.entries] == run.entries
    expected = 5
    for part in parts:
        assert part.first == expected
        expected += len(part.entries)
        assert len(part.entries) == 1 or sum(map(len, part.entries)) <= records.BODY_BYTES_MAX


BOUND = 64 * 1024
HALF = BOUND // 2


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([BOUND], [1]),
        ([BOUND + 1], [1]),
        ([HALF, HALF], [2]),
        ([HALF, HALF, 1], [2, 1]),
        ([HALF, HALF + 1, 1], [1, 2]),
        ([0, BOUND, 0, 1], [3, 1]),
        ([BOUND + 1, 1, BOUND + 1, HALF, HALF], [1, 1, 1, 2]),
    ],
)
def test_split_run_when_entries_reach_the_bound_then_each_part_takes_what_fits(
    sizes: list[int], expected: list[int]
) -> None:
    run = Run(1, 5, [bytes(size) for size in sizes])
    parts = split_run(run)
    assert [len(part.entries) for part in parts] == expected
    assert [part.first for part in parts] == [5 + sum(expected[:number]) for number in range(len(expected))]
    assert {part.ledger_id for part in parts} == {1}
    assert [entry for part in parts for entry in part.entries] == run.entries


def test_segment_head_when_packed_then_bytes_are_as_documented() -> None:
    head = pack_segment_head(7)
    assert head[:16].hex(" ", 4) == "49505345 47010000 07000000 00000000"
    assert head[16:] == crc32c(head[:16]).to_bytes(4, "little")


def test_segment_head_when_packed_then_version_is_read_and_damage_noticed() -> None:
    head = pack_segment_head(7)
    assert len(head) == SEGMENT_HEAD == 20
    assert segment_head_version(head) == records.VERSION
    for index in range(len(head)):
        broken = bytearray(head)
        broken[index] ^= 4
        assert segment_head_version(bytes(broken)) is None
    assert segment_head_version(head[:-1]) is None


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

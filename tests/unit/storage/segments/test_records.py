from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.journals import Run
from interpulse.storage.segments import records
from interpulse.storage.segments.records import (
    RECORD_HEAD,
    SEGMENT_HEAD,
    DamagedRecord,
    check_body,
    encode_record,
    find_record,
    pack_segment_head,
    parse_entries,
    parse_record_head,
    place,
    segment_head_version,
    split_run,
)

entries = st.lists(st.binary(max_size=40), min_size=1, max_size=8)


def encode(run: Run, number: int = 1, offset: int = 20) -> bytes:
    return b"".join(encode_record(run, 0, place(number, offset)))


@given(entries, st.integers(0, 2**63 - 1), st.integers(0, 2**40), st.integers(1, 9), st.integers(20, 2**40))
def test_record_when_encoded_then_parsed_to_the_same(
    payloads: list[bytes], ledger: int, first: int, number: int, offset: int
) -> None:
    content = encode(Run(ledger, first, payloads), number, offset)
    head = parse_record_head(content, place(number, offset))
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
        check_body(parse_record_head(bytes(content), place(1, 20)), bytes(content))


def test_record_when_cut_anywhere_then_noticed() -> None:
    content = encode(Run(1, 0, [b"abc", b"d"]))
    for end in range(len(content)):
        with pytest.raises(DamagedRecord):
            check_body(parse_record_head(content[:end], place(1, 20)), content[:end])


def test_record_when_found_at_another_place_then_refused() -> None:
    content = encode(Run(1, 0, [b"abc"]), number=1, offset=20)
    for number, offset in [(2, 20), (1, 21), (1, 20 + 2**31)]:
        with pytest.raises(DamagedRecord, match="header"):
            parse_record_head(content, place(number, offset))


def test_parse_entries_when_lengths_contradict_the_record_then_refused() -> None:
    content = bytearray(encode(Run(1, 0, [b"abc"])))
    head = parse_record_head(bytes(content), place(1, 20))
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


def test_segment_head_when_packed_then_version_is_read_and_damage_noticed() -> None:
    head = pack_segment_head(7)
    assert len(head) == SEGMENT_HEAD == 20
    assert segment_head_version(head) == records.VERSION
    for index in range(len(head)):
        broken = bytearray(head)
        broken[index] ^= 4
        assert segment_head_version(bytes(broken)) is None
    assert segment_head_version(head[:-1]) is None

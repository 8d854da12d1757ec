"""Records and ledger entries of cursors in Pulsar's protobuf, against those that a real broker wrote."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import Position
from interpulse.storage.cursors import DEDUPLICATION_CURSOR, UNREADABLE, CursorRecord
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.cursor_codec import (
    PulsarCursors,
    decode_entry,
    decode_record,
    encode_entry,
    encode_record,
)

CODEC = PulsarCursors()
UNKNOWN = bytes.fromhex("fa3e03616263")  # field 1007
RANGES = ((7, 5, 6), (7, 9, 9), (7, 15, 15))
REAL_RECORDS = [
    pytest.param(
        "08ffffffffffffffffff01101f18ffffffffffffffffff01308d9498bba034",
        -1,
        CursorRecord(Position(31, -1), last_active_ms=1795420457485),
        id="new subscription",
    ),
    pytest.param(
        "08ffffffffffffffffff0110071802220c0a0408071004120408071006220c0a0408071008120408071009220c0a040807100e"
        "12040807100f309a9490bba034",
        -1,
        CursorRecord(Position(7, 2), RANGES, last_active_ms=1795420326426),
        id="closed, with ranges",
    ),
    pytest.param(
        "081e101b18ffffffffffffffffff0130af9398bba034",
        30,
        CursorRecord(Position(27, -1), last_active_ms=1795420457391),
        id="open, state in a ledger",
    ),
    pytest.param(
        "08ffffffffffffffffff01101f18ffffffffffffffffff0130ec919abba0343a090a04081f100010ec07",
        -1,
        CursorRecord(Position(31, -1), batches=((Position(31, 0), (1004,)),), last_active_ms=1795420489964),
        id="part of a batch",
    ),
    pytest.param(
        "0820101b18132a220a1e70756c7361722e7265706c6963617465642e737562736372697074696f6e100130ff9498bba034"
        "42070a027370120131",
        32,
        CursorRecord(Position(27, 19), properties={"sp": "1"}, replicate_state=True, last_active_ms=1795420457599),
        id="replicated, with a property",
    ),
    pytest.param(
        "08ffffffffffffffffff01100f18132a180a14436f6d706163746564546f7069634c6564676572101330adda92bba034",
        -1,
        CursorRecord(Position(15, 19), numbers={"CompactedTopicLedger": 19}, last_active_ms=1795420368173),
        id="compaction",
    ),
]


@pytest.mark.parametrize(("value", "ledger_id", "state"), REAL_RECORDS)
def test_record_of_a_real_broker_when_read_then_is_written_as_it_was(
    value: str, ledger_id: int, state: CursorRecord
) -> None:
    raw = bytes.fromhex(value)
    found = decode_record(raw)
    assert (found.state, found.ledger_id) == (state, ledger_id)
    assert encode_record("s", state, ledger_id=ledger_id) == raw
    assert CODEC.decode("s", raw) == state


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (
            "477800000004080110402408ff0100f30401102e1802220c0a04082e10041204082e10060e0073081204082e10090e00e00e"
            "1204082e100f30e98c9fbba034",
            CursorRecord(Position(46, 2), ((46, 5, 6), (46, 9, 9), (46, 15, 15)), last_active_ms=1795420571241),
        ),
        (
            "477800000004080110 2a2408ff010044011033180c00f005ff0130e88c9fbba0343a090a040833100010ec07",
            CursorRecord(Position(51, -1), batches=((Position(51, 0), (1004,)),), last_active_ms=1795420571240),
        ),
    ],
    ids=["ranges", "part of a batch"],
)
def test_compressed_record_of_a_real_broker_is_read(value: str, state: CursorRecord) -> None:
    assert CODEC.decode("s", bytes.fromhex(value)) == state


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        (
            "081b10ffffffffffffffffff01 3208081b10e084021000",
            CursorRecord(Position(27, -1), ((27, 5, 6), (27, 9, 9), (27, 15, 15))),
        ),
        ("081b1002 3208081b10e084021000", CursorRecord(Position(27, 2), ((27, 5, 6), (27, 9, 9), (27, 15, 15)))),
        (
            "081b101322180a14436f6d706163746564546f7069634c65646765721021",
            CursorRecord(Position(27, 19), numbers={"CompactedTopicLedger": 33}),
        ),
    ],
    ids=["first", "next", "compaction"],
)
def test_ledger_entry_of_a_real_broker_when_read_then_is_written_as_it_was(entry: str, state: CursorRecord) -> None:
    raw = bytes.fromhex(entry)
    assert decode_entry(raw, CursorRecord()) == state
    assert encode_entry("s", state) == raw


def test_entry_when_words_are_packed_then_is_read_too() -> None:
    raw = bytes.fromhex("081b1002 3208 081b 1204e0840200")
    assert decode_entry(raw, CursorRecord()).ranges == ((27, 5, 6), (27, 9, 9), (27, 15, 15))


@pytest.mark.parametrize("ranges", [((7, 0, 0),), ((7, 7, 8),), ((7, 0, 63), (8, 64, 64)), ((7, 0, 62), (7, 64, 200))])
def test_ranges_when_they_end_with_a_byte_or_a_word_then_are_read_as_written(
    ranges: tuple[tuple[int, int, int], ...],
) -> None:
    state = CursorRecord(Position(1, 0), ranges)
    assert decode_entry(encode_entry("s", state), state) == state


def test_entry_when_many_ranges_lie_far_in_a_ledger_then_costs_what_the_ledger_does() -> None:
    state = CursorRecord(Position(7, 0), tuple((7, entry, entry) for entry in range(9_000_000, 9_020_000, 2)))
    begun = time.process_time()
    entry = encode_entry("s", state)
    assert time.process_time() - begun < 2  # each range as an integer of that size: tens of seconds
    assert decode_entry(entry, state) == state


def test_entry_when_it_has_both_forms_of_ranges_then_bitmaps_count() -> None:
    message = pb.PositionInfo(ledgerId=1, entryId=2)
    message.individualDeletedMessageRanges.add(key=1, values=[1 << 5])
    lower, upper = pb.NestedPositionInfo(ledgerId=1, entryId=7), pb.NestedPositionInfo(ledgerId=1, entryId=9)
    message.individualDeletedMessages.add(lowerEndpoint=lower, upperEndpoint=upper)
    assert decode_entry(message.SerializeToString(), CursorRecord()).ranges == ((1, 5, 5),)
    del message.individualDeletedMessageRanges[:]
    assert decode_entry(message.SerializeToString(), CursorRecord()).ranges == ((1, 8, 9),)


def test_range_over_two_ledgers_counts_for_the_last_one() -> None:
    lower, upper = pb.NestedPositionInfo(ledgerId=1, entryId=7), pb.NestedPositionInfo(ledgerId=3, entryId=9)
    message = pb.ManagedCursorInfo(cursorsLedgerId=-1, markDeleteLedgerId=1, markDeleteEntryId=2)
    message.individualDeletedMessages.add(lowerEndpoint=lower, upperEndpoint=upper)
    assert CODEC.decode("s", message.SerializeToString()).ranges == ((3, 0, 9),)


def test_record_when_it_replaces_another_then_keeps_what_is_pulsars_own() -> None:
    old = pb.ManagedCursorInfo(cursorsLedgerId=30, markDeleteLedgerId=1, markDeleteEntryId=2)
    old.properties.add(name="CompactedTopicLedger", value=19)
    old.cursorProperties.add(name="#pulsar.internal.delayed.bucket1", value="4")
    old.cursorProperties.add(name="mine", value="old")
    kept = old.SerializeToString(deterministic=True) + UNKNOWN
    new = encode_record("s", CursorRecord(Position(1, 5), properties={"mine": "new"}), previous=kept)
    message = pb.ManagedCursorInfo.FromString(new)
    assert new.endswith(UNKNOWN)
    assert [(each.name, each.value) for each in message.properties] == [("CompactedTopicLedger", 19)]
    assert {each.name: each.value for each in message.cursorProperties} == {
        "#pulsar.internal.delayed.bucket1": "4",
        "mine": "new",
    }
    assert CODEC.decode("s", new).properties == {"mine": "new"}


def test_resets_when_another_broker_omits_them_then_begin_at_0_again() -> None:
    entry = encode_entry("s", CursorRecord(Position(1, 5), resets=3))
    assert decode_entry(entry, CursorRecord()).resets == 3
    by_pulsar = pb.PositionInfo(ledgerId=1, entryId=6).SerializeToString()
    assert decode_entry(by_pulsar, CursorRecord(resets=3)).resets == 0


def test_sequence_ids_when_they_are_written_then_replace_those_before() -> None:
    first = encode_record(DEDUPLICATION_CURSOR, CursorRecord(Position(1, 1), numbers={"a": 1, "b": 2}))
    second = encode_record(DEDUPLICATION_CURSOR, CursorRecord(Position(1, 2), numbers={"b": 3}), previous=first)
    assert CODEC.decode(DEDUPLICATION_CURSOR, second).numbers == {"b": 3}


@pytest.mark.parametrize("value", [b"", b"{}", b"\x47\x78\0\0\0\xff", b"\x08\x01\x10"], ids=repr)
def test_value_that_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(UNREADABLE):
        CODEC.decode("s", value)


entries = st.integers(0, 5000)
ranges = st.lists(st.tuples(st.integers(1, 4), entries), max_size=60).map(
    lambda found: tuple((ledger, 2 * entry, 2 * entry) for ledger, entry in sorted(set(found)))
)
words = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3).map(tuple)
states = st.builds(
    CursorRecord,
    st.builds(Position, st.integers(-1, 2**40), st.integers(-1, 2**40)),
    ranges,
    st.dictionaries(st.builds(Position, entries, entries), words, max_size=3).map(lambda found: tuple(found.items())),
    st.dictionaries(st.sampled_from(["a", "ä", "interpulse"]), st.text(max_size=5)),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(1, 2**45),
    st.dictionaries(st.sampled_from(["x", "y"]), st.integers(-(2**63), 2**63 - 1)),
    resets=st.integers(0, 2**63 - 1),
)


@given(states)
def test_state_when_written_and_read_again_then_is_the_same(state: CursorRecord) -> None:
    assert CODEC.decode("s", CODEC.encode("s", state)) == state
    assert decode_entry(encode_entry("s", state), state) == state

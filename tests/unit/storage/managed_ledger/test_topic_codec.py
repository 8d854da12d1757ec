"""Records of topics in Pulsar's protobuf, against those that a real broker wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import Position
from interpulse.storage.api import CompactedLedger, LedgerRecord, LogEntry, MetadataUnavailable
from interpulse.storage.logs.topic_records import TopicRecord, decode_record, with_ledgers
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.topic_codec import PulsarCompacted, PulsarTopicRecords

CODEC = PulsarTopicRecords()
LOADED_TWICE = "0a0e081f1001188c012090999abba034 0a0408252000"
UNKNOWN = bytes.fromhex("fa3e03616263")  # field 1007


def record(*ledgers: LedgerRecord, terminated: Position | None = None, **properties: str) -> TopicRecord:
    return TopicRecord(ledgers, terminated, {"properties": properties})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("", record(), id="created, never loaded"),
        pytest.param("0a0408072000", record(LedgerRecord(7, 0, 0, 0)), id="just loaded"),
        pytest.param(
            LOADED_TWICE,
            record(LedgerRecord(31, 1, 140, 1795420490896), LedgerRecord(37, 0, 0, 1795420490896)),
            id="loaded again",
        ),
        pytest.param("0a04080f2000 1a070a027470120132", record(LedgerRecord(15, 0, 0, 0), tp="2"), id="topic property"),
        pytest.param(
            "0a0508eb082000 120508eb081018",
            record(LedgerRecord(1131, 0, 0, 0), terminated=Position(1131, 24)),
            id="terminated",
        ),
        pytest.param(
            "0a0e0803100118a101209c8e98bba034 0a0408182000",
            record(LedgerRecord(3, 1, 161, 1795420456732), LedgerRecord(24, 0, 0, 1795420456732)),
            id="__change_events",
        ),
    ],
)
def test_record_of_a_real_broker_when_read_then_is_written_as_it_was(value: str, expected: TopicRecord) -> None:
    raw = bytes.fromhex(value)
    assert CODEC.decode(raw) == expected
    assert CODEC.encode(CODEC.decode(raw)) == raw


def test_record_when_the_termination_is_undone_then_has_none() -> None:
    ended = CODEC.decode(CODEC.encode(record(LedgerRecord(7, 0, 0, 0), terminated=Position(7, 4))))
    assert CODEC.decode(CODEC.encode(replace(ended, terminated=None))).terminated is None


def test_compressed_record_of_a_real_broker_is_read() -> None:
    raw = bytes.fromhex("4778000000040801100ff0000a04082e20001a070a027470120132")
    assert CODEC.decode(raw) == record(LedgerRecord(46, 0, 0, 0), tp="2")


def test_ledger_when_another_one_follows_then_has_the_time_it_was_closed() -> None:
    old = CODEC.decode(bytes.fromhex("0a04081f2000"))
    grown = with_ledgers(old, [LedgerRecord(31, 1, 140, 0), LedgerRecord(37, 0, 0, 1795420490896)])
    assert CODEC.encode(grown) == bytes.fromhex(LOADED_TWICE)


def test_fields_that_are_not_known_stay_where_they_are() -> None:
    ledger = bytes.fromhex("0a0e081f1001188c012090999abba034")
    ledger = bytes([ledger[0], ledger[1] + len(UNKNOWN)]) + ledger[2:] + UNKNOWN
    old = CODEC.decode(ledger + UNKNOWN)
    written = CODEC.encode(with_ledgers(old, [*old.ledgers, LedgerRecord(40, 0, 0, 5)]))
    assert written == ledger + bytes.fromhex("0a0408282000") + UNKNOWN


def test_properties_of_a_ledger_stay() -> None:
    message = pb.ManagedLedgerInfo(ledgerInfo=[pb.LedgerInfo(ledgerId=1, timestamp=3)])
    message.ledgerInfo[0].properties.add(key="k", value="v")
    raw = message.SerializeToString(deterministic=True)
    assert CODEC.encode(with_ledgers(CODEC.decode(raw), [LedgerRecord(1, 0, 0, 0)])) == raw


def test_counters_lie_among_the_properties_as_with_a_real_broker() -> None:
    raw = CODEC.amended(b"", topicEpoch=3, lastIndex=41, properties={"a": "b"})
    message = pb.ManagedLedgerInfo.FromString(raw)
    assert {each.key: each.value for each in message.properties} == {"a": "b", "pulsar.topic.epoch": "3", "index": "41"}
    assert CODEC.decode(raw).other == {"properties": {"a": "b"}, "topicEpoch": 3, "lastIndex": 41}
    assert CODEC.decode(CODEC.amended(raw, properties={})).other == {"properties": {}, "topicEpoch": 3, "lastIndex": 41}


def test_record_of_a_new_topic_is_empty() -> None:
    assert CODEC.amended(None) == b""


def test_offloaded_ledger_is_refused() -> None:
    message = pb.ManagedLedgerInfo(ledgerInfo=[pb.LedgerInfo(ledgerId=9)])
    message.ledgerInfo[0].offloadContext.complete = True
    with pytest.raises(MetadataUnavailable, match=r"t/n/persistent/x cannot be understood.*ledger 9 was offloaded"):
        decode_record(CODEC, "t/n/persistent/x", message.SerializeToString())


@pytest.mark.parametrize(
    "value", [b"\x47\x78", b"\x47\x78\0\0\0\x04\x08\x03\x10\x0f123", b"{}", b"\x0a\x04\x08"], ids=repr
)
def test_value_that_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(MetadataUnavailable, match="the record of log x cannot be understood"):
        decode_record(CODEC, "x", value)


def test_compacted_ledger_is_not_written() -> None:
    compacted = CompactedLedger(1, 1, 1, 1, Position(1, 1))
    with pytest.raises(ValueError, match="record of a cursor names"):
        CODEC.encode(TopicRecord(compacted=compacted))


numbers = st.integers(0, 2**40)
ledger_lists = st.lists(st.tuples(numbers, numbers, numbers), max_size=2000).map(
    lambda rows: [LedgerRecord(10 * index, entries, size, 7 + index) for index, (entries, size, _) in enumerate(rows)]
)


@given(
    ledger_lists,
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    st.none() | st.just(Position(3, 4)),
)
def test_record_when_written_and_read_again_then_is_the_same(
    ledgers: list[LedgerRecord], properties: dict[str, str], terminated: Position | None
) -> None:
    written = record(*ledgers, terminated=terminated)
    written = replace(written, other={"properties": {f"p{key}": value for key, value in properties.items()}})
    found = CODEC.decode(CODEC.encode(written))
    # Nobody writes down when the first ledger began.
    assert [row[:3] for row in found.ledgers] == [row[:3] for row in ledgers]
    assert found.ledgers[1:] == tuple(ledgers[1:])
    assert (found.terminated, found.other) == (terminated, written.other)


def test_large_record_is_compressed() -> None:
    large = record(*(LedgerRecord(each, 50_000, 1 << 30, 1795420490896) for each in range(1000)))
    raw = CODEC.encode(large)
    assert raw.startswith(b"\x47\x78")
    assert CODEC.decode(raw).ledgers[1:] == large.ledgers[1:]
    assert CODEC.decode(CODEC.amended(raw, properties={"a": "b"})).ledgers[1:] == large.ledgers[1:]


FORM = PulsarCompacted()
ENTRY = "0e0136b479a0000000160a076c61622d312d331011188b9398bba03432026b326d2d3137"


def test_entry_of_a_real_broker_when_read_then_is_written_as_it_was() -> None:
    raw = bytes.fromhex(f"0000000f 081b101118ffffffffffffffffff01 00000024 {ENTRY}")
    found = FORM.unpack(raw)
    assert found == LogEntry(Position(27, 17), bytes.fromhex(ENTRY))
    assert FORM.pack(found) == raw


def test_id_of_a_message_of_a_partition_and_a_batch_when_read_then_names_its_entry() -> None:
    raw = bytes.fromhex("0000000a 081b1011 1803 2002 3005 00000001 78")
    assert FORM.unpack(raw) == LogEntry(Position(27, 17), b"x")


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        ("0000", "it ends after 2 bytes, before a size"),
        ("00000005 081b1011", "it ends after 8 bytes and should have 9"),
        ("00000004 081b1011", "it ends after 8 bytes, before a size"),
        ("00000004 081b1011 00000002 78", "it ends after 13 bytes and should have 14"),
        ("00000004 081b1011 00000001 7879", "1 bytes follow the entry"),
        ("00000002 08ff 00000001 78", "the id of the message cannot be read"),
    ],
)
def test_entry_when_it_is_none_then_says_why(stored: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        FORM.unpack(bytes.fromhex(stored))

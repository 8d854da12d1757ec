"""Stored entries against golden bytes of real clients, and damaged ones."""

import struct

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import (
    accept_entry,
    build_entry,
    checksum_fits,
    metadata_in,
    parse_entry,
    verify_checksum,
    with_broker_metadata,
    with_checksum,
    without_broker_metadata,
)
from interpulse.wire.errors import RemoteProtocolError

GOLDEN_ENTRY = bytes.fromhex("0e0168943508000000070a01701007180168656c6c6f")


def test_entry_when_parsed_then_gives_metadata_and_payload() -> None:
    entry = parse_entry(GOLDEN_ENTRY)
    assert (entry.metadata.producer_name, entry.metadata.sequence_id) == ("p", 7)
    assert entry.metadata_bytes == GOLDEN_ENTRY[10:17]
    assert bytes(entry.payload) == b"hello"
    assert entry.broker_metadata is None
    assert (entry.is_batch, entry.message_count) == (False, 1)


def test_entry_when_the_count_is_present_then_is_a_batch_even_of_one() -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, num_messages_in_batch=1)
    assert parse_entry(build_entry(metadata.SerializeToString(), b"")).is_batch


@pytest.mark.parametrize("number", [0, -1, -(2**31)])
def test_batch_when_its_number_of_messages_is_none_then_it_counts_as_one(number: int) -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, num_messages_in_batch=number)
    assert parse_entry(build_entry(metadata.SerializeToString(), b"")).message_count == 1


def test_entry_when_a_broker_put_metadata_in_front_then_both_are_read() -> None:
    metadata = pb.BrokerEntryMetadata(broker_timestamp=5, index=9)
    broker = metadata.SerializeToString()
    data = b"\x0e\x02" + struct.pack(">I", len(broker)) + broker + GOLDEN_ENTRY
    assert with_broker_metadata(metadata, GOLDEN_ENTRY) == data
    assert without_broker_metadata(data) == without_broker_metadata(GOLDEN_ENTRY) == GOLDEN_ENTRY
    entry = parse_entry(data)
    assert entry.broker_metadata is not None
    assert entry.broker_metadata.index == 9
    assert bytes(entry.payload) == b"hello"
    assert verify_checksum(data)
    assert not verify_checksum(data[:-1] + b"x")


def test_entry_when_without_checksum_then_passes_and_can_be_sealed() -> None:
    bare = GOLDEN_ENTRY[6:]
    assert verify_checksum(bare)
    assert bytes(parse_entry(bare).payload) == b"hello"
    assert with_checksum(bare) == GOLDEN_ENTRY
    assert with_checksum(GOLDEN_ENTRY) is GOLDEN_ENTRY


def test_checksum_when_a_byte_changes_then_does_not_fit() -> None:
    assert verify_checksum(GOLDEN_ENTRY)
    for index in range(2, len(GOLDEN_ENTRY)):
        broken = bytearray(GOLDEN_ENTRY)
        broken[index] ^= 1
        assert not verify_checksum(bytes(broken))


@pytest.mark.parametrize("size", range(17))
def test_entry_when_cut_off_then_is_refused(size: int) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_entry(GOLDEN_ENTRY[:size])
    if size >= 2:
        assert not verify_checksum(GOLDEN_ENTRY[:size])


def test_entry_when_required_metadata_is_missing_then_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        parse_entry(build_entry(b"\x0a\x01p", b"hello"))


def test_accept_entry_when_checksum_fits_then_the_entry_itself() -> None:
    entry = memoryview(build_entry(b"\x0a\x01p\x10\x00\x18\x01", b"hello"))
    assert accept_entry(entry) is entry


def test_accept_entry_when_checksum_is_missing_then_added() -> None:
    entry = build_entry(b"\x0a\x01p\x10\x00\x18\x01", b"hello")
    assert accept_entry(memoryview(entry[6:])) == entry


@pytest.mark.parametrize("damaged", [b"", b"\x0e\x01\x00", b"\x0e\x01\x00\x00\x00\x00abc", b"\x0e\x02\x00\x00\xff\xff"])
def test_accept_entry_when_checksum_is_wrong_or_cut_then_none(damaged: bytes) -> None:
    assert accept_entry(memoryview(damaged)) is None


@pytest.mark.parametrize(
    "cut", [GOLDEN_ENTRY[6:], GOLDEN_ENTRY[:9], GOLDEN_ENTRY[:16], b"\x0e\x02" + GOLDEN_ENTRY, b""]
)
def test_metadata_when_the_entry_does_not_begin_with_a_checksum_or_is_cut_off_then_none(cut: bytes) -> None:
    assert metadata_in(cut) is None
    assert metadata_in(GOLDEN_ENTRY) == metadata_in(memoryview(GOLDEN_ENTRY)) == GOLDEN_ENTRY[10:17]


def test_checksum_when_the_entry_starts_differently_then_none() -> None:
    assert checksum_fits(GOLDEN_ENTRY) is True
    assert checksum_fits(GOLDEN_ENTRY[:-1]) is False
    assert [checksum_fits(each) for each in (GOLDEN_ENTRY[6:], GOLDEN_ENTRY[:5], b"")] == [None] * 3

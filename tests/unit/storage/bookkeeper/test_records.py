"""Metadata of ledgers, against those that real brokers wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb
from interpulse.storage.bookkeeper.errors import LedgerUnusable
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.bookkeeper.records import (
    Address,
    LedgerMetadata,
    LedgerState,
    Quorum,
    Segment,
    decode_metadata,
    encode_metadata,
    id_of,
    path_of,
    registered_address,
)
from tests.unit.storage.bookkeeper.recorded import RECORDED

WRITTEN = {each["path"]: bytes.fromhex(each["hex"]) for each in RECORDED["ledger_metadata"] if "/L" in each["path"]}
BOOKIES = ("127.0.0.1:3183", "127.0.0.1:3181", "127.0.0.1:3182")
OPEN = LedgerMetadata(Quorum(3, 3, 2), (Segment(0, BOOKIES),))


@pytest.mark.parametrize("path", WRITTEN)
def test_metadata_when_a_real_broker_wrote_them_then_kept_byte_for_byte(path: str) -> None:
    assert encode_metadata(decode_metadata(1, WRITTEN[path])) == WRITTEN[path]


def test_metadata_when_a_real_broker_wrote_them_then_understood() -> None:
    closed = decode_metadata(19, WRITTEN["/ledgers/00/0000/L0019"])
    assert (closed.state, closed.last_entry, closed.length, closed.quorum) == (LedgerState.CLOSED, 2, 177, (3, 3, 2))
    assert closed.digest is DigestType.CRC32
    assert closed.custom["component"] == b"compacted-ledger"
    ledger = decode_metadata(27, WRITTEN["/ledgers/00/0000/L0027"])
    assert (ledger.state, ledger.last_entry, ledger.created_ms) == (LedgerState.OPEN, -1, None)
    assert ledger.segments == (Segment(0, BOOKIES),)


def test_metadata_when_ours_then_as_computed() -> None:
    computed = bytes.fromhex(next(v for k, v in RECORDED["computed"].items() if k.startswith("ledger metadata")))
    read = decode_metadata(5, computed)
    assert read.created_ms is not None
    again = LedgerMetadata(read.quorum, read.segments, created_ms=read.created_ms, token=read.token)
    assert encode_metadata(again) == computed


def test_metadata_when_changed_then_unknown_fields_stay() -> None:
    message = pb.LedgerMetadataFormat.FromString(WRITTEN["/ledgers/00/0000/L0027"][32:])
    unknown = b"\xa2\x06\x03new"  # field 100
    body = message.SerializeToString() + unknown
    value = b"BookieMetadataFormatVersion\t3\n" + bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) + body
    changed = decode_metadata(27, value).with_ensemble(7, ("a", "b", "c")).recovering().closed_at(9, 100)
    written = encode_metadata(changed)
    assert unknown in written
    read = decode_metadata(27, written)
    assert read == changed
    assert [each.first for each in read.segments] == [0, 7]
    assert read.custom["application"] == b"pulsar"


def test_ensemble_when_changed_twice_at_one_entry_then_the_last_one_counts() -> None:
    changed = OPEN.with_ensemble(5, ("a", "b", "c")).with_ensemble(5, ("a", "b", "d"))
    assert changed.segments == (Segment(0, BOOKIES), Segment(5, ("a", "b", "d")))
    assert [changed.segment_of(entry).first for entry in (0, 4, 5, 99)] == [0, 0, 5, 5]


@pytest.mark.parametrize(
    ("quorum", "entry_id", "positions"),
    [((3, 3, 2), 0, (0, 1, 2)), ((3, 3, 2), 4, (1, 2, 0)), ((4, 2, 1), 3, (3, 0)), ((1, 1, 1), 9, (0,))],
)
def test_write_set_when_entries_are_striped_then_as_in_the_specification(
    quorum: tuple[int, int, int], entry_id: int, positions: tuple[int, ...]
) -> None:
    assert Quorum(*quorum).positions(entry_id) == positions


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "no ledger metadata"),
        (b"anything else", "no ledger metadata"),
        (b"BookieMetadataFormatVersion\t2\nquorumSize: 2", "version 2; only version 3"),
        (b"BookieMetadataFormatVersion\t3\n", "have 0 bytes and should have -1"),
        (WRITTEN["/ledgers/00/0000/L0027"][:-1], "have 181 bytes and should have 182"),
        (b"BookieMetadataFormatVersion\t3\n\x02\xff\xff", "cannot be read"),
        (encode_metadata(LedgerMetadata(Quorum(1, 2, 1), (Segment(0, ("a",)),))), "quorums 1/2/1 are impossible"),
        (encode_metadata(LedgerMetadata(Quorum(1, 1, 1), ())), "segments begin at nothing"),
        (encode_metadata(LedgerMetadata(Quorum(1, 1, 1), (Segment(3, ("a",)),))), r"segments begin at \[3\]"),
        (encode_metadata(LedgerMetadata(Quorum(2, 2, 1), (Segment(0, ("a",)),))), "a segment does not have 2 bookies"),
    ],
)
def test_metadata_when_not_readable_then_refused_with_the_reason(value: bytes, problem: str) -> None:
    with pytest.raises(LedgerUnusable, match=f"ledger 27 cannot be used: .*{problem}"):
        decode_metadata(27, value)


@given(st.binary(max_size=100))
def test_metadata_when_any_bytes_follow_the_version_then_refused_or_read(body: bytes) -> None:
    try:
        decode_metadata(1, b"BookieMetadataFormatVersion\t3\n" + bytes([len(body)]) + body)
    except LedgerUnusable:
        return


@pytest.mark.parametrize(("ledger_id", "path"), RECORDED["ledger_paths"].items())
def test_path_when_of_a_ledger_then_as_recorded(ledger_id: str, path: str) -> None:
    assert path_of(int(ledger_id)) == path
    assert id_of(path) == int(ledger_id)


@given(st.integers(0, 2**63 - 1))
def test_path_when_of_any_ledger_then_leads_back_to_it(ledger_id: int) -> None:
    assert id_of(path_of(ledger_id)) == ledger_id


@pytest.mark.parametrize("path", ["/ledgers", "/ledgers/available", "/ledgers/00/0000/L005", "/ledgers/0/0/L5", "/x"])
def test_path_when_of_no_ledger_then_none(path: str) -> None:
    assert id_of(path) is None


@pytest.mark.parametrize(
    ("bookie_id", "value", "address"),
    [
        ("b-1", "32220a06626f6f6b696510ed181a093132372e302e302e31220a626f6f6b69652d727063", ("127.0.0.1", 3181)),
        ("10.0.0.1:3181", "", ("10.0.0.1", 3181)),
        ("10.0.0.1:3181", "ffff", ("10.0.0.1", 3181)),
        ("b-1", "", None),
        ("b-1:99999", "", None),
    ],
)
def test_bookie_when_registered_then_its_address_is_known(
    bookie_id: str, value: str, address: tuple[str, int] | None
) -> None:
    assert registered_address(bookie_id, bytes.fromhex(value)) == (Address(*address) if address else None)

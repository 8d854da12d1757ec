"""Entries of compacted ledgers in Pulsar's form."""

from __future__ import annotations

import pytest

from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from interpulse.storage.managed_ledger.compacted_codec import PulsarCompacted

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

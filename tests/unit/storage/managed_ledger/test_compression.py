"""Compressed records: what is read, what is refused, and from which size on they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.storage.managed_ledger.compression import COMPRESSED_ABOVE, compressed, packed, unpacked


def test_small_record_stays_as_it_is_and_a_larger_one_is_compressed() -> None:
    small, large = b"\x0a" * COMPRESSED_ABOVE, b"\x0a" * (COMPRESSED_ABOVE + 1)
    assert packed(small) == small
    assert packed(large).startswith(b"\x47\x78\0\0\0")
    assert len(packed(large)) < 1000
    assert unpacked(packed(large)) == large


@given(st.binary(max_size=3000))
def test_record_when_compressed_then_is_read_again(record: bytes) -> None:
    assert unpacked(compressed(record)) == record


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("4778", "cut short"),
        ("4778 00000009 0801", "cut short"),
        ("4778 00000002 0801", "lacks uncompressedSize"),
        ("4778 00000004 0803100f 00", "ZSTD; only LZ4"),
        ("4778 00000004 0809100f 00", "compressed with 9"),
        ("4778 00000004 08011010 f0000a04082e20001a070a027470120132", "has 15 bytes and should have 16"),
        ("4778 00000004 0801100f ff", "damaged"),
        ("4778 00000008 080110ffffffff7f 00", "at most"),
        ("4778 00000004 08001003 0000", "has 2 bytes and should have 3"),
    ],
)
def test_value_that_cannot_be_read_is_refused_with_the_reason(value: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unpacked(bytes.fromhex(value))


def test_record_that_says_it_is_not_compressed_is_read() -> None:
    assert unpacked(bytes.fromhex("4778 00000004 08001003 0a0102")) == b"\x0a\x01\x02"

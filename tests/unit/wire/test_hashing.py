"""Hash vectors taken from real clients and brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.wire.hashing import (
    java_string_hash,
    murmur3_hash,
    murmur3_slowly,
    sticky_slot,
    sticky_slots,
    topics_hash,
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("key1", 462881061),
        ("key2", 1936800180),
        ("k1", 2110152746),
        ("k2", 1479966664),
        ("key01", 39696932),
        ("hello", 0x248BFA47),
        ("test", 0x3A6BD213),
    ],
)
def test_murmur3_of_known_keys(key: str, expected: int) -> None:
    assert murmur3_hash(key.encode()) == expected
    assert murmur3_slowly(key.encode()) & 0x7FFFFFFF == expected


@given(st.binary(max_size=40))
def test_murmur3_when_the_library_is_missing_then_is_the_same(key: bytes) -> None:
    assert murmur3_slowly(key) & 0x7FFFFFFF == murmur3_hash(key)


@pytest.mark.parametrize(("key", "slot"), [("key1", 293), ("key2", 14772), ("", 1), ("order-42", 41358)])
def test_sticky_slot_of_known_keys(key: str, slot: int) -> None:
    assert sticky_slot(key.encode()) == slot
    assert sticky_slots([key.encode(), b"key1"]) == [slot, 293]


@pytest.mark.parametrize(
    ("key", "expected"),
    [("key1", 3288498), ("test", 3556498), ("keykeykey2", 42978643), ("keykeykeykeykey1", 434058482), ("", 0)],
)
def test_java_string_hash_of_known_keys(key: str, expected: int) -> None:
    assert java_string_hash(key) == expected


def test_java_string_hash_when_a_letter_needs_two_units_then_counts_both() -> None:
    assert java_string_hash("\U0001f600") == (0xD83D * 31 + 0xDE00) & 0x7FFFFFFF


def test_topics_hash_of_known_lists() -> None:
    first, second = "persistent://public/default/a", "persistent://public/default/b"
    assert topics_hash([]) == "00000000"
    assert topics_hash([first]) == "e4a876e3"
    assert topics_hash([second, first]) == "c7559e98"

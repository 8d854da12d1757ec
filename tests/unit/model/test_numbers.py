"""Integers that a Java client can read."""

from typing import Any

import pytest

from interpulse.model.numbers import LONG_MAX, is_integer, read_integer


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (-(2**31), True), (2**31 - 1, True), (2**31, False), (True, False), (1.0, False), ("1", False)],
)
def test_number_when_it_fits_into_32_bits_then_is_one(value: Any, expected: bool) -> None:
    assert is_integer(value) is expected


@pytest.mark.parametrize(("value", "expected"), [(-(2**63), True), (2**63 - 1, True), (2**63, False), (False, False)])
def test_number_when_more_bits_are_allowed_then_fits_into_these(value: int, expected: bool) -> None:
    assert is_integer(value, most=LONG_MAX) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        ("7", 7),
        ("-7", -7),
        (7.0, 7),
        (7.5, None),
        ("7.0", None),
        ("", None),
        (" 7 ", 7),
        ("+7", 7),
        ("+ 7", None),
        ("\u0663", None),
    ],
)
def test_number_when_a_value_stands_for_it_then_is_read(value: Any, expected: int | None) -> None:
    assert read_integer(value) == expected


@pytest.mark.parametrize("value", [True, None, [7], "2147483648", 2**31])
def test_number_when_a_value_is_of_another_type_or_size_then_is_not_read(value: Any) -> None:
    assert read_integer(value) is None

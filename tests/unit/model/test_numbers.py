"""Whole numbers that a Java client can read."""

from typing import Any

import pytest

from interpulse.model.numbers import LONG_MAX, is_whole_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, True), (-(2**31), True), (2**31 - 1, True), (2**31, False), (True, False), (1.0, False), ("1", False)],
)
def test_number_when_it_fits_into_32_bits_then_is_one(value: Any, expected: bool) -> None:
    assert is_whole_number(value) is expected


@pytest.mark.parametrize(("value", "expected"), [(-(2**63), True), (2**63 - 1, True), (2**63, False), (False, False)])
def test_number_when_more_bits_are_allowed_then_fits_into_these(value: int, expected: bool) -> None:
    assert is_whole_number(value, most=LONG_MAX) is expected

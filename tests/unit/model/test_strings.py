"""Several strings in JSON."""

from typing import Any

import pytest

from interpulse.model.strings import are_strings, is_string_map


@pytest.mark.parametrize(
    ("value", "expected"), [([], True), (["a", ""], True), (["a", 1], False), ("ab", False), ({"a": "b"}, False)]
)
def test_array_of_strings(value: Any, expected: bool) -> None:
    assert are_strings(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"), [({}, True), ({"a": "b"}, True), ({"a": 1}, False), ({"a": None}, False), (["a"], False)]
)
def test_object_of_strings(value: Any, expected: bool) -> None:
    assert is_string_map(value) is expected

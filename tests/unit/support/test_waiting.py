"""Waiting of tests ends with the value, or fails with the last one."""

from __future__ import annotations

import pytest

from tests.support.waiting import until


def test_value_when_it_becomes_true_then_is_returned() -> None:
    values = iter([0, 0, 3])
    assert until(lambda: next(values)) == 3


def test_value_when_it_stays_false_then_the_last_one_is_told() -> None:
    with pytest.raises(AssertionError, match=r"still \[\] after 0.01 s"):
        until(list, seconds=0.01)

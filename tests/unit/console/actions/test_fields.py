"""How values of fields are read."""

from __future__ import annotations

import pytest

from interpulse.console.actions.fields import partitions_of
from interpulse.model.errors import InvalidRequest


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("0004", 4), ("2147483647", 2**31 - 1)])
def test_partitions_when_they_are_a_count_then_are_read(text: str, count: int) -> None:
    assert partitions_of({"partitions": text}) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", "1.0", "\u0663", "2147483648", "1" * 5000])
def test_partitions_when_they_are_none_then_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="partitions must be an integer from 1 to 2147483647"):
        partitions_of({"partitions": text})

"""Debts of topic-partitions that have a rate."""

from __future__ import annotations

import pytest

from interpulse.spark.reading.throttle import Rate, Throttle


@pytest.mark.parametrize(
    ("rate", "entries", "size", "debt_s"),
    [
        pytest.param(Rate(0, 1_000), 1, 1_000, 0.0, id="all permits of a period are there at first"),
        pytest.param(Rate(0, 1_000), 1, 3_000, 2.0, id="the size decides"),
        pytest.param(Rate(10, 1_000_000), 40, 3_000, 3.0, id="the number decides"),
        pytest.param(Rate(10, 1_000), 40, 9_000, 8.0, id="the larger debt decides"),
        pytest.param(Rate(0, 1_000, period_s=60), 1, 3_000, 120.0, id="in periods"),
        pytest.param(Rate(0, 0), 1_000_000, 1 << 40, 0.0, id="no limit"),
    ],
)
def test_debt_is_the_time_that_it_takes_to_work_it_off(rate: Rate, entries: int, size: int, debt_s: float) -> None:
    throttle = Throttle()
    throttle.set_rates({"a": rate}, 100.0)
    throttle.charge("a", entries, size)
    assert throttle.debt_s("a", 100.0) == pytest.approx(debt_s)
    assert throttle.debt_s("a", 100.0 + debt_s / 2) == pytest.approx(debt_s / 2)
    assert throttle.debt_s("a", 100.0 + debt_s) == pytest.approx(0.0)

"""The table must not flatter: the best of each broker, and a ratio above 1 only where ours is better."""

import pytest

from benchmarks.figures import Sample
from benchmarks.report import OURS, REAL, Results, table


@pytest.fixture
def results() -> Results:
    results = Results([OURS, REAL])
    results.add(OURS, {"raw_publish": Sample(50_000, 20.0), "start": Sample(0.5)})
    results.add(OURS, {"raw_publish": Sample(100_000, 12.0), "start": Sample(0.6)})
    results.add(REAL, {"raw_publish": Sample(200_000, 8.0), "start": Sample(5.0)})
    return results


def test_table_when_higher_is_better_then_takes_the_highest_and_says_how_much_is_missing(results: Results) -> None:
    assert "| messages/s | 100,000 (12.00) | 200,000 (8.00) | 0.50x (0.67x) |" in table(results)


def test_table_when_lower_is_better_then_takes_the_lowest(results: Results) -> None:
    assert "| s | 0.5 | 5 | 10.00x |" in table(results)


def test_table_when_nothing_was_measured_then_has_no_line_for_it(results: Results) -> None:
    assert "admin GET" not in table(results)

"""The table must not flatter: the best of each broker, and a ratio above 1 only where ours is better."""

import json
from pathlib import Path

import pytest

from benchmarks.figures import Sample
from benchmarks.report import LIMIT, OURS, REAL, RELEASE, Results, read_kept, table, write


@pytest.fixture
def results() -> Results:
    results = Results([OURS, REAL])
    results.add(OURS, {"raw_publish": Sample(50_000, 20.0), "start": Sample(0.5)})
    results.add(OURS, {"raw_publish": Sample(100_000, 12.0), "start": Sample(0.6)})
    results.add(REAL, {"raw_publish": Sample(200_000, 8.0), "start": Sample(5.0)})
    return results


def test_table_when_higher_is_better_then_takes_the_highest_and_says_how_much_is_missing(results: Results) -> None:
    assert "| messages/s | 100,000 (12.00) | 200,000 (8.00) | 0.50x (0.67x) | >= 2.5x, CPU >= 4x: missed |" in table(
        results
    )


def test_table_when_lower_is_better_then_takes_the_lowest(results: Results) -> None:
    assert "| s | 0.5 | 5 | 10.00x | - |" in table(results)


def test_table_when_nothing_was_measured_then_has_no_line_for_it(results: Results) -> None:
    assert "admin GET" not in table(results)


def test_table_when_the_release_ran_in_turns_then_marks_what_became_worse(results: Results) -> None:
    results.contenders = [OURS, RELEASE]
    for value in (200_000, 190_000):
        results.add(RELEASE, {"raw_publish": Sample(value, 12.0), "start": Sample(0.6)})
    # Ours: 50,000 and 100,000. The rounds differ twofold, so half of the release's rate may be noise.
    assert results.regressions() == []
    results.samples[OURS]["raw_publish"] = [Sample(95_000, 12.0), Sample(100_000, 12.0)]
    assert results.regressions() == ["raw_publish"]
    assert "| 0.50x (1.00x) WORSE |" in table(results)


def test_table_when_more_processor_time_is_used_then_that_is_worse_too(results: Results) -> None:
    results.samples = {
        OURS: {"raw_drain": [Sample(100, 3.0), Sample(100, 3.1)]},
        RELEASE: {"raw_drain": [Sample(100, 2.0), Sample(100, 2.1)]},
    }
    assert results.regressions() == ["raw_drain"]


def test_table_when_the_limit_was_measured_then_says_how_much_of_it_ours_reaches(results: Results) -> None:
    results.contenders = [OURS, LIMIT]
    results.add(LIMIT, {"raw_publish": Sample(400_000, 0.8)})
    lines = table(results).splitlines()
    assert lines[0].endswith("| aim | of the limit |")
    assert any(line.startswith("| raw durable publish") and line.endswith("| 25% |") for line in lines)


def test_kept_run_when_it_is_of_this_machine_then_is_read_back(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.report.RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.report.machine_name", lambda: "a machine")
    text = write(results, {"interpulse": "0.1.0"}, "make bench").read_text()
    assert "| raw durable publish" in text
    assert read_kept("a machine", tmp_path)["start"] == [Sample(0.5), Sample(0.6)]
    assert read_kept("another machine", tmp_path) == {}
    (kept,) = tmp_path.glob("*.json")
    assert json.loads(kept.read_text())["samples"][REAL]["start"] == [[5.0, None]]

"""Histograms of latencies, and their files."""

from dataclasses import asdict
from pathlib import Path

import click
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from interpulse.cli.perf.latencies import HistogramFile, Latencies


def test_latencies_when_taken_then_the_interval_begins_anew_and_the_whole_grows() -> None:
    latencies = Latencies(value_max=10_000_000, units_per_ms=1000)
    for value in (1000, 2000, 99_000):
        latencies.record(value)
    first = latencies.take(0, 1)
    assert (first.count, round(first.p50, 1), round(first.max)) == (3, 2.0, 99)
    latencies.record(-5)
    latencies.record(10**12)
    second = latencies.take(1, 2)
    assert (second.count, second.p50, round(second.max / 1e4, 2)) == (2, 0.0, 1.0)
    assert latencies.whole().count == 5


def test_latencies_when_there_are_none_then_are_zero() -> None:
    assert asdict(Latencies(value_max=1000, units_per_ms=1).take(0, 1)) == dict.fromkeys(
        ["count", "mean", "p50", "p95", "p99", "p999", "p9999", "p99999", "max"], 0
    )


def test_file_when_named_hgrm_then_has_the_distribution_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.hgrm"
    latencies = Latencies(value_max=1_000_000, units_per_ms=1000, file=HistogramFile(str(path)))
    latencies.record(5000)
    latencies.take(0, 1)
    latencies.close()
    lines = path.read_text().splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert any(line.startswith("#[Max") and "5.0" in line for line in lines)


def test_file_when_named_otherwise_then_has_a_histogram_for_each_interval(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    latencies = Latencies(value_max=1_000_000, units_per_ms=1000, file=HistogramFile(str(path)))
    for start in (10, 20):
        latencies.record(start * 1000)
        latencies.take(start, start + 10)
    latencies.close()
    reader = HistogramLogReader(str(path), HdrHistogram(1, 1_000_000, 3))
    intervals = [reader.get_next_interval_histogram() for _ in range(3)]
    assert [histogram and histogram.get_total_count() for histogram in intervals] == [1, 1, None]
    reader.close()


def test_file_when_it_cannot_be_written_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="cannot be written: No such file or directory"):
        HistogramFile(str(tmp_path / "missing" / "x.hgrm"))

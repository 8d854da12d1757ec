"""The lines of perf, in the words that scripts look for in those of pulsar-perf."""

from interpulse.cli.perf.latencies import Percentiles
from interpulse.cli.perf.measured_run import PRODUCED, READ, RECEIVED, Amounts, interval_line, summary_lines

LATENCY = Percentiles(count=5, mean=1.5, p50=1.0, p95=2.0, p99=3.0, p999=4.0, p9999=5.0, p99999=6.0, max=7.0)
AMOUNTS = Amounts(seconds=10, messages=1000, bytes=1310720, failures=5)


def test_line_when_producing_then_is_that_of_pulsar_perf() -> None:
    assert interval_line(PRODUCED, 12345, AMOUNTS, LATENCY) == (
        "Throughput produced:   12345 msg ---    100.0 msg/s ---      1.0 Mbit/s --- failure      0.5 msg/s --- "
        "Latency: mean:   1.500 ms - med:   1.000 - 95pct:   2.000 - 99pct:   3.000 - 99.9pct:   4.000 - "
        "99.99pct:   5.000 - Max:   7.000"
    )


def test_line_when_receiving_then_is_that_of_pulsar_perf() -> None:
    assert interval_line(RECEIVED, 12345, AMOUNTS, LATENCY) == (
        "Throughput received:   12345 msg --- 100.000 msg/s --- 1.000 Mbit/s --- Latency: mean: 1.500 ms - med: 1 - "
        "95pct: 2 - 99pct: 3 - 99.9pct: 4 - 99.99pct: 5 - Max: 7"
    )
    assert interval_line(READ, 1, AMOUNTS, LATENCY).startswith("Read throughput:       1 msg --- 100.000 msg/s")


def test_summary_when_printed_then_is_that_of_pulsar_perf() -> None:
    assert summary_lines(RECEIVED, AMOUNTS, LATENCY) == [
        "Aggregated throughput stats --- 1000 records received --- 100.000 msg/s --- 1.000 Mbit/s",
        "Aggregated latency stats --- Latency: mean: 1.500 ms - med: 1 - 95pct: 2 - 99pct: 3 - 99.9pct: 4 - "
        "99.99pct: 5 - 99.999pct: 6 - Max: 7",
    ]
    assert summary_lines(PRODUCED, AMOUNTS, LATENCY)[0].endswith(
        "1000 records sent --- 100.000 msg/s --- 1.000 Mbit/s --- 5 failed"
    )


def test_amounts_when_no_time_passed_then_have_no_rate() -> None:
    assert (Amounts(0, 1, 1, 1).rate, Amounts(0, 1, 1, 1).mbits, Amounts(0, 1, 1, 1).failure_rate) == (0, 0, 0)

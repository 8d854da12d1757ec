"""Output lines of a run, and the load of its generator."""

from interpulse.cli.perf.latencies import Percentiles
from interpulse.cli.perf.measured_run import (
    PRODUCED,
    READ,
    RECEIVED,
    Amounts,
    Generator,
    GeneratorFigures,
    interval_line,
    summary_lines,
)

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


def test_generator_when_its_core_is_used_up_then_is_the_limit() -> None:
    times, cpu = iter([0.0, 10.0]), iter([0.0, 9.9])
    generator = Generator(clock=lambda: next(times), cpu_clock=lambda: next(cpu))
    assert generator.take().limits() == ["its processor is used up (99% of a core)"]


def test_generator_when_late_by_itself_then_is_the_limit() -> None:
    generator = Generator()
    generator.sends(0.2)
    assert "it was 200 ms behind its schedule" in generator.take().limits()
    assert generator.take().late_max_s == 0


def test_generator_that_waits_for_answers_is_not_to_blame() -> None:
    generator = Generator()
    generator.waits()
    generator.sends(5.0)
    taken = generator.take()
    assert (taken.late_max_s, taken.held_back) == (0, True)
    generator.sends(3.0)
    generator.sends(0.001)  # caught up
    generator.sends(0.15)
    assert generator.take().late_max_s == 0.15


def test_generator_when_its_loop_lags_then_is_the_limit() -> None:
    assert GeneratorFigures(0.1, 0.3, 0, False).limits() == ["its event loop was 300 ms late"]
    assert GeneratorFigures(0.1, 0.01, 0.01, True).limits() == []

"""Latencies in HDR histograms of a fixed size: one for the present interval, one for the whole run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.model.extras import pip_install

__all__ = ["HistogramFile", "Latencies", "Percentiles"]

_DIGITS: Final = 3
"""Values are kept to a thousandth: some 200 KB for each histogram, whatever comes."""

_SHOWN: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99, "p99999": 99.999}


@dataclass(frozen=True, slots=True)
class Percentiles:
    """What is shown of a histogram, in ms."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    p9999: float
    p99999: float
    max: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


class Latencies:
    """Takes values of whole units up to ``value_max``; above it they count as that."""

    def __init__(self, *, value_max: int, units_per_ms: int) -> None:
        """Raises CommandFailed if the library is not installed."""
        self._value_max = value_max
        self._units_per_ms = units_per_ms
        self._interval = _histogram(value_max)
        self._whole = _histogram(value_max)

    def record(self, value: int) -> None:
        """Below 0 counts as 0."""
        self._interval.record_value(min(max(value, 0), self._value_max))

    def take(self, file: HistogramFile | None, start_s: float, end_s: float) -> Percentiles:
        """What came since the last call; it goes over to the whole, and to the file."""
        taken = self._percentiles(self._interval)
        if file is not None:
            file.add(self._interval, start_s, end_s, self._units_per_ms)
        self._whole.add(self._interval)
        self._interval.reset()
        return taken

    def whole(self) -> Percentiles:
        """What was taken so far."""
        return self._percentiles(self._whole)

    def close(self, file: HistogramFile | None) -> None:
        if file is not None:
            file.close(self._whole, self._units_per_ms)

    def _percentiles(self, histogram: Any) -> Percentiles:
        scale = self._units_per_ms
        if not histogram.get_total_count():
            return Percentiles(0, *[0.0] * 8)
        values = histogram.get_percentile_to_value_dict(list(_SHOWN.values()))
        shown = {name: values[percentile] / scale for name, percentile in _SHOWN.items()}
        mean, most = histogram.get_mean_value() / scale, histogram.get_max_value() / scale
        return Percentiles(count=histogram.get_total_count(), mean=mean, max=most, **shown)


class HistogramFile:
    """Where histograms are written to: for a name that ends in ``.hgrm`` the distribution of the whole run, which
    HdrHistogram's plotter shows; else a log of the intervals, as pulsar-perf writes it."""

    def __init__(self, path: str) -> None:
        """Replaces the file. Raises click.UsageError if it cannot be written."""
        self._as_distribution = path.endswith(".hgrm")
        try:
            self._file: IO[Any] = Path(path).open("wb" if self._as_distribution else "w")  # noqa: SIM115  # closed by close
        except OSError as error:
            raise click.UsageError(f"{path} cannot be written: {error.strerror}") from error
        self._log = None if self._as_distribution else _log_writer(self._file)

    def add(self, histogram: Any, start_s: float, end_s: float, units_per_ms: int) -> None:
        if self._log is not None:
            self._log.output_interval_histogram(histogram, start_s, end_s, units_per_ms)
            self._file.flush()

    def close(self, whole: Any, units_per_ms: int) -> None:
        if self._as_distribution:
            whole.output_percentile_distribution(self._file, units_per_ms)
        self._file.close()


def _histogram(value_max: int) -> Any:
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError as error:
        raise CommandFailed(f"perf needs hdrhistogram: {pip_install('perf')}", UNUSABLE) from error
    return HdrHistogram(1, value_max, _DIGITS)


def _log_writer(file: IO[str]) -> Any:
    from hdrh.log import HistogramLogWriter

    writer = HistogramLogWriter(file)
    writer.output_log_format_version()
    writer.output_legend()
    return writer

"""Latencies in HDR histograms of fixed size: one for the current interval, one for the whole run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import click

from interpulse.cli.support.running import UNUSABLE, CommandFailed
from interpulse.model.extras import pip_install

_DIGITS: Final = 3
"""Significant digits: values are exact to a thousandth, and a histogram takes about 200 KB."""

_SHOWN: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99, "p99999": 99.999}


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of a histogram in ms, as shown."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    p9999: float
    p99999: float
    max: float


class Latencies:
    """Recorder of latencies in whole units. Values above ``value_max`` count as ``value_max``."""

    def __init__(self, *, value_max: int, units_per_ms: int, file: HistogramFile | None = None) -> None:
        """Raise CommandFailed if hdrhistogram is not installed. The histograms also go to ``file``."""
        self._value_max = value_max
        self._units_per_ms = units_per_ms
        self._file = file
        self._interval = _histogram(value_max)
        self._whole = _histogram(value_max)

    def record(self, value: int) -> None:
        """Record a latency. Negative values count as 0."""
        self._interval.record_value(min(max(value, 0), self._value_max))

    def take(self, start_s: float, end_s: float) -> Percentiles:
        """Return the percentiles since the last call, and add the interval to the whole run."""
        taken = self._percentiles(self._interval)
        if self._file is not None:
            self._file.add(self._interval, start_s, end_s, self._units_per_ms)
        self._whole.add(self._interval)
        self._interval.reset()
        return taken

    def whole(self) -> Percentiles:
        """Return the percentiles of the whole run so far."""
        return self._percentiles(self._whole)

    def close(self) -> None:
        if self._file is not None:
            self._file.close(self._whole, self._units_per_ms)

    def _percentiles(self, histogram: Any) -> Percentiles:
        scale = self._units_per_ms
        if not histogram.get_total_count():
            return Percentiles(0, *[0.0] * 8)
        values = histogram.get_percentile_to_value_dict(list(_SHOWN.values()))
        shown = {name: values[percentile] / scale for name, percentile in _SHOWN.items()}
        mean, most = histogram.get_mean_value() / scale, histogram.get_max_value() / scale
        return Percentiles(count=histogram.get_total_count(), mean=mean, max=most, **shown)


class HistogramFile:
    """Output file of histograms.

    A name ending in ``.hgrm`` gets the distribution of the whole run, for HdrHistogram's plotter. Any other file gets a
    log of the intervals in the format of pulsar-perf.
    """

    def __init__(self, path: str) -> None:
        """Open and truncate the file. Raise click.UsageError if it cannot be written."""
        self._as_distribution = path.endswith(".hgrm")
        try:
            self._file: IO[Any] = Path(path).open("wb" if self._as_distribution else "w")  # noqa: SIM115  # closed by close
        except OSError as error:
            raise click.UsageError(f"{path} cannot be written: {error.strerror}") from error
        self._log: Any = None
        if not self._as_distribution:
            from hdrh.log import HistogramLogWriter

            self._log = HistogramLogWriter(self._file)
            self._log.output_log_format_version()
            self._log.output_legend()

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

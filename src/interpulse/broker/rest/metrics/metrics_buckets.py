"""Histograms as Pulsar has them: a family for each bucket, of one period, not adding up."""

from __future__ import annotations

from typing import Final

from interpulse.serving.exposition import Exposition
from interpulse.storage.meters import Histogram, WrittenEntries

_WAITS: Final = ("le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000")
_SIZES: Final = ("le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb")
_OVERFLOWS: Final = ("overflow", "le_overflow")
"""The bucket above all bounds. Pulsar has one name for waits and the other for sizes; dashboards ask for both."""


class Buckets:
    """The families of one kind of histogram. As in Pulsar, waits are in ms and their sum in microseconds."""

    def __init__(self, page: Exposition, name: str, text: str, bounds: tuple[str, ...], *, sum_factor: int = 1) -> None:
        names = [f"{name}_{bound}" for bound in (*bounds, *_OVERFLOWS, "count", "sum")]
        self._families = [(name, page.family(name, "gauge", text)) for name in names]
        self._sum_factor = sum_factor

    def add(self, labels: str, histogram: Histogram) -> None:
        """Add one histogram with these labels."""
        counts = histogram.counts
        values = (*counts, counts[-1], histogram.count, round(histogram.sum * self._sum_factor))
        for (name, lines), value in zip(self._families, values, strict=True):
            lines.append(f"{name}{{{labels}}} {value}\n")


def wait_buckets(page: Exposition, name: str, text: str) -> Buckets:
    """Return buckets for waits in milliseconds, with the bounds of `interpulse.storage.meters.WAIT_MS`."""
    return Buckets(page, name, text, _WAITS, sum_factor=1000)


class WriteFamilies:
    """Families of durable entries, of topics or of namespaces."""

    def __init__(self, page: Exposition) -> None:
        text = "Entries made durable in the last full minute, by their wait in milliseconds; the sum in microseconds."
        self._waits = wait_buckets(page, "pulsar_storage_write_latency", text)
        text = "Entries made durable in the last full minute, by their size in bytes."
        self._sizes = Buckets(page, "pulsar_entry_size", text, _SIZES)

    def add(self, labels: str, written: WrittenEntries) -> None:
        """Add the entries with these labels."""
        self._waits.add(labels, written.waits_ms)
        self._sizes.add(labels, written.sizes)

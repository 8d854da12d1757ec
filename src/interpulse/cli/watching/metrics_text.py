"""Samples of Prometheus' text format. Pure.

Why by hand: docs/decisions/0026-metrics-pages-read-by-hand.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?[0-9]+)?")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES: Final = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of the text format."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """Samples by the names of their metrics."""

    samples: Mapping[str, list[Sample]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, names: Iterable[str]) -> Metrics:
        """Read the samples of the named metrics and skip all other lines."""
        wanted = {name: list[Sample]() for name in names}
        for line in text.splitlines():
            name = line.partition("{")[0].partition(" ")[0]
            if name in wanted and (match := _LINE.fullmatch(line.strip())):
                wanted[name].append(Sample(_labels(match.group(2) or ""), _number(match.group(3))))
        return cls({name: samples for name, samples in wanted.items() if samples})

    def total(self, name: str) -> float | None:
        """Return the sum of all samples, or None if there are none."""
        samples = self.samples.get(name)
        return None if samples is None else sum(sample.value for sample in samples)

    def quantile_bound(self, name: str, quantile: float) -> float | None:
        """Return the upper bound of the histogram bucket that contains the quantile."""
        buckets: dict[float, float] = {}
        for sample in self.samples.get(f"{name}_bucket", ()):
            bound = _number(sample.labels.get("le", ""))
            buckets[bound] = buckets.get(bound, 0) + sample.value
        total = max(buckets.values(), default=0)
        return next((bound for bound in sorted(buckets) if total and buckets[bound] >= quantile * total), None)


def _labels(text: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\.", lambda escape: _ESCAPES.get(escape.group(), escape.group()), value)
        for name, value in _LABEL.findall(text)
    }


def _number(text: str) -> float:
    try:
        return float(text.replace("Inf", "inf"))
    except ValueError:
        return float("nan")

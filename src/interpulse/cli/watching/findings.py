"""Conclusions of ``check`` from a cluster's statistics and metrics, one finding for each. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

_GB: Final = 1e9
_DAY_S: Final = 86_400

_FREE, _SIZE, _FULL = (f"interpulse_data_directory_{name}" for name in ("free_bytes", "size_bytes", "full"))
_FAILED: Final = "interpulse_log_failed_groups_total"
_LAG: Final = "interpulse_event_loop_lag_seconds"
_STATES: Final = "interpulse_replication_topics"
_REAL_DISCONNECTED: Final = "pulsar_replication_disconnected_count"
_REAL_CONNECTED: Final = "pulsar_replication_connected_count"
_AGE: Final = "pulsar_storage_backlog_age_seconds"

METRICS: Final = (
    _FREE, _SIZE, _FULL, _FAILED, f"{_LAG}_bucket", _STATES, _REAL_DISCONNECTED, _REAL_CONNECTED, _AGE,
)  # fmt: skip
"""Metrics that the findings need."""


class Level(IntEnum):
    """Severity of a finding."""

    OK = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the output."""

    name: str
    level: Level
    sentence: str
    reported: bool = True
    """False if the broker does not report this."""

    @property
    def word(self) -> str:
        return self.level.name.lower() if self.reported else "untold"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "level": self.word, "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds from which a value is worth a warning."""

    backlog_age_s: float = 3600
    free_share: float = 0.1
    loop_lag_s: float = 0.1
    runs_out_s: float = 14 * _DAY_S


def unreported(name: str, what: str) -> Finding:
    """Return the finding for a value that the broker does not report."""
    return Finding(name, Level.OK, f"this broker does not report {what}", reported=False)


def disk(metrics: Metrics, limits: Limits) -> Finding:
    """Judge the free space on the broker's disk and the last failed write."""
    free, size = metrics.total(_FREE), metrics.total(_SIZE)
    if free is None or not size:
        return unreported("disk", "how much room its disk has")
    text = f"{free / _GB:.1f} GB of {size / _GB:.1f} GB are free"
    if metrics.total(_FULL):
        return Finding("disk", Level.CRITICAL, f"{text}: producers are refused until there is more room")
    if metrics.total(_FAILED):
        return Finding("disk", Level.CRITICAL, "a write has failed: look at the disk, and at the log of the broker")
    if free < limits.free_share * size:
        return Finding("disk", Level.WARNING, f"{text}, less than {limits.free_share:.0%}")
    return Finding("disk", Level.OK, text)


def loop_lag(metrics: Metrics, limits: Limits) -> Finding:
    """Judge the delay of the broker's event loop."""
    bound = metrics.quantile_bound(_LAG, 0.99)
    if bound is None:
        return unreported("event loop", "how late its event loop is")
    text = f"99 of 100 times it was at most {bound * 1000:g} ms late since the broker started"
    if bound > limits.loop_lag_s:
        return Finding("event loop", Level.WARNING, f"{text}: the machine has too little of something")
    return Finding("event loop", Level.OK, text)


def backlog_age(metrics: Metrics, limits: Limits) -> Finding:
    """Judge the age of the oldest unacknowledged messages."""
    samples = metrics.samples.get(_AGE, ())
    aged = [(sample.value, sample.labels.get("topic", "")) for sample in samples if sample.value >= 0]
    if not aged:
        return unreported("backlog age", "how old unconsumed messages are (topics with a backlog quota have an age)")
    oldest, topic = max(aged)
    if oldest > limits.backlog_age_s:
        late = sum(1 for seconds, _ in aged if seconds > limits.backlog_age_s)
        sentence = f"{late} topics have messages that wait for more than {_duration(limits.backlog_age_s)}"
        return Finding("backlog age", Level.WARNING, f"{sentence}; the oldest for {_duration(oldest)}, in {topic}")
    return Finding("backlog age", Level.OK, f"the oldest message that waits is {_duration(oldest)} old")


def replication(metrics: Metrics) -> Finding:
    """Judge topics that are not replicated, by our status or by the replicators of Apache Pulsar."""
    states = metrics.samples.get(_STATES)
    if states is not None:
        counts: defaultdict[str, float] = defaultdict(float)
        for sample in states:
            counts[sample.labels.get("state", "")] += sample.value
        stuck = [f"{counts[state]:g} topics are {state}" for state in ("HELD", "DISCONNECTED") if counts.get(state)]
        if stuck:
            text = " and ".join(stuck)
            remedy = "interpulse-admin namespaces replication-status says why"
            return Finding("replication", Level.CRITICAL, f"{text}: {remedy}")
        return Finding("replication", Level.OK, f"{sum(counts.values()):g} topics are replicated, none is held")
    disconnected, connected = metrics.total(_REAL_DISCONNECTED), metrics.total(_REAL_CONNECTED)
    if disconnected is None and connected is None:
        return Finding("replication", Level.OK, "nothing is replicated from here")
    if disconnected:
        return Finding("replication", Level.CRITICAL, f"{disconnected:g} replicators are not connected")
    return Finding("replication", Level.OK, f"{connected or 0:g} replicators are connected")


def running_out(name: str, end: float | None, now: float, limits: Limits) -> Finding:
    """Judge the expiry of a token or certificate."""
    if end is None:
        return Finding(name, Level.OK, "it has no end")
    left = end - now
    if left <= 0:
        return Finding(name, Level.CRITICAL, f"it ended {_duration(-left)} ago: renew it")
    if left < limits.runs_out_s:
        return Finding(name, Level.WARNING, f"it ends in {_duration(left)}: renew it")
    return Finding(name, Level.OK, f"it ends in {_duration(left)}")


def worst(findings: list[Finding]) -> Level:
    """Return the worst level of the findings, which is the exit code."""
    return max((finding.level for finding in findings), default=Level.OK)


def _duration(seconds: float) -> str:
    for unit, name in ((_DAY_S, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


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
    """Samples of Prometheus' text format by the names of their metrics.

    Why they are read by hand: docs/decisions/0026-metrics-pages-read-by-hand.md.
    """

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

"""Rows of the replication page: one topic and one remote cluster, with the remedy of a problem. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

REPLICATING: Final = "REPLICATING"
_URGENCY: Final = {"HELD": 0, "DISCONNECTED": 1, "PROVISIONING": 2, REPLICATING: 3, "DISABLED": 4, "NOT_APPLICABLE": 5}
_EXPANSION: Final = re.compile(r"\(topics update-partitioned-topic (.+) -p (\d{1,9}), here\)")
_PHASES: Final = {
    "latestOffset": "look for new entries",
    "getBatch": "take the range",
    "queryPlanning": "plan",
    "addBatch": "copy",
    "walCommit": "record the range",
    "commitOffsets": "record the end",
    "commitBatch": "record the end",
}
"""Spark's words, and ours."""
_WHOLE: Final = "triggerExecution"


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The estimated end of the backlog. If ``seconds`` is None, ``text`` is the reason."""

    seconds: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action of the console that is the remedy."""

    action: str
    label: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One topic, or partition, on its way to one cluster. Times are milliseconds since 1970, rates per second."""

    topic: str
    cluster: str
    state: str
    since: int | None
    reason: str
    remedy: str
    retry_at: int | None
    lag_messages: int | None
    lag_seconds: float | None
    rate_out: float | None
    throughput_out: float | None
    provisioned: str
    action: Remedy | None
    rate_in: float | None = None
    """The publish rate that replication has to keep up with; None if the topic is not loaded."""
    catch_up: CatchUp | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The newest micro-batch of the job towards one cluster."""

    number: int
    duration_ms: int
    phases: list[tuple[str, int]]
    """The steps and their milliseconds, the longest first."""


@dataclass(slots=True)
class Summary:
    """Everything on its way to one cluster, added up."""

    cluster: str
    states: dict[str, int] = field(default_factory=dict)
    lag_messages: int = 0
    lag_seconds: float = 0.0
    """The age of the oldest message that waits."""
    rate_out: float = 0.0
    throughput_out: float = 0.0

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one status record."""
        state = record["state"]
        self.states[state] = self.states.get(state, 0) + 1
        self.lag_messages += int(_waiting(record) or 0)
        self.lag_seconds = max(self.lag_seconds, float(record["lagSeconds"] or 0))
        self.rate_out += float(record["msgRateOut"] or 0)
        self.throughput_out += float(record["msgThroughputOut"] or 0)

    @property
    def troubled(self) -> int:
        return sum(count for state, count in self.states.items() if state in ("HELD", "DISCONNECTED"))


def row_of(record: Mapping[str, Any]) -> Row:
    """Return the row of a status record."""
    remedy = record["remedy"] or ""
    return Row(
        topic=record["topic"],
        cluster=record["cluster"],
        state=record["state"],
        since=_whole(record["since"]),
        reason=record["reason"] or "",
        remedy=remedy,
        retry_at=_whole(record["nextRetryAt"]),
        lag_messages=_waiting(record),
        lag_seconds=record["lagSeconds"],
        rate_out=record["msgRateOut"],
        throughput_out=record["msgThroughputOut"],
        provisioned=record["provisioned"] or "",
        action=remedy_of(remedy),
    )


def order(row: Row) -> tuple[int, int, float, str, str]:
    """Return the sort key: held topics first, the longest held before others; then the largest delay."""
    urgency = _URGENCY.get(row.state, len(_URGENCY))
    since = 0 if row.state == REPLICATING else row.since or 0
    return urgency, since, -(row.lag_messages or 0), row.topic, row.cluster


def catch_up(lag: int | None, rate_out: float | None, rate_in: float | None) -> CatchUp:
    """Return the state of catching up, from the backlog and the rates per second of copies and publications."""
    if lag is None or rate_out is None:
        return CatchUp(None, "unknown")
    if lag == 0:
        return CatchUp(0.0, "caught up")
    gain = rate_out - (rate_in or 0.0)
    if rate_out == 0:
        return CatchUp(None, "nothing is being copied")
    if gain <= 0:
        return CatchUp(None, "not at this rate: publications equal copies")
    return CatchUp(lag / gain, "")


def remedy_of(text: str) -> Remedy | None:
    """Return the action of a remedy that is one call to this broker; None for remedies that a person has to choose."""
    found = _EXPANSION.search(text)
    if found is None:
        return None
    try:
        (topic,) = shlex.split(found[1])
    except ValueError:
        return None
    return Remedy("expand-topic", f"Expand to {int(found[2]):,} partitions", {"topic": topic, "partitions": found[2]})


def batch_of(line: Mapping[str, Any] | None) -> Batch | None:
    """Return the newest progress of the job; None before its first report."""
    if line is None or not isinstance(line.get("batchId"), int):
        return None
    phases = line.get("phasesMs") or {}
    steps: dict[str, int] = {}
    for name, spent in phases.items():
        if name != _WHOLE and spent:
            word = _PHASES.get(name, name)
            steps[word] = steps.get(word, 0) + int(spent)
    longest_first = sorted(steps.items(), key=lambda step: (-step[1], step[0]))
    return Batch(line["batchId"], int(line.get("batchMs") or 0), longest_first)


def _waiting(record: Mapping[str, Any]) -> int | None:
    """Return the estimated messages in the backlog; None if only entries are known."""
    found = record["lagMessages"] if record["lagMessages"] is not None else record["lagEntries"]
    return _whole(found)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)

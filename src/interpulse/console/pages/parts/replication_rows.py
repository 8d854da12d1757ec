"""Rows of the replication page: one topic and one remote cluster, with the remedy of a problem. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TROUBLED: Final = ("HELD", "DISCONNECTED")
_REPLICATING: Final = "REPLICATING"
_URGENCY: Final = (*TROUBLED, "PROVISIONING", _REPLICATING, "DISABLED", "NOT_APPLICABLE")
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
_ALL_PHASES: Final = "triggerExecution"

Row = dict[str, Any]
"""One topic, or partition, on its way to one cluster. Times are milliseconds since 1970, rates per second."""


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

    def row(self, progress: Mapping[str, Any] | None) -> Row:
        """Return the totals of the cluster, with the newest progress of the job.

        The estimate of catching up ignores messages that are published meanwhile.
        """
        return {
            "cluster": self.cluster,
            "states": dict(sorted(self.states.items())),
            "troubled": sum(self.states.get(state, 0) for state in TROUBLED),
            "lag_messages": self.lag_messages,
            "lag_seconds": self.lag_seconds,
            "rate_out": self.rate_out,
            "throughput_out": self.throughput_out,
            "catch_up": catch_up(self.lag_messages, self.rate_out, 0.0),
            "batch": batch_of(progress),
        }


def row_of(record: Mapping[str, Any]) -> Row:
    """Return the row of a status record."""
    remedy = record["remedy"] or ""
    return {
        "topic": record["topic"],
        "cluster": record["cluster"],
        "state": record["state"],
        "since": _whole(record["since"]),
        "reason": record["reason"] or "",
        "remedy": remedy,
        "retry_at": _whole(record["nextRetryAt"]),
        "lag_messages": _waiting(record),
        "lag_seconds": record["lagSeconds"],
        "rate_out": record["msgRateOut"],
        "throughput_out": record["msgThroughputOut"],
        "provisioned": record["provisioned"] or "",
        "action": action_of(remedy),
        "rate_in": None,  # the publish rate, which replication has to keep up with; known where the topic is loaded
        "catch_up": None,
    }


def order(row: Row) -> tuple[int, int, float, str, str]:
    """Return the sort key: held topics first, the longest held before others; then the largest delay."""
    urgency = _URGENCY.index(row["state"]) if row["state"] in _URGENCY else len(_URGENCY)
    since = 0 if row["state"] == _REPLICATING else row["since"] or 0
    return urgency, since, -(row["lag_messages"] or 0), row["topic"], row["cluster"]


def catch_up(lag: int | None, rate_out: float | None, rate_in: float | None) -> dict[str, Any]:
    """Return the estimated end of the backlog, from the rates per second of copies and publications.

    ``seconds`` is the time left; if it is None, ``text`` is the reason.
    """
    gain = (rate_out or 0.0) - (rate_in or 0.0)
    if lag is None or rate_out is None:
        seconds, text = None, "unknown"
    elif lag == 0:
        seconds, text = 0.0, "caught up"
    elif rate_out == 0:
        seconds, text = None, "nothing is being copied"
    elif gain <= 0:
        seconds, text = None, "not at this rate: publications equal copies"
    else:
        seconds, text = lag / gain, ""
    return {"seconds": seconds, "text": text}


def action_of(remedy: str) -> dict[str, Any] | None:
    """Return the action of a remedy that is one call to this broker; None for remedies that a person has to choose."""
    match = _EXPANSION.search(remedy)
    if match is None:
        return None
    try:
        (topic,) = shlex.split(match[1])
    except ValueError:
        return None
    label = f"Expand to {int(match[2]):,} partitions"
    return {"action": "expand-topic", "label": label, "fields": {"topic": topic, "partitions": match[2]}}


def batch_of(progress: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the newest micro-batch of the job with its steps, the longest first; None before its first report."""
    if progress is None or not isinstance(progress.get("batchId"), int):
        return None
    steps: dict[str, int] = {}
    for name, spent_ms in (progress.get("phasesMs") or {}).items():
        if name != _ALL_PHASES and spent_ms:
            word = _PHASES.get(name, name)
            steps[word] = steps.get(word, 0) + int(spent_ms)
    longest_first = sorted(steps.items(), key=lambda step: (-step[1], step[0]))
    return {"number": progress["batchId"], "duration_ms": int(progress.get("batchMs") or 0), "phases": longest_first}


def _waiting(record: Mapping[str, Any]) -> int | None:
    """Return the estimated messages in the backlog, or its entries if only they are known."""
    return _whole(record["lagMessages"] if record["lagMessages"] is not None else record["lagEntries"])


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)

"""Output lines of a run in the words of pulsar-perf, and its summary. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from interpulse.cli.perf.latencies import Percentiles

_MBIT: Final = 1024 * 1024 / 8


@dataclass(slots=True)
class Amounts:
    """Messages and bytes of a period."""

    seconds: float = 0.0
    messages: int = 0
    bytes: int = 0
    failures: int = 0

    @property
    def rate(self) -> float:
        return self._per_second(self.messages)

    @property
    def mbits(self) -> float:
        return self._per_second(self.bytes / _MBIT)

    @property
    def failure_rate(self) -> float:
        return self._per_second(self.failures)

    def _per_second(self, amount: float) -> float:
        return amount / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "messagesPerSecond": self.rate, "mbitPerSecond": self.mbits}


@dataclass(frozen=True, slots=True)
class Wording:
    """Words and number formats of one command's lines."""

    title: str
    done: str
    unit: str = "msg"
    sends: bool = False
    """True for a command that sends: messages can fail, and latencies have fractions of a millisecond."""


PRODUCED: Final = Wording("Throughput produced", "records sent", sends=True)
RECEIVED: Final = Wording("Throughput received", "records received")
READ: Final = Wording("Read throughput", "records received")
LOOKUP: Final = Wording("Questions answered", "questions answered", unit="question", sends=True)


def interval_line(wording: Wording, total: int, amounts: Amounts, latency: Percentiles) -> str:
    """Return the line that pulsar-perf prints every ten seconds."""
    unit = wording.unit
    if wording.sends:
        rates = f"{amounts.rate:8.1f} {unit}/s --- {amounts.mbits:8.1f} Mbit/s"
        rates += f" --- failure {amounts.failure_rate:8.1f} {unit}/s"
    else:
        rates = f"{amounts.rate:.3f} {unit}/s --- {amounts.mbits:.3f} Mbit/s"
    return f"{wording.title}: {total:7d} {unit} --- {rates} --- {_latency(wording, latency, whole=False)}"


def summary_lines(wording: Wording, amounts: Amounts, latency: Percentiles, unanswered: int = 0) -> list[str]:
    """Return the lines that pulsar-perf prints at the end, plus the number of unanswered events if there are any."""
    rates = f"{amounts.rate:.3f} {wording.unit}/s --- {amounts.mbits:.3f} Mbit/s"
    failed = f" --- {amounts.failures} failed" if wording.sends else ""
    left = f" --- {unanswered} without an answer" if unanswered else ""
    return [
        f"Aggregated throughput stats --- {amounts.messages} {wording.done} --- {rates}{failed}{left}",
        f"Aggregated latency stats --- {_latency(wording, latency, whole=True)}",
    ]


def _latency(wording: Wording, latency: Percentiles, *, whole: bool) -> str:
    form = "7.3f" if wording.sends else ".0f"
    values = {
        "med": latency.p50,
        "95pct": latency.p95,
        "99pct": latency.p99,
        "99.9pct": latency.p999,
        "99.99pct": latency.p9999,
        **({"99.999pct": latency.p99999} if whole else {}),
        "Max": latency.max,
    }
    mean = format(latency.mean, "7.3f" if wording.sends else ".3f")
    return f"Latency: mean: {mean} ms - " + " - ".join(f"{name}: {value:{form}}" for name, value in values.items())

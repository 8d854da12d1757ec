"""One measured run: counters, output lines in the words of pulsar-perf, and a summary however the run ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from interpulse.cli.perf.latencies import Latencies, Percentiles
from interpulse.cli.support.running import CommandFailed

_MBIT: Final = 1024 * 1024 / 8
_PRINTED_MAX: Final = 5
"""Failures printed in full; further ones are only counted."""


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


class MeasuredRun:
    """Counters and latencies of one run. Memory use does not grow with its length."""

    def __init__(
        self, wording: Wording, latencies: Latencies, *, report_interval_s: float, as_json: bool, **notes: Any
    ) -> None:
        """Create a run. ``notes`` are the first members of its summary."""
        self._wording = wording
        self._latencies = latencies
        self._report_interval_s = report_interval_s
        self._as_json = as_json
        self._total, self._interval = Amounts(), Amounts()
        self._unanswered = 0
        self._since = self._interval_since = time.monotonic()
        self._notes = notes
        self._warnings: list[str] = []
        self._limits: list[str] = []
        self.generator = Generator()
        self._cpu_max = self._lag_max = self._late_max = 0.0

    @property
    def messages(self) -> int:
        return self._total.messages

    def done(self, size: int, latency: int | None) -> None:
        """Count a completed message of ``size`` bytes, and record its latency unless it is None."""
        for counts in (self._total, self._interval):
            counts.messages += 1
            counts.bytes += size
        if latency is not None:
            self._latencies.record(latency)

    def failed(self, error: BaseException) -> None:
        for counts in (self._total, self._interval):
            counts.failures += 1
        if self._total.failures <= _PRINTED_MAX:
            click.echo(f"failed: {' '.join(str(error).split()) or type(error).__name__}", err=True)
            if self._total.failures == _PRINTED_MAX:
                click.echo("further failures are only counted", err=True)

    def left(self, unanswered: int) -> None:
        """Record the number of events without an answer at the end."""
        self._unanswered = unanswered
        self.note(unanswered=unanswered)

    def note(self, **values: Any) -> None:
        """Add members to the summary."""
        self._notes.update(values)

    def warn(self, sentence: str) -> None:
        """Print a warning once and add it to the summary."""
        if sentence not in self._warnings:
            self._warnings.append(sentence)
            click.echo(f"Warning: {sentence}", err=True)

    async def follow(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` until it ends or is interrupted by Ctrl-C or SIGTERM, then print the summary.

        An interruption is not a failure; a second SIGTERM ends the process. Raises CommandFailed if an event failed or
        got no answer, unless the run was interrupted.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):  # on Windows, outside the main thread
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        self._since = self._interval_since = time.monotonic()
        self.generator.start()
        reports = asyncio.create_task(self._report())
        interrupted = False
        try:
            await work
        except asyncio.CancelledError:
            interrupted = True
            task.uncancel()
        finally:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGTERM)
            self.generator.stop()
            reports.cancel()
            await asyncio.gather(reports, return_exceptions=True)
            self._end(interrupted)
        if (self._total.failures or self._unanswered) and not interrupted:
            counts = f"{self._total.failures} failed, {self._unanswered} had no answer"
            raise CommandFailed(f"Not all of it succeeded: {counts}")

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._report_interval_s)
            self._take(printed=True)

    def _take(self, *, printed: bool) -> None:
        now = time.monotonic()
        wall = time.time()
        amounts, self._interval = self._interval, Amounts()
        amounts.seconds = now - self._interval_since
        latency = self._latencies.take(wall - amounts.seconds, wall)
        self._interval_since = now
        if printed:
            line = interval_line(self._wording, self._total.messages, amounts, latency)
            click.echo(line, err=self._as_json)
        self._look_at_generator(printed)

    def _look_at_generator(self, printed: bool) -> None:
        figures = self.generator.take()
        self._cpu_max = max(self._cpu_max, figures.cpu)
        self._lag_max = max(self._lag_max, figures.loop_lag_max_s)
        self._late_max = max(self._late_max, figures.late_max_s)
        if limits := figures.limits():
            self._limits = list(dict.fromkeys([*self._limits, *limits]))[-_PRINTED_MAX:]
            if printed:
                self._report_limits(limits)
        if figures.held_back:
            self.warn(
                "the schedule waits for answers, as many are outstanding as may be: the cluster is slower than the"
                " rate, or --max-outstanding is too low"
            )

    def _report_limits(self, limits: list[str]) -> None:
        why = "; ".join(limits)
        remedy = "lower the rate, or start several processes"
        click.echo(f"Warning: the generator is the limit, not the cluster: {why}; {remedy}", err=True)

    def _end(self, interrupted: bool) -> None:
        reported = bool(self._limits)
        self._take(printed=False)
        if self._limits and not reported:
            self._report_limits(self._limits)
        self._total.seconds = time.monotonic() - self._since
        whole = self._latencies.whole()
        self._latencies.close()
        for line in summary_lines(self._wording, self._total, whole, self._unanswered):
            click.echo(line, err=self._as_json)
        if self._as_json:
            click.echo(json.dumps(self._summary(asdict(whole), interrupted)))

    def _summary(self, latency: dict[str, float], interrupted: bool) -> dict[str, Any]:
        return {
            **self._notes,
            **self._total.to_json(),
            "interrupted": interrupted,
            "latencyMs": latency,
            "generator": {
                "cpuMax": self._cpu_max,
                "loopLagMaxMs": self._lag_max * 1000,
                "lateMaxMs": self._late_max * 1000,
                "limits": self._limits,
            },
            "warnings": self._warnings,
        }


_LOOK_EACH_S: Final = 0.1
_LAG_MAX_S: Final = 0.1
_LATE_MAX_S: Final = 0.1
_CAUGHT_UP_S: Final = 0.01
_CPU_MAX: Final = 0.95


@dataclass(frozen=True, slots=True)
class GeneratorFigures:
    """Measurements of one interval."""

    cpu: float
    """Share of one core. An event loop can use no more than one."""

    loop_lag_max_s: float
    late_max_s: float
    """Longest delay in seconds between due and sending time for which the generator alone is responsible."""

    held_back: bool
    """True if the schedule waited for answers because the maximum number of messages was outstanding."""

    def limits(self) -> list[str]:
        """Return the reasons why the generator is the limit; empty if it is not."""
        reasons = []
        if self.cpu >= _CPU_MAX:
            reasons.append(f"its processor is used up ({self.cpu:.0%} of a core)")
        if self.loop_lag_max_s >= _LAG_MAX_S:
            reasons.append(f"its event loop was {self.loop_lag_max_s * 1000:.0f} ms late")
        if self.late_max_s >= _LATE_MAX_S:
            reasons.append(f"it was {self.late_max_s * 1000:.0f} ms behind its schedule")
        return reasons


class Generator:
    """Observer of its own process between `start` and `stop`.

    Where the generator is the limit, the measurement says nothing about the cluster.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, cpu_clock: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._since, self._cpu_since = clock(), cpu_clock()
        self._lag = self._late = 0.0
        self._held = self._catches_up = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._since, self._cpu_since = self._clock(), self._cpu_clock()
        self._look(loop, loop.time())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def sends(self, late_s: float) -> None:
        """Record the delay of a message. While the schedule catches up, the generator is not responsible."""
        if self._catches_up:
            self._catches_up = late_s > _CAUGHT_UP_S
        else:
            self._late = max(self._late, late_s)

    def waits(self) -> None:
        """Record that the maximum number of messages is outstanding."""
        self._held = self._catches_up = True

    def take(self) -> GeneratorFigures:
        """Return the measurements since the last call."""
        now, cpu = self._clock(), self._cpu_clock()
        used = (cpu - self._cpu_since) / max(now - self._since, 1e-9)
        taken = GeneratorFigures(used, self._lag, self._late, self._held)
        self._since, self._cpu_since = now, cpu
        self._lag = self._late = 0.0
        self._held = self._catches_up
        return taken

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = loop.time()
        self._lag = max(self._lag, now - due)
        self._timer = loop.call_at(now + _LOOK_EACH_S, self._look, loop, now + _LOOK_EACH_S)

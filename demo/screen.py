"""The screen of the running demonstration: a live table on a terminal, plain lines elsewhere.

An unknown value is ``-``, never 0.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from traffic import Progress

STARTING_LINE_EVERY_S = 5.0
PROGRESS_LINE_EVERY_S = 2.0
RATE_WINDOW_S = 5.0
UNKNOWN = "-"


class DatedConsole(Console):
    """A console that begins lines with their time, in the form of the brokers' logs, unless it is a terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        if not self.is_terminal:
            super().print(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), end=" ", highlight=False)
        super().print(*objects, **options)


class _Sample(NamedTuple):
    """Progress at some time."""

    at: float
    published: int
    replicated: int


class Screen:
    """Shows progress. `say` prints a line that stays."""

    def __init__(self, console: Console, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._progress = progress
        self._clock = clock
        self._statuses: Sequence[Mapping[str, Any]] = ()
        self._history: deque[_Sample] = deque()
        self._started = clock()
        self._is_replicating = False
        self._next_plain_line = clock()
        self._provisioned: list[str] = []
        self._live = Live(console=console, refresh_per_second=4, transient=False) if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def note_replicating(self) -> None:
        """Show progress from now on: Spark has started."""
        self._is_replicating = True
        self._next_plain_line = self._clock()
        self.say(f"Spark was ready after {self._clock() - self._started:.0f} s; publishing begins")

    def update(self, statuses: Sequence[Mapping[str, Any]], *, last: bool = False) -> None:
        """Redraw with the newest status records of the replication.

        Without a terminal, print a line now and then, and always the ``last``.
        """
        self._statuses = statuses
        now = self._clock()
        if self._is_replicating:
            self._history.append(_Sample(now, self._progress.published_total, self._progress.replicated_total))
        while len(self._history) > 1 and self._history[0].at < now - RATE_WINDOW_S:
            self._history.popleft()
        if self._live is not None:
            self._live.update(Group(self._table(), Text(self._batch_line()), Text(self._provision_line())))
            return
        self._tell_provisioning()
        if last or now >= self._next_plain_line:
            pause = PROGRESS_LINE_EVERY_S if self._is_replicating else STARTING_LINE_EVERY_S
            self._next_plain_line = now + pause
            self.say(self._plain_line() if self._is_replicating else self._starting())

    # ---- What is shown

    def _starting(self) -> str:
        reasons = sorted({str(status["reason"]) for status in self._statuses if status.get("reason")})
        what = "; ".join(reasons) or "the replication job starts"
        return f"{what}: {self._clock() - self._started:.0f} s"

    def _percent(self) -> str:
        total = self._progress.total
        return f"{self._progress.replicated_total * 100 // total} %" if total else f"{UNKNOWN} %"

    def _rates(self) -> tuple[float | None, float | None]:
        """Return the published and replicated messages per second, None until the history is long enough."""
        first, newest = (self._history[0], self._history[-1]) if self._history else (None, None)
        if first is None or newest is None or newest.at - first.at < PROGRESS_LINE_EVERY_S / 2:
            return None, None
        seconds = newest.at - first.at
        return (newest.published - first.published) / seconds, (newest.replicated - first.replicated) / seconds

    def _rates_text(self) -> str:
        published, replicated = self._rates()
        publishing = "all published" if self._progress.publishing_done else f"{_known(published)} published/s"
        return f"{publishing}, {_known(replicated)} replicated/s"

    def _left(self) -> str:
        total, (_, rate) = self._progress.total, self._rates()
        if not total or not rate:
            return UNKNOWN if total != self._progress.replicated_total else "0 s"
        remaining = total - self._progress.replicated_total
        return f"{max(remaining / rate, 1 if remaining else 0):.0f} s"

    def _table(self) -> Table:
        state = f"{self._percent()}, {self._left()} left" if self._is_replicating else self._starting()
        table = Table(title=f"east → west   {state}   {self._rates_text()}")
        for heading in ("partition", "published", "replicated", "lag messages", "lag entries", "lag s", "state"):
            table.add_column(heading, justify="left" if heading in ("partition", "state") else "right")
        for index in range(self._progress.partitions):
            table.add_row(*self._row(index))
        table.add_section()
        total = self._progress
        lag = total.published_total - total.replicated_total
        table.add_row("all", f"{total.published_total:,}", f"{total.replicated_total:,}", f"{lag:,}", "", "", "")
        return table

    def _row(self, index: int) -> tuple[str, ...]:
        progress, status = self._progress, self._status_of(index)
        return (
            str(index),
            f"{progress.published[index]:,}",
            f"{progress.replicated[index]:,}",
            f"{progress.lag_messages(index):,}",
            _known(status.get("lagEntries") if progress.lag_messages(index) else 0),  # the status is a little older
            _known(progress.lag_seconds(index), ".1f"),
            str(status.get("state", "waiting")),
        )

    def _status_of(self, index: int) -> Mapping[str, Any]:
        suffix = f"-partition-{index}"
        return next((status for status in self._statuses if str(status.get("topic", "")).endswith(suffix)), {})

    def _batch_line(self) -> str:
        batches = [status for status in self._statuses if status.get("batchId") is not None]
        if not batches:
            return "micro-batch: none yet"
        newest = max(batches, key=lambda status: int(status["batchId"]))
        return f"micro-batch {newest['batchId']}: {_known(newest.get('batchMs'))} ms"

    def _provisionings(self) -> list[str]:
        return sorted({str(status["provisioned"]) for status in self._statuses if status.get("provisioned")})

    def _provision_line(self) -> str:
        return "provisioned on west: " + ("; ".join(self._provisionings()) or "nothing yet")

    def _tell_provisioning(self) -> None:
        """Print a line for each provisioned topic, once."""
        for what in self._provisionings():
            if what not in self._provisioned:
                self._provisioned.append(what)
                self.say(f"provisioned on west: {what}")

    def _plain_line(self) -> str:
        progress = self._progress
        partitions = range(progress.partitions)
        lags = [progress.lag_messages(index) for index in partitions]
        seconds = [known for index in partitions if (known := progress.lag_seconds(index)) is not None]
        by_partition = ", ".join(f"p{index} {lag:,}" for index, lag in enumerate(lags))
        return (
            f"{self._percent():>5}  replicated {progress.replicated_total:,} of {_known(progress.total)}, "
            f"lag {sum(lags):,} messages ({by_partition}), {_known(max(seconds, default=None), '.1f')} s behind; "
            f"{self._rates_text()}; {self._left()} left; {self._batch_line()}"
        )


def _known(value: float | None, form: str = ",.0f") -> str:
    return UNKNOWN if value is None else format(value, form)

"""What the demonstration shows while it runs: a live table on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from traffic import Progress

__all__ = ["Screen"]

PLAIN_LINE_EVERY_S = 2.0
RATE_WINDOW_S = 5.0


class Screen:
    """Shows progress; `say` prints a line that stays."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console = console
        self._progress = progress
        self._statuses: Sequence[Mapping[str, Any]] = ()
        self._history: deque[tuple[float, int, int]] = deque()
        self._next_plain_line = 0.0
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

    def update(self, statuses: Sequence[Mapping[str, Any]]) -> None:
        """Redraw with the newest status records of the replication."""
        self._statuses = statuses
        now = time.monotonic()
        self._history.append((now, self._progress.published_total, self._progress.replicated_total))
        while len(self._history) > 1 and self._history[0][0] < now - RATE_WINDOW_S:
            self._history.popleft()
        if self._live is not None:
            self._live.update(Group(self._table(), Text(self._batch_line()), Text(self._provision_line())))
        elif now >= self._next_plain_line:
            self._next_plain_line = now + PLAIN_LINE_EVERY_S
            self.say(self._plain_line())

    def _rates(self) -> tuple[float, float]:
        (then, published, replicated), (now, published_now, replicated_now) = self._history[0], self._history[-1]
        seconds = max(now - then, 1e-3)
        return (published_now - published) / seconds, (replicated_now - replicated) / seconds

    def _table(self) -> Table:
        published_rate, replicated_rate = self._rates()
        table = Table(title=f"east → west   {published_rate:,.0f} published/s   {replicated_rate:,.0f} replicated/s")
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
        published, replicated = progress.published[index], progress.replicated[index]
        return (
            str(index),
            f"{published:,}",
            f"{replicated:,}",
            f"{max(published - replicated, 0):,}",
            f"{status.get('lagEntries', '')}",
            f"{progress.lag_seconds(index):.1f}",
            str(status.get("state", "waiting")),
        )

    def _status_of(self, index: int) -> Mapping[str, Any]:
        suffix = f"-partition-{index}"
        return next((status for status in self._statuses if str(status.get("topic", "")).endswith(suffix)), {})

    def _batch_line(self) -> str:
        batches = [status for status in self._statuses if status.get("batchId") is not None]
        if not batches:
            reasons = sorted({str(status["reason"]) for status in self._statuses if status.get("reason")})
            return "micro-batch: none yet" + (f" ({'; '.join(reasons)})" if reasons else "")
        newest = max(batches, key=lambda status: int(status["batchId"]))
        return f"micro-batch {newest['batchId']}: {newest.get('batchMs', '?')} ms"

    def _provision_line(self) -> str:
        lines = sorted({str(status["provisioned"]) for status in self._statuses if status.get("provisioned")})
        return "provisioned on west: " + ("; ".join(lines) if lines else "nothing yet")

    def _plain_line(self) -> str:
        published_rate, replicated_rate = self._rates()
        cells = " ".join(
            f"p{index} {self._progress.published[index]}/{self._progress.replicated[index]} "
            f"lag {self._status_of(index).get('lagEntries', '-')} entries {self._progress.lag_seconds(index):.1f} s"
            for index in range(self._progress.partitions)
        )
        return (
            f"published/replicated {cells} | {published_rate:,.0f}/s {replicated_rate:,.0f}/s | "
            f"{self._batch_line()} | {self._provision_line()}"
        )

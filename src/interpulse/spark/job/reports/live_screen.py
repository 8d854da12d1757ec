"""Screen of the job on a terminal, redrawn every second."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from interpulse.spark.job.reports.report import Records, Written

_TOPICS_SHOWN: Final = 10
_STYLES: Final = {"REPLICATING": "green", "PROVISIONING": "yellow", "HELD": "red", "DISCONNECTED": "red"}


class LiveScreen:
    """Standard output as a screen. Log lines stay above it."""

    wants_records = True

    def __init__(self, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._title = ""
        self._waits_for: tuple[str, ...] = ()
        self._records: Records = ()
        self._error = ""
        self._live = Live(
            get_renderable=self._drawn, console=console, refresh_per_second=2, redirect_stderr=True, transient=False
        )
        before = sys.stderr
        self._live.start()  # standard error knows of the screen from now on
        _move_log(before, sys.stderr)

    def take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event")
        if kind == "starting":
            self._title = f"{event['pipeline']}: from {event['source']}"
            self._waits_for = tuple(event["waitsFor"])
        elif kind == "ready":
            self._waits_for = tuple(subject for subject in self._waits_for if subject != event["what"])
        elif kind == "error":
            self._error = f"{event.get('cluster')}: {event.get('error')}"
        elif kind == "progress":
            self._error = ""

    def show(self, records: Records, written: Mapping[str, Written]) -> None:
        self._records = records

    def close(self) -> None:
        drawn_on = sys.stderr
        self._live.stop()
        _move_log(drawn_on, sys.stderr)

    def _drawn(self) -> RenderableType:
        return screen(self._title, self._waits_for, self._records, self._error, seconds=self._clock() - self._since)


def _move_log(before: TextIO, after: TextIO) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is before:
            handler.setStream(after)


def screen(title: str, waits_for: tuple[str, ...], records: Records, error: str, *, seconds: float) -> RenderableType:
    """Draw the state of each cluster, then the topics that are held or most behind."""
    parts: list[RenderableType] = [Text(f"{title}, for {_duration(seconds)}; Ctrl-C ends it", style="bold")]
    if waits_for:
        parts.append(Text(f"waits for {' and '.join(waits_for)}", style="yellow"))
    if error:
        parts.append(Text(error, style="red"))
    if records:
        parts.append(_clusters(records))
    parts.extend(_topics(records))
    return Group(*parts)


def _clusters(records: Records) -> Table:
    table = Table("CLUSTER", "TOPIC-PARTITIONS", box=None)
    for name in ("MESSAGES/S", "MB/S", "ENTRIES BEHIND", "MESSAGES", "SECONDS"):
        table.add_column(name, justify="right")
    for cluster in sorted({record["cluster"] for record in records}):
        mine = [record for record in records if record["cluster"] == cluster]
        states = Counter(record["state"] for record in mine)
        summary = Text(", ").join(Text(f"{count} {state}", _STYLES.get(state, "")) for state, count in states.items())
        rates = [sum(record.get(key) or 0.0 for record in mine) for key in ("msgRateOut", "msgThroughputOut")]
        table.add_row(
            cluster,
            summary,
            f"{rates[0]:,.0f}",
            f"{rates[1] / 1e6:,.1f}",
            *(_number(mine, key, sum) for key in ("lagEntries", "lagMessages")),
            _number(mine, "lagSeconds", max),
        )
    return table


def _number(records: Records, key: str, joined: Callable[[list[float]], float]) -> str:
    values = [record[key] for record in records if record.get(key) is not None]
    if not values:
        return "?"
    more = "" if len(values) == len(records) else "+"
    return f"{joined(values):,.{1 if key == 'lagSeconds' else 0}f}{more}"


def _topics(records: Records) -> Iterator[RenderableType]:
    """Return held topics with their reason, then those most behind."""
    obstructed = [record for record in records if record["state"] in ("HELD", "DISCONNECTED")]
    for record in obstructed[:_TOPICS_SHOWN]:
        yield Text(f"{record['topic']} -> {record['cluster']}: {record['state']}", style="red")
        for key in ("reason", "remedy"):
            if record.get(key):
                yield Text(f"  {key}: {record[key]}")
    if len(obstructed) > _TOPICS_SHOWN:
        yield Text(f"... and {len(obstructed) - _TOPICS_SHOWN} more")
    behind = [record for record in records if record.get("lagEntries") and record not in obstructed[:_TOPICS_SHOWN]]
    behind.sort(key=lambda record: -(record.get("lagSeconds") or 0.0))
    for record in behind[:_TOPICS_SHOWN]:
        seconds = "" if record.get("lagSeconds") is None else f", {record['lagSeconds']:,.1f} s"
        yield Text(f"{record['topic']} -> {record['cluster']}: {record['lagEntries']:,} entries{seconds} behind")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"

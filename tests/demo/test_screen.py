"""The lines of the demonstration without a terminal: every known thing once, in the words of the table."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from screen import DatedConsole, Screen
from traffic import Progress


class Demonstration:
    """A screen off a terminal, with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.output = io.StringIO()
        self.progress = Progress(2)
        self.screen = Screen(Console(file=self.output, width=80), self.progress, lambda: self.now)

    def told(self) -> list[str]:
        lines = self.output.getvalue().splitlines()
        self.output.truncate(0)
        self.output.seek(0)
        return lines

    def copied(self, *partitions: tuple[int, int], at: float) -> None:
        """How much was published to each partition, and how much of it was copied."""
        self.now = at
        for index, (published, replicated) in enumerate(partitions):
            self.progress.published[index] = published
            self.progress.replicated[index] = replicated
            self.progress.last_published_ms[index] = int(at * 1000)
            self.progress.last_replicated_publish_ms[index] = int(at * 1000) - 1500 if replicated else 0


@pytest.fixture
def demo() -> Demonstration:
    return Demonstration()


def status(index: int, **values: Any) -> dict[str, Any]:
    return {"topic": f"persistent://demo/flights/departures-partition-{index}", **values}


def test_start_of_spark_is_told_with_its_seconds_and_provisioning_once(demo: Demonstration) -> None:
    for second in range(11):
        demo.now = 100.0 + second
        known = {"reason": "Spark is starting", "provisioned": "departures created"} if second else {}
        demo.screen.update([status(0, **known), status(1, **known)])
    demo.screen.note_replicating()
    assert demo.told() == [
        "the replication job starts: 0 s",
        "provisioned on west: departures created",
        "Spark is starting: 5 s",
        "Spark is starting: 10 s",
        "Spark was ready after 10 s; publishing begins",
    ]


def test_what_is_not_known_is_told_as_a_dash(demo: Demonstration) -> None:
    demo.screen.note_replicating()
    demo.told()
    demo.screen.update([])
    assert demo.told() == [
        "  - %  replicated 0 of -, lag 0 messages (p0 0, p1 0), - s behind; - published/s, - replicated/s; - left; "
        "micro-batch: none yet"
    ]


def test_progress_is_told_in_messages_with_labelled_rates_percent_and_time_left(demo: Demonstration) -> None:
    demo.screen.note_replicating()
    demo.told()
    demo.progress.total = 4_000
    demo.screen.update([])
    demo.copied((1_500, 700), (1_500, 1_300), at=102.0)
    demo.screen.update([status(0, batchId=3, batchMs=210), status(1, batchId=2, batchMs=500)])
    assert demo.told()[1:] == [
        " 50 %  replicated 2,000 of 4,000, lag 1,000 messages (p0 800, p1 200), 1.5 s behind; 1,500 published/s, "
        "1,000 replicated/s; 2 s left; micro-batch 3: 210 ms"
    ]


def test_last_line_of_progress_is_100_percent_whenever_it_comes(demo: Demonstration) -> None:
    demo.screen.note_replicating()
    demo.progress.total = 4_000
    demo.screen.update([])
    demo.copied((2_000, 2_000), (2_000, 2_000), at=101.9)
    demo.progress.publishing_done = True
    demo.screen.update([status(0, batchId=9, batchMs=90)], last=True)
    assert demo.told()[-1] == (
        "100 %  replicated 4,000 of 4,000, lag 0 messages (p0 0, p1 0), 0.0 s behind; all published, "
        "2,105 replicated/s; 0 s left; micro-batch 9: 90 ms"
    )


@pytest.mark.parametrize(("terminal", "stamped"), [(False, True), (True, False)])
def test_line_when_not_on_a_terminal_then_has_its_time(terminal: bool, stamped: bool) -> None:
    output = io.StringIO()
    console = DatedConsole(file=output, width=80, force_terminal=terminal, color_system=None)
    console.print("east: pulsar://127.0.0.1:6650", highlight=False, soft_wrap=True)
    (line,) = output.getvalue().splitlines()
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z east: pulsar://127\.0\.0\.1:6650"
    assert bool(re.fullmatch(pattern, line)) is stamped

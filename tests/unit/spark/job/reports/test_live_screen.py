"""What people see of the job on a terminal."""

import io
import logging
import sys

import pytest
from rich.console import Console

from interpulse.spark.job.reports.live_screen import LiveScreen, screen


def record(topic, state="REPLICATING", cluster="west", **fields):
    return {"topic": topic, "cluster": cluster, "state": state, "lagEntries": 0, "lagSeconds": 0.0} | fields


def drawn(*records, waits_for=(), error=""):
    output = io.StringIO()
    Console(width=120, file=output).print(screen("p: from east", waits_for, records, error, seconds=3725))
    return output.getvalue().splitlines()


def test_screen_says_at_once_what_the_job_waits_for():
    assert drawn(waits_for=("east at pulsar://east:6650", "Spark")) == [
        "p: from east, for 1:02:05; Ctrl-C ends it",
        "waits for east at pulsar://east:6650 and Spark",
    ]


def test_screen_sums_up_clusters_and_names_what_is_held_and_what_is_behind():
    lines = drawn(
        record("a", lagEntries=5, lagMessages=50, lagSeconds=2.5, msgRateOut=1000.0, msgThroughputOut=2e6),
        record("b", msgRateOut=500.0),
        record("c", "HELD", reason="over quota", remedy="wait", lagEntries=None, lagSeconds=None),
        record("d", cluster="south"),
        error="west: NotConnected: away",
    )
    assert lines[1] == "west: NotConnected: away"
    rows = {line.split()[0]: line.split() for line in lines[3:5]}
    assert rows["south"] == ["south", "1", "REPLICATING", "0", "0.0", "0", "?", "0.0"]
    assert rows["west"] == ["west", "2", "REPLICATING,", "1", "HELD", "1,500", "2.0", "5+", "50+", "2.5+"]
    assert lines[5:] == [
        "c -> west: HELD",
        "  reason: over quota",
        "  remedy: wait",
        "a -> west: 5 entries, 2.5 s behind",
    ]


def test_screen_of_very_many_topics_stays_short():
    held = [record(f"h{number}", "HELD", reason="full") for number in range(100)]
    behind = [record(f"t{number}", lagEntries=number, lagSeconds=float(number)) for number in range(100)]
    lines = drawn(*held, *behind)
    assert len(lines) < 40
    assert "... and 90 more" in lines
    assert lines[-10] == "t99 -> west: 99 entries, 99.0 s behind"


@pytest.fixture
def handler(capsys):
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_events_change_the_screen_and_the_log_stays_above_it(handler, capsys):
    output = io.StringIO()
    live = LiveScreen(console=Console(file=output, width=100, force_terminal=True), clock=lambda: 0.0)
    try:
        live.take({"event": "starting", "pipeline": "p", "source": "east", "waitsFor": ["east", "Spark"]})
        live.take({"event": "ready", "what": "Spark", "seconds": 9.0})
        live.take({"event": "error", "cluster": "west", "error": "away"})
        logging.getLogger("x").warning("a line of the log")
        live.show([record("a")], {})
    finally:
        live.close()
    text = output.getvalue()
    assert "a line of the log" in text
    for told in ("p: from east", "waits for east", "west: away", "1 REPLICATING"):
        assert told in text[text.index("a line of the log") :]
    assert capsys.readouterr() == ("", "")

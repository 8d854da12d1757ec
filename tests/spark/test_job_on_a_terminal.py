"""The job on a terminal: its first sign of life, and its end by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys

import psutil
import pytest

from tests.spark.replication_job import configure, wait_until, wait_until_gone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROCESSOR_SECONDS_MAX = 20.0
"""A quarter of a second on a quick machine, one on a slow one that does other things."""


class Away:
    """Where no cluster is."""

    service_url = "pulsar://127.0.0.1:1"
    web_url = "http://127.0.0.1:1"


class OtherAway(Away):
    service_url = "pulsar://127.0.0.1:2"


class Terminal:
    """The job in a terminal of its own, and what is on its screen."""

    def __init__(self, *command):
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        self._ours = ours
        self.screen = ""

    def read(self):
        """What came so far, at the latest after a moment."""
        select.select([self._ours], [], [], 0.2)
        with contextlib.suppress(OSError):
            self.screen += os.read(self._ours, 1 << 16).decode(errors="replace")
        return self.screen

    def processor_seconds(self):
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def press_ctrl_c(self):
        """As the terminal does: every process of the group in front gets it, Java among them."""
        os.killpg(self.process.pid, 2)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.mark.parametrize(
    "words", [("interpulse.cli", "replicate"), ("interpulse.spark", "replicate")], ids=["interpulse", "python-m"]
)
def test_job_says_before_spark_is_there_what_it_waits_for_and_ends_cleanly_by_ctrl_c(tmp_path, words):
    config = configure(tmp_path, ("east", Away()), ("west", OtherAway()))
    terminal = Terminal(*words, "--config", str(config))
    try:
        while "waits for east at pulsar://127.0.0.1:1 and Spark" not in terminal.read():
            assert terminal.processor_seconds() < PROCESSOR_SECONDS_MAX
        wait_until(lambda: "Cannot reach" in terminal.read())
        family = [child.pid for child in psutil.Process(terminal.process.pid).children(recursive=True)]
        terminal.press_ctrl_c()
        wait_until(lambda: terminal.read() is not None and terminal.process.poll() is not None)
        assert terminal.process.returncode == 0
        assert "Traceback" not in terminal.read()
        wait_until_gone(family)
    finally:
        terminal.close()

"""`make cluster` on a real ZooKeeper and real bookies: the verdict, the addresses it prints, and a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.standalone_process import environment, output_of

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 200
ADDRESSES = re.compile(r"broker-\d +pulsar://(\S+) +(http://\S+)$")


@contextmanager
def demonstration(run_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """The program of `make cluster`, which stays up; ended as Ctrl-C does if nothing else has ended it."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    settings = {"MESSAGES": "2000", "RUN_DIR": str(run_dir), "PYTHONPATH": paths}
    with subprocess.Popen(
        [sys.executable, str(ROOT / "demo" / "three_brokers.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment() | settings,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def test_demonstration_when_run_then_nothing_is_lost_and_it_stays_up_until_interrupted(tmp_path: Path) -> None:
    said, brokers = [], []
    with demonstration(tmp_path) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            found = ADDRESSES.search(line)
            brokers += [found] if found else []
            if "-s look" in line:
                break
        text = "".join(said)
        assert re.search(r"broker-\d, which serves partitions? [\d, ]+, is killed \(SIGKILL\) after ", text), text
        assert re.search(r"the next receipt came \d+\.\d s after the kill; served by broker-\d", text), text
        assert "verified: all 2,000 messages with a receipt are there exactly once, in order per key" in text
        url, web = "pulsar://" + ",".join(found[1] for found in brokers), brokers[0][2]
        listed = output_of("admin", "--admin-url", web, "brokers", "list", "lab").split()
        assert sorted(listed) == sorted(found[2].removeprefix("http://") for found in brokers)
        assert len(listed) == 3
        consume = ("consume", "--url", url, "persistent://demo/flights/departures", "-s", "look", "-p", "Earliest")
        assert output_of(*consume, "-n", "3").count("content:") == 3

        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
        assert "stopping brokers, bookies and ZooKeeper" in rest
        _, left = psutil.wait_procs(below, timeout=SECONDS_MAX)
        assert left == []

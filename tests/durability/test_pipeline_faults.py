"""The replication job under load while brokers, Python workers, Java and the driver are killed or paused at random.

Two faults by chance, and in `make soak` each three times. Afterwards `interpulse verify` finds nothing.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.spark.replication_job import (
    TOPIC,
    Job,
    Load,
    assert_exactly_once,
    configure,
    create_partitioned,
    read_all,
    stored_entries,
    wait_until,
    wait_until_gone,
)
from tests.support.soak import soak
from tests.support.standalone_process import StandaloneProcess, free_port

log = logging.getLogger(__name__)

SEED = int(os.environ.get("PIPELINE_SEED") or time.time_ns() % 1_000_000)
PLAYED = soak(24, otherwise=2)
"""Each costs seconds, those that start Spark again ten."""
FAULTS = (
    "source killed",
    "target killed",
    "source paused",
    "target paused",
    "worker killed",
    "worker paused",
    "java killed",
    "driver killed",
)
PAUSE_SECONDS_MAX = 5.0
IN_A_ROW = 0.3
"""How often a fault comes while the pipeline has not recovered from the one before."""
SETTINGS = (
    "brokerDeleteInactiveTopicsEnabled=false",
    "brokerDeduplicationEnabled=true",
    # West has no subscription, and what is trimmed there cannot be looked at.
    "defaultRetentionTimeInMinutes=-1",
    "defaultRetentionSizeInMB=-1",
)


class Cluster:
    """A broker that comes back at the same address."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        settings = (f"clusterName={name}", *SETTINGS)
        self._arguments = ["--port", free_port(), "--http-port", free_port()]
        self._arguments += [word for each in settings for word in ("--set", each)]
        self._directory = directory / name
        self._process = StandaloneProcess(self._directory, *self._arguments)
        self.service_url, self.web_url = self._process.service_url, self._process.web_url

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process = StandaloneProcess(self._directory, *self._arguments)

    def stop(self) -> None:
        self._process.stop()


class Game:
    """Plays faults, one after the other, each at a random moment."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.played: Counter[str] = Counter()
        self._random = random.Random(seed)
        self.east, self.west = Cluster(directory, "east"), Cluster(directory, "west")
        self.config = configure(
            directory / "job", (self.east.name, self.east), (self.west.name, self.west), entries_per_batch=2000
        )
        self.job = Job(self.config)
        self.seen: set[int] = set()

    def play(self, count: int) -> None:
        """Every fault comes once before one comes again."""
        shuffled = (self._random.sample(FAULTS, len(FAULTS)) for _ in itertools.count())
        for fault in itertools.islice(itertools.chain.from_iterable(shuffled), count):
            if self._random.random() >= IN_A_ROW:
                self._wait_for_more()
            time.sleep(self._random.uniform(0, 2))  # faults come when they come
            log.info("fault=%s", fault)
            with suppress(psutil.NoSuchProcess):  # it has just ended by itself
                self._play(fault)
                self.played[fault] += 1
            self.keep_the_job()
        self._wait_for_more()

    def _wait_for_more(self) -> None:
        copied = stored_entries(self.west)

        def has_more() -> bool:
            self.keep_the_job()
            return stored_entries(self.west) > copied

        wait_until(has_more)

    def _play(self, fault: str) -> None:
        who, what = fault.split()
        if who in ("source", "target"):
            cluster = self.east if who == "source" else self.west
            cluster.kill() if what == "killed" else self._pause(psutil.Process(cluster.pid))
        elif who == "driver":
            self._kill_driver()
        else:
            self._hit(what, "java" if who == "java" else "python")

    def _kill_driver(self) -> None:
        family = self.job.family()
        self.job.process.kill()
        self.job.process.wait()
        wait_until_gone(family)

    def _hit(self, what: str, program: str) -> None:
        """One of the processes below the job; which of them a task uses at the moment is up to Spark."""
        found = [each for each in psutil.Process(self.job.process.pid).children(recursive=True) if is_(each, program)]
        if found:
            process = self._random.choice(found)
            process.kill() if what == "killed" else self._pause(process)

    def _pause(self, process: psutil.Process) -> None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.5, PAUSE_SECONDS_MAX))
        if process.is_running():
            process.send_signal(signal.SIGCONT)

    def keep_the_job(self) -> None:
        """As its supervisor would."""
        if self.job.process.poll() is not None:
            self.job.start()
        with suppress(psutil.NoSuchProcess):
            self.seen.update(self.job.family())

    def is_copied(self) -> bool:
        """Whether nothing is left to copy, as soon as nothing is published any more."""
        self.keep_the_job()
        return stored_entries(self.west) >= stored_entries(self.east)

    def close(self) -> None:
        self.job.stop()
        self.east.stop()
        self.west.stop()


def is_(process: psutil.Process, program: str) -> bool:
    try:
        return process.name().startswith(program)
    except psutil.NoSuchProcess:
        return False


def verified(config: Path) -> dict[str, object]:
    """What `interpulse verify` says of the pipeline."""
    command = [sys.executable, "-m", "interpulse.spark", "verify", "--config", str(config), "-o", "json"]
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(1200 + 120 * PLAYED)
def test_pipeline_when_anything_is_killed_or_paused_at_random_then_verify_finds_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PIPELINE_SEED plays another game; without it every run plays its own, and says which."""
    caplog.set_level(logging.INFO, __name__)
    log.info("PIPELINE_SEED=%d", SEED)
    game = Game(tmp_path, SEED)
    try:
        create_partitioned(game.east, TOPIC)
        with Load(game.east) as load:
            game.job.start()
            game.play(PLAYED)
        wait_until(game.is_copied)
        log.info("played %s messages=%d", dict(game.played), load.count)
        game.job.stop()
        assert_exactly_once(read_all(game.west), range(load.count))
        verified(game.config)
    finally:
        game.close()
    wait_until_gone([*game.seen])

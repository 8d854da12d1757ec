"""The replication job under load while brokers, Python workers, Java and the driver are killed or paused at random, and
links are cut. Tasks run ahead of their batches, but not after every restart of the job.

Two faults by chance between brokers of ours; in `make soak` many, and real Pulsars on either side. Afterwards an
official reader finds every message once and in order, and `interpulse verify` finds nothing.
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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import psutil
import pulsar
import pytest

from tests.interop.real_pulsar import RealPulsar
from tests.spark.replication_job import (
    TOPIC,
    Broker,
    Job,
    Load,
    configure,
    create_partitioned,
    partitions,
    stored_entries,
    wait_until,
    wait_until_gone,
)
from tests.support.link import Link
from tests.support.official_client import RECEIVE_MS, connected
from tests.support.soak import only_soaking, soak
from tests.support.standalone_process import StandaloneProcess, free_port

log = logging.getLogger(__name__)

SEED = int(os.environ.get("PIPELINE_SEED") or time.time_ns() % 1_000_000)
PLAYED = int(os.environ.get("PIPELINE_FAULTS") or soak(30, otherwise=2))
"""Each costs seconds, those that start Spark again ten."""
FAULTS = (
    "source killed",
    "target killed",
    "source paused",
    "target paused",
    "source cut",
    "target cut",
    "worker killed",
    "worker paused",
    "java killed",
    "driver killed",
)
PAUSE_SECONDS_MAX = 5.0
WAIT_SECONDS_MAX = 900
IN_A_ROW = 0.3
"""How often a fault comes while the pipeline has not recovered from the one before."""
MESSAGES_PER_SECOND = 300
RUN_AHEAD_MS = (60_000, 5_000, 0)
SETTINGS = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "brokerDeduplicationEnabled": "true",
    # West has no subscription, and what is trimmed there cannot be looked at.
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
}


class Cluster(Protocol):
    """A broker that comes back at the same address, behind a link."""

    name: str

    @property
    def service_url(self) -> str: ...

    @property
    def web_url(self) -> str: ...

    @property
    def link(self) -> Link: ...

    @property
    def pid(self) -> int: ...

    def kill(self) -> None: ...

    def stop(self) -> None: ...


class OurCluster:
    """A broker of ours."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        port = free_port()
        self.link = Link(f"127.0.0.1:{port}")
        self.service_url = f"pulsar://{self.link.address}"
        settings = SETTINGS | {"clusterName": name, "advertisedListeners": f"link:{self.service_url}"}
        self._arguments = ["--port", port, "--http-port", free_port()]
        self._arguments += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self._directory = directory / name
        self._process = StandaloneProcess(self._directory, *self._arguments)
        self.web_url = self._process.web_url

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process = StandaloneProcess(self._directory, *self._arguments)

    def stop(self) -> None:
        self._process.stop()
        self.link.close()


class RealCluster:
    """A real Pulsar, started a second time with the address of its link."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self._pulsar = RealPulsar(directory / name, cluster_name=name, settings=SETTINGS)
        self._pulsar.start()
        self.link = Link(self._pulsar.service_url.removeprefix("pulsar://"))
        self.service_url = f"pulsar://{self.link.address}"
        self._pulsar.restart({"advertisedListeners": f"link:{self.service_url}"})
        self.web_url = self._pulsar.web_url

    @property
    def pid(self) -> int:
        return self._pulsar.pid

    def kill(self) -> None:
        self._pulsar.kill()
        self._pulsar.start()

    def stop(self) -> None:
        self._pulsar.stop()
        self.link.close()


class Game:
    """Plays faults, one after the other, each at a random moment."""

    def __init__(self, directory: Path, east: Cluster, west: Cluster, seed: int) -> None:
        self.played: Counter[str] = Counter()
        self.east, self.west = east, west
        self._random = random.Random(seed)
        self._directory = directory
        self.config = self._configure()
        self.job = Job(self.config).start()
        self.seen: set[int] = set()

    def _configure(self) -> Path:
        sides = (self.east.name, self.east), (self.west.name, self.west)
        run_ahead_ms = self._random.choice(RUN_AHEAD_MS)
        return configure(self._directory, *sides, entries_per_batch=2000, run_ahead_ms=run_ahead_ms)

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

        wait_until(has_more, WAIT_SECONDS_MAX)

    def _play(self, fault: str) -> None:
        who, what = fault.split()
        if who in ("source", "target"):
            cluster = self.east if who == "source" else self.west
            if what == "cut":
                self._cut(cluster.link)
            else:
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

    def _cut(self, link: Link) -> None:
        link.hold()
        time.sleep(self._random.uniform(0, PAUSE_SECONDS_MAX))
        link.cut()

    def _pause(self, process: psutil.Process) -> None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.5, PAUSE_SECONDS_MAX))
        if process.is_running():
            process.send_signal(signal.SIGCONT)

    def keep_the_job(self) -> None:
        """As its supervisor would."""
        if self.job.process.poll() is not None:
            self._configure()
            self.job.start()
        with suppress(psutil.NoSuchProcess):
            self.seen.update(self.job.family())

    def is_copied(self) -> bool:
        """Whether nothing is left to copy, as soon as nothing is published any more."""
        self.keep_the_job()
        return stored_entries(self.west) >= stored_entries(self.east)


def read_by_official_client(broker: Broker) -> list[list[int]]:
    """The numbers that each partition holds, in order."""
    found = []
    with connected(broker.service_url) as client:
        for name in partitions(TOPIC):
            reader = client.create_reader(name, pulsar.MessageId.earliest)
            numbers = []
            while reader.has_message_available():
                numbers.append(int(reader.read_next(RECEIVE_MS).data()))
            found.append(numbers)
            reader.close()
    return found


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
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (OurCluster, OurCluster),
        pytest.param(OurCluster, RealCluster, marks=only_soaking),
        pytest.param(RealCluster, OurCluster, marks=only_soaking),
    ],
)
def test_pipeline_when_anything_is_killed_paused_or_cut_at_random_then_verify_finds_nothing(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    source: Callable[[Path, str], Cluster],
    target: Callable[[Path, str], Cluster],
) -> None:
    """PIPELINE_SEED and PIPELINE_FAULTS choose a game; without a seed every run plays its own, and says which."""
    caplog.set_level(logging.INFO, __name__)
    log.info("PIPELINE_SEED=%d", SEED)
    with ExitStack() as ending:
        east, west = source(tmp_path, "east"), target(tmp_path, "west")
        for each in (east, west):
            ending.callback(each.stop)
        create_partitioned(east, TOPIC)
        game = Game(tmp_path / "job", east, west, SEED)
        ending.callback(game.job.stop)
        with Load(east, per_second=MESSAGES_PER_SECOND) as load:
            game.play(PLAYED)
        wait_until(game.is_copied, WAIT_SECONDS_MAX)
        log.info("played %s messages=%d", dict(game.played), load.count)
        game.job.stop()
        found = read_by_official_client(west)
        assert sorted(itertools.chain.from_iterable(found)) == list(range(load.count))
        assert found == [sorted(numbers) for numbers in found]
        verified(game.config)
    wait_until_gone([*game.seen])

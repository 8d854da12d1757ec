"""Real bookies for the length of a test, with the real ZooKeeper that they need."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.real_pulsar.zookeeper import RealZooKeeper, real_zookeeper
from tools.engines.bookie import START_SECONDS_MAX, RealBookie
from tools.engines.java import LOGGING, QUICK_JAVA, java_command


class RealBookKeeper:
    """A ZooKeeper and bookies, laid out by Pulsar's own tool."""

    def __init__(self, directory: Path, zookeeper: RealZooKeeper, count: int) -> None:
        self.zookeeper = zookeeper
        self.bookies = [RealBookie(directory / f"bookie-{each}", zookeeper.address) for each in range(count)]

    def bookie(self, bookie_id: str) -> RealBookie:
        """The bookie of this id."""
        return next(each for each in self.bookies if each.bookie_id == bookie_id)

    def start(self) -> None:
        """Return when all bookies serve."""
        url = f"zk:{self.zookeeper.address}"
        options = ["--cluster", "lab", "--metadata-store", url, "--configuration-metadata-store", url]
        options += ["--web-service-url", "http://127.0.0.1:1", "--broker-service-url", "pulsar://127.0.0.1:2"]
        command = java_command(
            "-Xmx128m",
            *QUICK_JAVA,
            f"-Dlog4j2.configurationFile={LOGGING}",
            "org.apache.pulsar.PulsarClusterMetadataSetup",
        )
        done = subprocess.run([*command, *options], capture_output=True, timeout=START_SECONDS_MAX)
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
        for bookie in self.bookies:
            bookie.start()
        for bookie in self.bookies:
            bookie.wait()

    def stop(self) -> None:
        """End all bookies."""
        for bookie in self.bookies:
            bookie.kill()


@contextmanager
def real_bookkeeper(directory: Path, count: int) -> Iterator[RealBookKeeper]:
    """So many running bookies, ended at the end."""
    with real_zookeeper(directory / "zookeeper") as zookeeper:
        cluster = RealBookKeeper(directory, zookeeper, count)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()

"""Real bookies on loopback, with the real ZooKeeper that they need, from the jars of the real Pulsar."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.real_pulsar.java import QUICK_JAVA, java_command
from tests.interop.real_pulsar.launcher import _dying_with_this_thread
from tests.interop.real_pulsar.zookeeper import RealZooKeeper, real_zookeeper

LOGGING = Path(__file__).with_name("log4j2-check.xml")
START_SECONDS_MAX = 90
DRIVERS = (
    "-Dbookkeeper.metadata.bookie.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataBookieDriver",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
)
_READ_LEDGER_0 = bytes.fromhex("0000001402020000" + "00" * 16)

_CONFIGURATION = """\
bookiePort={port}
advertisedAddress=127.0.0.1
listeningInterface=lo
allowLoopback=true
journalDirectories={directory}/journal
ledgerDirectories={directory}/ledgers
metadataServiceUri=metadata-store:zk:{zookeeper}
ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage
dbStorage_writeCacheMaxSizeMb=32
dbStorage_readAheadCacheMaxSizeMb=16
dbStorage_rocksDB_blockCacheSize=16777216
journalSyncData=true
journalMaxGroupWaitMSec=1
journalPreAllocSizeMB=4
journalMaxSizeMB=256
diskUsageThreshold=0.99
diskUsageWarnThreshold=0.98
diskUsageLwmThreshold=0.97
gcWaitTime=300000
minUsableSizeForIndexFileCreation=1048576
minUsableSizeForEntryLogCreation=1048576
minUsableSizeForHighPriorityWrites=1048576
zkTimeout=4000
httpServerEnabled=false
statsProviderClass=org.apache.bookkeeper.stats.NullStatsProvider
nettyMaxFrameSizeBytes=5253120
"""


class RealBookie:
    """One bookie. Its data stay in the directory, so that it can be started again, at the same port."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        self.directory = directory
        self._zookeeper = zookeeper
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bookie_id(self) -> str:
        """Its id, which is its address."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begin to start; `wait` returns when it serves."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "bookkeeper.conf"
        configuration.write_text(
            _CONFIGURATION.format(directory=self.directory, port=self._port, zookeeper=self._zookeeper)
        )
        memory = ("-Xms64m", "-Xmx192m", "-XX:MaxDirectMemorySize=192m")
        system = (
            *DRIVERS,
            f"-Dlog4j2.configurationFile={LOGGING}",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Djava.net.preferIPv4Stack=true",
        )
        program = ("org.apache.bookkeeper.server.Main", "--conf", str(configuration))
        with (self.directory / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [*_dying_with_this_thread(), *java_command(*memory, *QUICK_JAVA, *system, *program)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Return when it answers reads: its port opens earlier."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            assert self._process is not None
            out_text = (self.directory / "out").read_text(errors="replace")[-2000:]
            assert self._process.poll() is None, f"a bookie ended:\n{out_text}"
            assert time.monotonic() < deadline, f"a bookie answered nothing in {START_SECONDS_MAX} s:\n{out_text}"
            time.sleep(0.05)

    def pause(self) -> None:
        """Let it do nothing, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Undo `pause`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=2) as connection:
                connection.sendall(_READ_LEDGER_0)
                return len(connection.recv(28)) == 28
        except OSError:
            return False


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

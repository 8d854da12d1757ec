"""A real bookie on loopback, from the jars of the real Pulsar."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.engines.java import LOGGING, QUICK_JAVA, java_command
from tools.engines.server import ServerProcess, free_port

START_SECONDS_MAX = 240
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

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        settings: Mapping[str, str] | None = None,
        *,
        within: Sequence[str] = (),
    ) -> None:
        """``zookeeper``: host and port of the ZooKeeper of a cluster that was initialised.

        ``settings`` are added to its configuration. ``within`` stands before its command line, and becomes it in the
        end.
        """
        self.directory = directory
        self._zookeeper = zookeeper
        self._settings = "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
        self._within = within
        self._port = free_port()
        self._process = ServerProcess("a bookie", directory, self._answers, START_SECONDS_MAX)

    @property
    def bookie_id(self) -> str:
        """Its id, which is its address."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        return self._process.pid

    def start(self) -> None:
        """Begin to start; `wait` returns when it serves. It dies with the thread that begins it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "bookkeeper.conf"
        configuration.write_text(
            _CONFIGURATION.format(directory=self.directory, port=self._port, zookeeper=self._zookeeper) + self._settings
        )
        memory = ("-Xms64m", "-Xmx192m", "-XX:MaxDirectMemorySize=192m")
        system = (
            *DRIVERS,
            f"-Dlog4j2.configurationFile={LOGGING}",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Djava.net.preferIPv4Stack=true",
        )
        program = ("org.apache.bookkeeper.server.Main", "--conf", str(configuration))
        self._process.begin([*self._within, *java_command(*memory, *QUICK_JAVA, *system, *program)])

    def wait(self) -> None:
        """Return when it answers reads, for its port opens earlier; raises ServerFailed."""
        self._process.wait()

    def pause(self) -> None:
        """Let it do nothing, with its connections open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Undo `pause`."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._process.kill()

    def stop(self) -> None:
        """End it in good order."""
        self._process.stop()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=2) as connection:
                connection.sendall(_READ_LEDGER_0)
                return len(connection.recv(28)) == 28
        except OSError:
            return False

"""A real ZooKeeper on loopback, from the jars of the real Pulsar."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.real_pulsar.java import java_command, quick_java

LOGGING = Path(__file__).with_name("log4j2-check.xml")
START_SECONDS_MAX = 60
# A session that asks whether the server serves: the port alone opens earlier.
_CONNECT = bytes.fromhex("0000002d00000000000000000000000000000fa0000000000000000000000010" + "00" * 17)
_CLOSE = bytes.fromhex("0000000800000001fffffff5")

_CONFIGURATION = """\
tickTime=500
initLimit=10
syncLimit=5
dataDir={directory}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
minSessionTimeout=1000
maxSessionTimeout=60000
"""


class RealZooKeeper:
    """One server. Its data stay in the directory, so that it can be started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Return when sessions can be made."""
        self.begin()
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._gives_sessions():
            out_text = (self.directory / "out").read_text(errors="replace")[-2000:]
            assert self._process.poll() is None, f"ZooKeeper ended:\n{out_text}"
            assert time.monotonic() < deadline, f"ZooKeeper gave no session in {START_SECONDS_MAX} s:\n{out_text}"
            time.sleep(0.05)

    def begin(self) -> None:
        """Start it without waiting for it. It dies with the thread that begins it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "zoo.cfg"
        configuration.write_text(_CONFIGURATION.format(directory=self.directory, port=self._port))
        options = ("-Xmx128m", *quick_java(), f"-Dlog4j2.configurationFile={LOGGING}")
        command = java_command(*options, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration))
        setpriv = shutil.which("setpriv")
        with (self.directory / "out").open("ab") as out:
            self._process = subprocess.Popen(
                [*([setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []), *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def pause(self) -> None:
        """Let it do nothing, with its connections open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Undo `pause`."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _gives_sessions(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=2) as connection:
                connection.sendall(_CONNECT)
                answered = len(connection.recv(41)) == 41
                connection.sendall(_CLOSE)
                return answered
        except OSError:
            return False


@contextmanager
def real_zookeeper(directory: Path) -> Iterator[RealZooKeeper]:
    """A running one, ended at the end."""
    zookeeper = RealZooKeeper(directory)
    zookeeper.start()
    try:
        yield zookeeper
    finally:
        if zookeeper._process is not None:
            zookeeper.kill()

"""A real ZooKeeper on loopback, from the jars of the real Pulsar."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from tools.engines.java import LOGGING, java_command, quick_java
from tools.engines.server import ServerProcess, free_port

START_SECONDS_MAX = 180
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
maxSessionTimeout=240000
"""


class RealZooKeeper:
    """One server. Its data stay in the directory, so that it can be started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._port = free_port()
        self._process = ServerProcess("ZooKeeper", directory, self._gives_sessions, START_SECONDS_MAX)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Return when sessions can be made."""
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start it without waiting for it. It dies with the thread that begins it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "zoo.cfg"
        configuration.write_text(_CONFIGURATION.format(directory=self.directory, port=self._port))
        options = ("-Xmx128m", *quick_java(), f"-Dlog4j2.configurationFile={LOGGING}")
        program = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration))
        self._process.begin(java_command(*options, *program))

    def wait(self) -> None:
        """Return when sessions can be made; raises ServerFailed."""
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

    def _gives_sessions(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=2) as connection:
                connection.sendall(_CONNECT)
                answered = len(connection.recv(41)) == 41
                connection.sendall(_CLOSE)
                return answered
        except OSError:
            return False

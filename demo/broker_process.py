"""One broker as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

INTERPULSE = Path(sys.executable).parent / "interpulse"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 8.0


class ClusterFailed(Exception):
    """A process that ended or never became ready. The message names its log."""


class BrokerProcess:
    """A broker with its own data directory and its own free ports."""

    def __init__(self, name: str, home: Path, *arguments: str) -> None:
        """Configure a process named ``name``. ``arguments`` follow ``interpulse`` on the command line."""
        self.name = name
        self.log_path = home / f"{name}.log"
        self.data_dir = home / name
        self.service_url = ""
        self.web_url = ""
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    def standalone(cls, name: str, home: Path) -> BrokerProcess:
        """Return a standalone broker, which is the cluster of this name by itself."""
        ports = ("--port", "0", "--http-port", "0")
        return cls(name, home, "standalone", "--cluster-name", name, *ports, "--data-dir", str(home / name))

    async def start(self) -> None:
        """Start the process. Return when clients can publish."""
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(INTERPULSE),
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            )
        try:
            await asyncio.wait_for(self._read_addresses(), START_TIMEOUT_S)
        except TimeoutError:
            raise ClusterFailed(
                f"{self.name} was not ready after {START_TIMEOUT_S:.0f} s, see {self.log_path}"
            ) from None

    async def _read_addresses(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            label, _, value = raw.decode().strip().partition(": ")
            if label == "binary service":
                self.service_url = value
            elif label == "web service":
                self.web_url = value
            elif label == "ready":
                return
        raise ClusterFailed(f"{self.name} ended with {await self._process.wait()}, see {self.log_path}")

    async def kill(self) -> None:
        """End it immediately, like kill -9: nothing is flushed, and no client is notified."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def signal_stop(self) -> None:
        """Ask the broker and its replication job to stop."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    async def wait_stopped(self) -> None:
        """Wait for the end. After some seconds, kill the rest of the process group."""
        if self._process is None:
            return
        try:
            await asyncio.wait_for(self._process.wait(), STOP_TIMEOUT_S)
        except TimeoutError:
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

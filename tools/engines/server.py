"""The process of one server: begun, awaited, paused, ended. Its data stay in its directory, for another start."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_PORTS = iter(random.SystemRandom().sample(range(10_000, 32_768), 22_768))
"""Not by the seed that tests share: their processes would all try the same ports at once."""

STOP_SECONDS_MAX = 10
POLL_EVERY_S = 0.05


class ServerFailed(Exception):
    """The process ended, or did not serve in time; the message shows the end of what it printed."""


class ServerProcess:
    """One Java process that prints to the file `out` of its directory. It dies with the thread that begins it, where
    the system can arrange that."""

    def __init__(self, name: str, directory: Path, answers: Callable[[], bool], start_seconds_max: int) -> None:
        """``answers``: whether it serves now."""
        self._name = name
        self._out = directory / "out"
        self._answers = answers
        self._start_seconds_max = start_seconds_max
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        assert self._process is not None, "not running"
        return self._process.pid

    def begin(self, command: list[str]) -> None:
        """Start it without waiting for it."""
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                [*dying_with_this_thread(), *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Return when it serves; raises ServerFailed."""
        deadline = time.monotonic() + self._start_seconds_max
        while not self._answers():
            process = self._process  # another thread may stop it
            if process is None or process.poll() is not None:
                raise ServerFailed(f"{self._name} ended, see {self._out}:\n{self._printed()}")
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"{self._name} did not serve after {self._start_seconds_max} s, see {self._out}:\n{self._printed()}"
                )
            time.sleep(POLL_EVERY_S)

    def send_signal(self, number: signal.Signals) -> None:
        """To a process that was begun."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as kill -9 does. Nothing happens when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it in good order; kill it when that takes too long. Nothing happens when it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS_MAX)
        self.kill()

    def _printed(self) -> str:
        return self._out.read_text(errors="replace")[-2000:]


def dying_with_this_thread() -> list[str]:
    """What stands before a command line, so that its process ends with the thread that starts it."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL", "--"] if found else []


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now, each at most once in a process.

    It lies below the ports that Linux gives to outgoing connections: one of these may take the port of a server that is
    down, and keep it from coming back at its address.
    """
    return next(filter(_is_free, _PORTS))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True

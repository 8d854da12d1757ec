"""``interpulse standalone`` and ``interpulse broker`` as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.engines import server

SECONDS_MAX = 120
"""To start or to end, on a machine that may be busy."""


class BrokerProcess:
    """A running broker; its lines on standard output tell where it is."""

    def __init__(self, line: list[str], log: Path) -> None:
        self.log = log
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                line,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment(),
            )
        assert self._process.stdout is not None
        self.lines: list[str] = []
        for said in self._process.stdout:
            self.lines.append(said.strip())
            if said == "ready\n":
                break
        else:
            self.kill()
            raise AssertionError(f"the broker did not start:\n{self.log.read_text()}")
        addresses = dict(line.split(": ", 1) for line in self.lines[:-1])
        self.service_url, self.web_url = addresses["binary service"], addresses["web service"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """kill -9: nothing is flushed, no client is told."""
        self._end(signal.SIGKILL)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; the exit code."""
        return self._end(number)

    def _end(self, number: signal.Signals) -> int:
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(timeout=SECONDS_MAX)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class StandaloneProcess(BrokerProcess):
    """A broker that is alone."""

    def __init__(
        self, data_dir: Path, *arguments: str, file_bytes_max: int | None = None, open_files: int | None = None
    ) -> None:
        """``file_bytes_max``: no file of the process can grow beyond, as on a disk that is full.

        ``open_files``: the soft limit that it starts with.
        """
        line = command("--port", "0", "--http-port", "0", "--data-dir", str(data_dir), *arguments)
        if file_bytes_max is not None:
            line = limited(f"-f {file_bytes_max // 1024}", line)
        if open_files is not None:
            line = limited(f"-Sn {open_files}", line)
        super().__init__(line, data_dir.with_suffix(".log"))


def free_port() -> str:
    """For a broker that has to come back at the same address."""
    return str(server.free_port())


def command(*arguments: str) -> list[str]:
    """The command line of a broker that is alone."""
    return interpulse("standalone", *arguments)


def interpulse(*arguments: str) -> list[str]:
    """A command line of this program."""
    return [sys.executable, "-c", "from interpulse.cli.main import main; main()", *arguments]


def output_of(*arguments: str) -> str:
    """Run a command of this program, which must not fail. Return what it prints."""
    done = subprocess.run(
        interpulse(*arguments), capture_output=True, text=True, timeout=SECONDS_MAX, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def limited(limit: str, line: list[str]) -> list[str]:
    """The command line under a limit of the shell's ``ulimit``."""
    return ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *line]


def environment() -> dict[str, str]:
    """The environment without settings of another broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PULSAR_")}

"""The two brokers that are compared, each as a process of its own with a data directory of its own."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import psutil

from tests.interop.real_pulsar import RealPulsar

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15


class DidNotStart(Exception):
    """Our broker ended, or did not become ready; the message shows what it printed."""


class Running(Protocol):
    """A process that can be measured."""

    @property
    def pid(self) -> int: ...


class Serving(Protocol):
    """A broker that takes load."""

    @property
    def service_url(self) -> str: ...
    @property
    def web_url(self) -> str: ...


class Contender(Running, Serving, Protocol):
    """A broker that can be started on its directory, measured and ended."""

    name: str
    directory: Path

    def start(self) -> float: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Interpulse:
    """`interpulse standalone` of this environment, on free ports."""

    name = "interpulse"

    def __init__(self, directory: Path, *arguments: str, program: Path | None = None) -> None:
        """``arguments``: more of the command line; ``program``: the `interpulse` of another environment."""
        self.directory = directory
        self._program = program or Path(sys.executable).with_name("interpulse")
        self._arguments = arguments
        self.service_url = ""
        self.web_url = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self._process is not None, "not running"
        return self._process.pid

    def start(self) -> float:
        """Starts on kept or new data; returns the seconds until the admin API answered."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [
            str(self._program),
            "standalone",
            "--port",
            "0",
            "--http-port",
            "0",
            "--data-dir",
            str(self.directory / "data"),
            *self._arguments,
        ]
        started = time.monotonic()
        with (self.directory / "log").open("a") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            self._read_urls()
            _wait_for_answer(self.web_url, started + START_SECONDS_MAX)
        except BaseException:
            self.kill()
            raise
        return time.monotonic() - started

    def stop(self) -> None:
        """Ends it in good order; kills it when that takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget()

    def kill(self) -> None:
        """Ends it at once."""
        assert self._process is not None, "not running"
        self._process.kill()
        self._forget()

    def _forget(self) -> None:
        assert self._process is not None, "not running"
        with self._process:  # waits for it and closes the pipe
            pass
        self._process = None

    def _read_urls(self) -> None:
        assert self._process is not None, "not running"
        assert self._process.stdout is not None, "its output is a pipe"
        printed = []
        for line in self._process.stdout:
            printed.append(line)
            label, _, value = line.strip().partition(": ")
            if label == "binary service":
                self.service_url = value
            elif label == "web service":
                self.web_url = value
            elif label == "ready":
                return
        log = (self.directory / "log").read_text()[-2000:]
        raise DidNotStart(f"interpulse standalone ended before it was ready:\n{''.join(printed)}{log}")


class Pulsar(RealPulsar):
    """A real Apache Pulsar."""

    name = "pulsar"

    def __init__(
        self, directory: Path, *, cluster_name: str = "standalone", settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(directory, cluster_name=cluster_name, settings=settings, measured=True)


def cpu_seconds(running: Running) -> float:
    """Processor time of the process and its children since their start."""
    return sum(used for _, used in cpu_by_process(running))


def cpu_by_process(running: Running) -> list[tuple[psutil.Process, float]]:
    """Processor time of the process and of each of its children since their start, with that of children that ended."""
    return [
        (process, time.clock_gettime(_cpu_clock(process.pid)) + _of_ended(process)) for process in _processes(running)
    ]


def _of_ended(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.children_user + times.children_system)


def pss_bytes(running: Running) -> int:
    """Proportional set size of the process and its children: shared pages count once, however often they are mapped."""
    return sum(process.memory_full_info().pss for process in _processes(running))


def _cpu_clock(pid: int) -> int:
    """What clock_getcpuclockid(3) gives on Linux: nanoseconds of all threads, where /proc counts in steps of 10 ms."""
    return ~pid << 3 | 2


def _processes(running: Running) -> list[psutil.Process]:
    root = psutil.Process(running.pid)
    return [root, *root.children(recursive=True)]


def _wait_for_answer(web_url: str, deadline: float) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{web_url}/admin/v2/namespaces/public/default", timeout=5):
                return
        except (OSError, urllib.error.URLError) as error:
            if time.monotonic() > deadline:
                raise DidNotStart(f"no answer from {web_url}: {error}") from error
            time.sleep(0.01)

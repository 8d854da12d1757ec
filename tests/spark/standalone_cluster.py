"""A Spark standalone cluster out of the pip package: a master and machines of one core, each a process, on loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import psutil
import pyspark

from interpulse.spark.class_archive import java_options
from tests.support.standalone_process import free_port
from tests.support.waiting import until

EXECUTOR_MB: Final = 512
_CLASSES: Final = "org.apache.spark.deploy"
_START_SECONDS_MAX: Final = 180


class SparkCluster:
    """``master`` is what jobs are submitted to; every machine has room for one executor."""

    def __init__(self, directory: Path, port: str, web_port: str) -> None:
        self.master = f"spark://127.0.0.1:{port}"
        self.machines: list[psutil.Process] = []
        self._directory = directory
        self._state_url = f"http://127.0.0.1:{web_port}/json/"

    def state(self) -> Any:
        """What the master knows."""
        with urlopen(self._state_url) as answer:
            return json.load(answer)

    def executor_errors(self) -> str:
        """What all executors and the Python below them have said so far."""
        return "".join(path.read_text() for path in self._directory.glob("machine-*/*/*/stderr"))

    def busy_machines(self) -> list[psutil.Process]:
        """Those that run an executor whose Python works."""
        return [each for each in self.machines if each.is_running() and len(each.children(recursive=True)) > 1]

    def kill_a_busy_machine(self) -> None:
        """kill -9 of a worker, its executor and the Python below, as when their machine has no power."""
        machine = self.busy_machines()[0]
        family = [machine, *machine.children(recursive=True)]
        for process in family:
            process.kill()
        _, left = psutil.wait_procs(family, timeout=60)
        assert not left, left


@contextmanager
def spark_cluster(directory: Path, *, machines: int) -> Iterator[SparkCluster]:
    """A cluster whose machines the master knows; its processes end with the block."""
    port, web_port = free_port(), free_port()
    cluster = SparkCluster(directory, port, web_port)
    with ExitStack() as ending:
        ending.enter_context(_process(directory / "master", "master.Master", "--port", port, "--webui-port", web_port))
        # A worker that cannot reach its master yet pauses for seconds.
        until(lambda: _answers(cluster), _START_SECONDS_MAX)
        for number in range(machines):
            work = directory / f"machine-{number}"
            size = ("--cores", "1", "--memory", f"{EXECUTOR_MB}m", "--work-dir", str(work))
            process = _process(work, "worker.Worker", "--port", "0", "--webui-port", "0", *size, cluster.master)
            cluster.machines.append(psutil.Process(ending.enter_context(process).pid))
        until(lambda: cluster.state()["aliveworkers"] == machines, _START_SECONDS_MAX)
        yield cluster


def _answers(cluster: SparkCluster) -> bool:
    try:
        return bool(cluster.state())
    except OSError:
        return False


@contextmanager
def _process(path: Path, java_class: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One that is ended with all it has started; what it says is in the log beside its directory."""
    path.mkdir(parents=True)
    spark = Path(pyspark.__file__).parent
    command = [str(spark / "bin" / "spark-class"), f"{_CLASSES}.{java_class}", "--host", "127.0.0.1", *arguments]
    daemon = {"SPARK_DAEMON_MEMORY": "128m", "SPARK_DAEMON_JAVA_OPTS": java_options()}
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **daemon}
    with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, cwd=path, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(180)

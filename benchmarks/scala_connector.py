"""Our Spark data source beside StreamNative's connector in Scala, on the newest Spark that each supports.

    python -m benchmarks.scala_connector [--real] [--rounds 3] [--only "write raw"]

Reading and writing, raw and Avro, in turns: rows per second, and processor microseconds of Spark per row, those of Java
and of the Python workers. The median of the rounds counts, after one that warms up: the time of a worker that ends is
missing until its parent has noticed. The broker is one of ours, or with
``--real`` a real Pulsar, and its processor time is left out. Five minutes; the first time some more, while Spark 3.1
and the connector are set up in the user's cache.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.contenders import Contender, Interpulse, Pulsar
from benchmarks.spark_cases import DONE
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.policies.policy_records import RetentionPolicies

ROOT = Path(__file__).parents[1]
CACHE_VARIABLE = "INTERPULSE_SCALA_CONNECTOR"
SPARK = "pyspark==3.1.3"
CONNECTOR = "io.streamnative.connectors:pulsar-spark-connector_2.12:3.1.1.4"
SCALA = "org.scala-lang:scala-library:2.12.18"
"""Spark 3.1 brings 2.12.10, which cannot read its own functions on Java 17. Spark gets no other: Maven does."""
OPENED = (
    "lang",
    "lang.invoke",
    "lang.reflect",
    "io",
    "net",
    "nio",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
)
OPENED_ELSEWHERE = ("java.base/sun.nio.ch", "java.base/sun.util.calendar", "java.base/jdk.internal.ref")
SECONDS_MAX = 240
NAMESPACE = "public/connectors"
PARTITIONS = 4
CASES = ("read raw", "read Avro", "write raw", "write Avro")
THEIRS, OURS = "Scala connector", "ours"


class NoConnector(Exception):
    """Spark or the connector could not be set up, or ended; the message says why."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a case took once."""

    seconds: float
    java: float
    """Processor seconds."""
    python: float


class Session:
    """A Spark of its own process, that works when it is told to."""

    def __init__(self, python: Path, given: Mapping[str, Any], directory: Path, environment: Mapping[str, str]) -> None:
        directory.mkdir()
        work = directory / "cases.json"
        work.write_text(json.dumps(given))
        self._log = directory / "log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [str(python), str(ROOT / "benchmarks" / "spark_cases.py"), str(work)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=directory,
                env={**_plain_environment(), **environment, "SPARK_LOCAL_IP": "127.0.0.1"},
            )
        self._answer()

    def run(self, case: str) -> Turn:
        """Raises NoConnector when it fails."""
        before = self._cpu_seconds()
        assert self._process.stdin is not None, "a pipe"
        self._process.stdin.write(f"{case}\n")
        self._process.stdin.flush()
        seconds = self._answer()
        java, python = (after - then for after, then in zip(self._cpu_seconds(), before, strict=True))
        return Turn(seconds, java, python)

    def end(self) -> None:
        """Java ends with the program."""
        running = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.communicate()
        for process in running:
            if process.is_running():
                process.kill()

    def _answer(self) -> float:
        assert self._process.stdout is not None, "a pipe"
        for line in self._process.stdout:
            if line.startswith(DONE):
                return float(line[len(DONE) :])
        raise NoConnector(f"Spark's session ended:\n{self._log.read_text()[-4000:]}")

    def _cpu_seconds(self) -> tuple[float, float]:
        """Of Java and of Python workers; workers that have ended are counted by the process that started them."""
        java = next(
            (each for each in psutil.Process(self._process.pid).children(recursive=True) if each.name() == "java"), None
        )
        if java is None:
            raise NoConnector(f"Java has ended:\n{self._log.read_text()[-4000:]}")
        times = java.cpu_times()
        workers = sum(sum(each.cpu_times()[:4]) for each in java.children(recursive=True))
        return times.user + times.system, times.children_user + times.children_system + workers


def main(arguments: Sequence[str]) -> int:
    """Measure everything and print a table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="beside a real Pulsar's broker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads", type=int, default=400_000, help="rows of a read, 1 KB raw or 100 bytes of Avro")
    parser.add_argument("--writes", type=int, default=800_000, help="rows of a write, 100 bytes")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--without-theirs", action="store_true", help="ours alone, as after a change of it")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch, ExitStack() as stack:
        root = Path(scratch)
        settings = ("--set", "brokerDeleteInactiveTopicsEnabled=false")
        broker: Contender = Pulsar(root / "broker") if given.real else Interpulse(root / "broker", *settings)
        broker.start()
        stack.callback(broker.stop)
        asyncio.run(_create(broker.web_url))
        rows = {"reads": given.reads, "writes": given.writes}
        sessions = {OURS: _ours(broker, root, rows)}
        stack.callback(sessions[OURS].end)
        for case in ("fill raw", "fill Avro"):
            sessions[OURS].run(case)
        if not given.without_theirs:
            sessions = {THEIRS: _theirs(broker, root, rows), **sessions}
            stack.callback(sessions[THEIRS].end)
        _measure(sessions, given.only, given.rounds, rows)
        asyncio.run(_check_written(broker.web_url, given.only, list(sessions), given.rounds, given.writes))
    return 0


def _measure(sessions: Mapping[str, Session], cases: Sequence[str], rounds: int, rows: Mapping[str, int]) -> None:
    print("| case | connector | rows/s | CPU us per row | of that Java | of that Python |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in cases:
        kind, content = case.split()
        for session in sessions.values():
            if kind == "read":
                session.run(f"count {content}")
            session.run(case)  # warm
        turns: dict[str, list[Turn]] = {name: [] for name in sessions}
        for _ in range(rounds):
            for name, session in sessions.items():
                turns[name].append(session.run(case))
        count = rows["reads" if kind == "read" else "writes"]
        for name, taken in turns.items():
            rate = count / median(turn.seconds for turn in taken)
            kinds = (
                [turn.java + turn.python for turn in taken],
                [turn.java for turn in taken],
                [turn.python for turn in taken],
            )
            shares = [median(used) / count * 1e6 for used in kinds]
            print(f"| {case} | {name} | {rate:,.0f} | {' | '.join(f'{share:.2f}' for share in shares)} |", flush=True)


def _topics(name: str) -> dict[str, str]:
    copies = {f"{kind} copies": f"{kind.lower()}-of-{name.split()[0].lower()}" for kind in ("raw", "Avro")}
    topics = {"raw": "raw", "Avro": "avro", **copies}
    return {kind: f"persistent://{NAMESPACE}/{topic}" for kind, topic in topics.items()}


async def _create(url: str) -> None:
    """Topics that keep what they get."""
    async with AdminClient(url) as admin:
        await admin.namespaces.create(NAMESPACE)
        await admin.namespaces.set_retention(NAMESPACE, RetentionPolicies(-1, -1))
        for topic in {topic for name in (THEIRS, OURS) for topic in _topics(name).values()}:
            await admin.topics.create_partitioned(topic, PARTITIONS)


async def _check_written(url: str, cases: Sequence[str], names: Sequence[str], rounds: int, rows: int) -> None:
    """Nobody is fast by leaving rows out."""
    async with AdminClient(url) as admin:
        for kind in [case.split()[1] for case in cases if case.startswith("write")]:
            for name in names:
                topic = _topics(name)[f"{kind} copies"]
                stored = (await admin.topics.partitioned_stats(topic))["msgInCounter"]
                assert stored >= (rounds + 1) * rows, f"{topic} has {stored} messages"


def _ours(broker: Contender, root: Path, rows: Mapping[str, int]) -> Session:
    directory = root / "our-spark"
    options = {"service.url": broker.service_url}
    given = {**rows, "ours": True, "options": options, "writing": {}, "topics": _topics(OURS)}
    given["directory"] = str(directory)
    return Session(Path(sys.executable), given, directory, {"PYTHONPATH": str(ROOT / "src")})


def _theirs(broker: Contender, root: Path, rows: Mapping[str, int]) -> Session:
    environment = _set_up()
    (scala,) = (environment / "scala").glob("*.jar")
    jars = [str(jar) for jar in (environment / "ivy" / "jars").glob("*.jar")]
    opened = [f"java.base/java.{package}" for package in OPENED] + list(OPENED_ELSEWHERE)
    conf = {
        "spark.jars": ",".join(jars),
        "spark.driver.extraClassPath": str(scala),
        "spark.driver.extraJavaOptions": " ".join(f"--add-opens={package}=ALL-UNNAMED" for package in opened),
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    options = {"service.url": broker.service_url, "admin.url": broker.web_url}
    writing = {"pulsar.producer.blockIfQueueFull": "true"}  # else it fails when it is fast
    given = {**rows, "ours": False, "options": options, "writing": writing, "topics": _topics(THEIRS), "conf": conf}
    python = environment / "bin" / "python"
    return Session(python, given, root / "their-spark", {"PYSPARK_PYTHON": str(python)})


def _set_up() -> Path:
    """The environment of Spark 3.1, with the connector's JARs as Spark itself gets them; made once."""
    target = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "interpulse" / "scala-connector")
    done = target / "complete"
    if not done.exists():
        print(f"setting up Spark 3.1 and the connector in {target}", file=sys.stderr, flush=True)
        shutil.rmtree(target, ignore_errors=True)
        venv.create(target, with_pip=True)
        # Spark 3.1 is built here, by the setuptools of its time.
        install = [str(target / "bin" / "python"), "-m", "pip", "install", "-q"]
        _run([*install, "setuptools<70", "wheel"], target)
        _run([*install, "--no-build-isolation", SPARK], target)
        nothing = target / "nothing.py"
        nothing.touch()
        packages = ["--packages", CONNECTOR, "--conf", f"spark.jars.ivy={target / 'ivy'}"]
        _run([str(target / "bin" / "spark-submit"), *packages, str(nothing)], target)
        _run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={SCALA}", f"-DoutputDirectory={target / 'scala'}"],
            target,
        )
        done.touch()
    return target


def _plain_environment() -> dict[str, str]:
    """Without what points to the environment that runs this program."""
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _run(command: list[str], directory: Path) -> None:
    """In the virtual environment of a directory."""
    plain = _plain_environment()
    environment = {**plain, "PATH": f"{directory / 'bin'}:{plain['PATH']}"}
    try:
        subprocess.run(command, env=environment, text=True, capture_output=True, timeout=SECONDS_MAX, check=True)
    except FileNotFoundError as missing:
        raise NoConnector(f"{command[0]} is needed to set up the connector, and was not found") from missing
    except subprocess.CalledProcessError as failed:
        raise NoConnector(f"{' '.join(command)} failed: {failed.stderr.strip()[-2000:]}") from failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Starts, stops, kills and restarts one real standalone Pulsar on loopback; alters its metadata while it is stopped.

    with RealPulsar(directory, cluster_name="east", settings={"allowAutoTopicCreation": "false"}) as pulsar:
        client = pulsar_client.Client(pulsar.service_url)

The data stays in `directory` until the caller removes it, so a later `start` finds it again, on the same ports.
"""

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.interop.real_pulsar.java import run_java
from tools.engines.java import QUICK_JAVA, class_archive, java_command, quick_java
from tools.engines.server import dying_with_this_thread, free_port

METADATA_PROGRAM = Path(__file__).with_name("MetadataKeys.java")
LOGGING = Path(__file__).with_name("log4j2-broker.xml")
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 15
ARCHIVE_SECONDS_MAX = 180
START_ATTEMPTS = 3

# One bookie, everything on this machine, every entry synced: what a fair comparison with one process of ours needs.
SETTINGS: Mapping[str, str] = {
    "advertisedAddress": "127.0.0.1",
    "allowLoopback": "true",
    "bindAddress": "127.0.0.1",
    "bookkeeperNumberOfChannelsPerBookie": "4",
    "brokerDeduplicationEnabled": "false",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.99",
    "functionsWorkerEnabled": "false",
    "gcWaitTime": "300000",
    "journalMaxGroupWaitMSec": "1",
    "journalSyncData": "true",
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "loadBalancerEnabled": "false",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerMaxEntriesPerLedger": "50000",
    "metricsServletTimeoutMs": "30000",
    "nettyMaxFrameSizeBytes": "8388608",  # the default leaves a full chunk of 5 MiB too little room: its write fails
    "transactionCoordinatorEnabled": "false",
}


class Address(NamedTuple):
    """Where a Pulsar listens: the binary protocol and the admin API."""

    service_url: str
    web_url: str


class DidNotStart(Exception):
    """The process ended, or did not answer in time; the message names its log files and shows their end."""


def address_from_environment() -> Address | None:
    """The running Pulsar that the environment names instead of one that we start; None when it names none."""
    service_url = os.environ.get("INTERPULSE_REAL_PULSAR_SERVICE_URL")
    web_url = os.environ.get("INTERPULSE_REAL_PULSAR_WEB_URL")
    if (service_url is None) != (web_url is None):
        raise ValueError("set INTERPULSE_REAL_PULSAR_SERVICE_URL and INTERPULSE_REAL_PULSAR_WEB_URL both, or neither")
    return Address(service_url, web_url) if service_url and web_url else None


class RealPulsar:
    """One standalone cluster. It dies with the thread that started it, where the system can arrange that."""

    def __init__(
        self,
        directory: Path,
        *,
        cluster_name: str = "standalone",
        settings: Mapping[str, str] | None = None,
        heap_max_mb: int = 1024,
        measured: bool = False,
        archive: Path | None = None,
    ) -> None:
        """`measured`: Java compiles all it can, as where figures are taken; otherwise it starts in half the time.

        `archive`: where Java keeps the classes that it loaded when it is stopped.
        """
        self.directory = directory.resolve()
        self.cluster_name = cluster_name
        self.settings = dict(settings or {})
        self.heap_max_mb = heap_max_mb
        self.measured = measured
        self.archive = archive
        self._ports: tuple[int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nobody looks at its data after this; only classes to be kept are written when it ends in good order."""
        if self.archive is None and self._process is not None:
            self.kill()
        self.stop()

    @property
    def address(self) -> Address:
        """Its two URLs, the same for every start; known once it was started."""
        assert self._ports is not None, "never started"
        binary, web = self._ports
        return Address(f"pulsar://127.0.0.1:{binary}", f"http://127.0.0.1:{web}")

    @property
    def service_url(self) -> str:
        """The URL for clients of the binary protocol."""
        return self.address.service_url

    @property
    def web_url(self) -> str:
        """The URL of the admin API."""
        return self.address.web_url

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self._process is not None, "not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self, settings: Mapping[str, str] | None = None) -> float:
        """Starts on kept or new data and returns the seconds until the admin API answered.

        `settings` are added to those given before and stay for later starts. The first start chooses free ports, and
        chooses again when another process takes one of them meanwhile.
        """
        assert not self.running, "already running"
        self.settings.update(settings or {})
        if self._ports is not None:
            return self._start_once()
        for attempt in range(1, START_ATTEMPTS + 1):
            self._ports = free_port(), free_port()
            try:
                return self._start_once()
            except DidNotStart:
                if attempt == START_ATTEMPTS:
                    raise
                shutil.rmtree(self.directory / "data", ignore_errors=True)
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Ends it in good order; kills it when that takes too long. Nothing happens when it does not run."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(ARCHIVE_SECONDS_MAX if self.archive else STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Ends it at once, as kill -9 does."""
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def restart(self, settings: Mapping[str, str] | None = None) -> float:
        """Stops it and starts it again on its data; returns the same seconds as `start`."""
        self.stop()
        return self.start(settings)

    def get_metadata(self, key: str) -> bytes | None:
        """The value of one metadata key of the stopped cluster, None when there is none."""
        printed = self._run_metadata_program("get", key)
        return printed[1:] if printed.startswith(b"+") else None

    def put_metadata(self, key: str, value: bytes) -> None:
        """Sets one metadata key of the stopped cluster."""
        self._run_metadata_program("put", key, value)

    def delete_metadata(self, key: str) -> None:
        """Removes one metadata key of the stopped cluster; fails when it is absent."""
        self._run_metadata_program("delete", key)

    def metadata_children(self, key: str) -> list[str]:
        """The names below one metadata key of the stopped cluster, sorted."""
        return sorted(self._run_metadata_program("children", key).decode().split())

    def put_all_metadata(self, values: Mapping[str, bytes]) -> None:
        """Sets many metadata keys of the stopped cluster at once."""
        lines = [f"{key}\t{base64.b64encode(value).decode()}\n" for key, value in values.items()]
        self._run_metadata_program("put-all", "/", "".join(lines).encode())

    def metadata_below(self, key: str) -> dict[str, bytes]:
        """Every metadata key below one of the stopped cluster, with its value."""
        lines = self._run_metadata_program("below", key).decode().splitlines()
        return {name: base64.b64decode(value) for name, _, value in (line.partition("\t") for line in lines)}

    def _run_metadata_program(self, verb: str, key: str, value: bytes = b"") -> bytes:
        assert not self.running, "the metadata can be altered only while the cluster is stopped"
        return run_java(METADATA_PROGRAM, str(self.directory / "data" / "metadata"), verb, key, stdin=value)

    def _start_once(self) -> float:
        started = time.monotonic()
        self._write_configuration()
        with (self.directory / "out").open("ab") as out:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            self._wait_until_ready(started + START_SECONDS_MAX)
        except BaseException:
            self.stop()
            raise
        return time.monotonic() - started

    def _write_configuration(self) -> None:
        assert self._ports is not None
        binary, web = self._ports
        ours = {"clusterName": self.cluster_name, "brokerServicePort": str(binary), "webServicePort": str(web)}
        settings = {**SETTINGS, **self.settings, **ours}
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}\n" for key, value in sorted(settings.items())]
        (self.directory / "standalone.conf").write_text("".join(lines))

    def _command(self) -> list[str]:
        assert self._ports is not None
        memory = ["-Xms256m", f"-Xmx{self.heap_max_mb}m", "-XX:MaxDirectMemorySize=1g"]
        memory += self._java_options()
        system = [f"-Dlog4j2.configurationFile={LOGGING}", "-Dio.netty.tryReflectionSetAccessible=true"]
        program = ["org.apache.pulsar.PulsarStandaloneStarter", "--config", "standalone.conf"]
        program += ["--no-functions-worker", "--no-stream-storage"]
        program += ["--metadata-dir", "data/metadata", "--bookkeeper-dir", "data/bookkeeper"]
        return [*dying_with_this_thread(), *java_command(*memory, *system, *program)]

    def _java_options(self) -> tuple[str, ...]:
        if self.archive is not None:
            return (*QUICK_JAVA, f"-XX:ArchiveClassesAtExit={self.archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
        return ("-XX:+UseZGC",) if self.measured else quick_java()

    def _wait_until_ready(self, deadline: float) -> None:
        url = f"{self.web_url}/admin/v2/namespaces/public/default"
        while not _answers(url):
            if not self.running:
                raise DidNotStart(f"the process ended; see {self.directory}\n{self._log_end()}")
            if time.monotonic() > deadline:
                raise DidNotStart(f"no answer in {START_SECONDS_MAX} s; see {self.directory}\n{self._log_end()}")
            time.sleep(0.05)

    def _log_end(self) -> str:
        files = (self.directory / name for name in ("out", "broker.log"))
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files if file.exists())


def archive_classes() -> Path:
    """Let one cluster start, and keep the classes that it loaded for all later ones and for Java clients; once."""
    target = class_archive()
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch, target.name)
            with RealPulsar(Path(scratch), archive=made):
                pass
            made.replace(target)
    return target


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code in (401, 403)
    except OSError:
        return False

"""A real broker of a cluster on a real ZooKeeper and real bookies, from the jars of the real Pulsar."""

from __future__ import annotations

import signal
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tools.engines.java import LOGGING, java_command, quick_java
from tools.engines.server import ServerProcess, free_port

START_SECONDS_MAX = 240

SETTINGS: Mapping[str, str] = {
    "clusterName": "lab",
    "advertisedAddress": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "3",
    "managedLedgerDefaultAckQuorum": "2",
    "functionsWorkerEnabled": "false",
    "transactionCoordinatorEnabled": "false",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "loadBalancerSheddingEnabled": "false",
    "metadataStoreSessionTimeoutMillis": "6000",
    "zooKeeperSessionTimeoutMillis": "6000",
}


class RealBroker:
    """One broker. It has the same ports each time it is started."""

    def __init__(
        self, directory: Path, zookeeper: str, settings: Mapping[str, str] | None = None, *, measured: bool = False
    ) -> None:
        """``zookeeper``: host and port. ``measured``: Java compiles all it can and has room, as where figures are
        taken; otherwise it starts in half the time.
        """
        self.directory = directory
        self._measured = measured
        self._ports = free_port(), free_port()
        url = f"zk:{zookeeper}"
        ports = {"brokerServicePort": str(self._ports[0]), "webServicePort": str(self._ports[1])}
        stores = {"metadataStoreUrl": url, "configurationMetadataStoreUrl": url}
        self.settings = {**SETTINGS, **stores, **ports, **(settings or {})}
        self._process = ServerProcess("a real broker", directory, self._is_healthy, START_SECONDS_MAX)

    @property
    def service_url(self) -> str:
        """The URL for clients of the binary protocol."""
        return f"pulsar://127.0.0.1:{self._ports[0]}"

    @property
    def web_url(self) -> str:
        """The URL of the admin API."""
        return f"http://127.0.0.1:{self._ports[1]}"

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        return self._process.pid

    def start(self) -> None:
        """Return when it answers the health check."""
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start it without waiting for it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "broker.conf"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in sorted(self.settings.items())))
        heap, collector = ("1024m", ("-XX:+UseZGC",)) if self._measured else ("512m", quick_java())
        memory = ("-Xms128m", f"-Xmx{heap}", f"-XX:MaxDirectMemorySize={heap}")
        system = (f"-Dlog4j2.configurationFile={LOGGING}", "-Dio.netty.tryReflectionSetAccessible=true")
        program = ("org.apache.pulsar.PulsarBrokerStarter", "--broker-conf", str(configuration))
        self._process.begin(java_command(*memory, *collector, *system, *program))

    def wait(self) -> None:
        """Return when it answers the health check."""
        self._process.wait()

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._process.kill()

    def stop(self) -> None:
        """End it in good order."""
        self._process.stop()

    def pause(self) -> None:
        """Let it do nothing, with its connections open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Undo `pause`."""
        self._process.send_signal(signal.SIGCONT)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.web_url}/admin/v2/brokers/health", timeout=10) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

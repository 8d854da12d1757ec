"""A ZooKeeper, three bookies and three brokers on this machine, as one cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from broker_process import INTERPULSE, BrokerProcess, ClusterFailed
from tools.engines.bookie import RealBookie
from tools.engines.jars import cache_directory, class_path
from tools.engines.java import java_executable
from tools.engines.zookeeper import RealZooKeeper

NAME = "lab"
SESSION_TIMEOUT_S = 6
"""Seconds until a silent broker loses its topics. The default of a broker is 30."""

BROKER_CONF = """\
clusterName={name}
metadataStoreUrl=zk:{zookeeper}
managedLedgerDefaultEnsembleSize=3
managedLedgerDefaultWriteQuorum=3
managedLedgerDefaultAckQuorum=2
metadataStoreSessionTimeoutMillis={session_timeout_ms}
brokerServicePort=0
webServicePort=0
dataDir={data_dir}
"""


class SharedCluster:
    """Processes with data and logs below one directory, on free ports of 127.0.0.1."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        """Prepare the processes. ``say`` gets a line for each step of the start, and one for the stop."""
        self._home = home
        self._begun = False
        self._say = say
        self._zookeeper = RealZooKeeper(home / "zookeeper")
        self._bookies = [RealBookie(home / f"bookie-{number}", self._zookeeper.address) for number in (1, 2, 3)]
        names = [f"broker-{number}" for number in (1, 2, 3)]
        self.brokers = [BrokerProcess(name, home, "broker", "--config", str(self._conf(name))) for name in names]

    @property
    def metadata_url(self) -> str:
        """Address of its ZooKeeper, in the form of ``metadataStoreUrl``."""
        return f"zk:{self._zookeeper.address}"

    async def start(self) -> None:
        """Start everything. Return when clients can publish. Raises Unavailable, ServerFailed and ClusterFailed.

        Java's processes end with the thread that starts them, so they are started in the caller's thread.
        """
        await self._get_jars()
        self._begun = True
        self._zookeeper.begin()
        await asyncio.to_thread(self._zookeeper.wait)
        self._say(f"ZooKeeper: {self._zookeeper.address}")
        await self._initialise()
        for bookie in self._bookies:
            bookie.start()
        await asyncio.gather(*(asyncio.to_thread(bookie.wait) for bookie in self._bookies))
        self._say(f"bookies: {', '.join(bookie.bookie_id for bookie in self._bookies)}")
        for broker in self.brokers:
            self._write_conf(broker)
        await asyncio.gather(*(broker.start() for broker in self.brokers))
        for broker in self.brokers:
            self._say(f"{broker.name}: {broker.service_url} {broker.web_url}")

    async def stop(self) -> None:
        """Stop all running processes: first the brokers, which hand over their topics, then bookies, then ZooKeeper."""
        if not self._begun:
            return
        self._say("stopping brokers, bookies and ZooKeeper")
        for broker in self.brokers:
            broker.signal_stop()
        await asyncio.gather(*(broker.wait_stopped() for broker in self.brokers))
        await asyncio.gather(*(asyncio.to_thread(bookie.stop) for bookie in self._bookies))
        await asyncio.to_thread(self._zookeeper.stop)

    async def _get_jars(self) -> None:
        java_executable()  # checked before a download that would be useless
        if not cache_directory().is_dir():
            self._say("getting ZooKeeper and BookKeeper from Maven Central: about 220 MB, once on this machine")
        await asyncio.to_thread(class_path)

    async def _initialise(self) -> None:
        arguments = ("--cluster", NAME, "--metadata-store", self.metadata_url, "--web-service-url", "http://127.0.0.1")
        output = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            str(INTERPULSE), "cluster", "init", *arguments, stdout=output, stderr=output
        )
        printed, errors = await process.communicate()
        if process.returncode != 0:
            raise ClusterFailed(f"interpulse cluster init: {errors.decode().strip()}")
        self._say(printed.decode().splitlines()[-1])

    def _conf(self, name: str) -> Path:
        return self._home / f"{name}.conf"

    def _write_conf(self, broker: BrokerProcess) -> None:
        text = BROKER_CONF.format(
            name=NAME,
            zookeeper=self._zookeeper.address,
            session_timeout_ms=SESSION_TIMEOUT_S * 1000,
            data_dir=broker.data_dir,
        )
        self._conf(broker.name).write_text(text)

"""The programs of a cluster: ZooKeeper servers, bookies and brokers, each started in the running loop.

An address is ``host:port``, such as ``bookie2:3181``; the loop decides what is behind it. Everything reaches others
through connections of the loop. There is no thread, and no file but those of the given `Files`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from interpulse.broker.app import BrokerApp
from interpulse.broker.cluster_stores import open_cluster_stores
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.registered_brokers import ProcessUsage
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.model.clusters import ClusterData
from interpulse.storage.bookkeeper.records import READ_ONLY
from interpulse.storage.segments.files import Files
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NodeExists, NoNode, NotConnected, OutcomeUnknown, SessionExpired
from interpulse.storage.zookeeper.link import LinkConfig
from interpulse.storage.zookeeper.session import SessionEvent
from tests.support.bookie_journal import BookieJournal, Job
from tests.support.scripted_bookie import ScriptedBookie, registered_path, registration
from tests.support.scripted_zookeeper import ScriptedZooKeeper, ZooKeeperServer

CLUSTER: Final = "lab"
_NO_DIRECTORY: Final = Path("/nowhere")
_USAGE: Final = ProcessUsage(cpu_s=0.0, cores=1, memory_mib=100.0, memory_limit_mib=1000.0)


async def start_zookeeper(zookeeper: ScriptedZooKeeper, address: str) -> ZooKeeperServer:
    """Start one of the servers of an ensemble, whose earlier process at this address was killed."""
    for earlier in [each for each in zookeeper.servers if each.address == address]:
        zookeeper.forget(earlier)
    return await zookeeper.start_server(*_parsed(address))


async def set_up(servers: str, web_url: str, service_url: str) -> None:
    """Create the nodes of a cluster in ZooKeeper. The addresses are for other clusters."""
    await set_up_cluster(servers, NewCluster(CLUSTER, ClusterData(web_url, broker_service_url=service_url)))


class Bookie:
    """A bookie with a journal, registered for as long as its session with ZooKeeper lives."""

    def __init__(self, bookie: ScriptedBookie, nodes: ZooKeeperClient) -> None:
        self.bookie = bookie
        self._nodes = nodes
        self._registering: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        bookie_id: str,
        address: str,
        servers: str,
        files: Files,
        put: Callable[[Job], None] = lambda job: job(),
    ) -> Self:
        """Read the journal back, listen and register. ``put`` runs the jobs of the disk. Raise OSError."""
        host, port = _parsed(address)
        open_journal = partial(BookieJournal.open, files, Path(f"/{bookie_id}"), put)
        bookie = ScriptedBookie(bookie_id, host=host, port=port, open_journal=open_journal)
        nodes = await ZooKeeperClient.connect(servers, LinkConfig())
        started = cls(bookie, nodes)
        nodes.on_session(started._on_session)
        bookie.on_failed = started._begin_leaving
        try:
            await bookie.start()
            await started._register()
        except BaseException:
            await started.stop()
            raise
        return started

    async def stop(self) -> None:
        """End the registration, and serve no more."""
        await self._leave()
        await self.bookie.kill()

    def _begin_leaving(self) -> None:
        self._leaving = asyncio.create_task(self._leave(), name=f"end of bookie {self.bookie.bookie_id}")

    async def _leave(self) -> None:
        if self._registering is not None:
            self._registering.cancel()
            await asyncio.wait([self._registering])
        await self._nodes.close()

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.RENEWED:
            self._registering = asyncio.create_task(self._register(), name=f"registration of {self.bookie.bookie_id}")

    async def _register(self) -> None:
        path = registered_path(self.bookie)
        while True:
            try:
                await self._nodes.create_parents(f"{READ_ONLY}/x")
                with suppress(NoNode):
                    await self._nodes.delete(path)  # of an earlier process, whose session may live
                await self._nodes.create(path, registration(self.bookie), ephemeral=True)
            except (NodeExists, NotConnected, OutcomeUnknown):
                continue  # each attempt waits for a connection
            except SessionExpired:
                return  # the next session registers
            else:
                return


def broker(
    address: str, web_address: str, servers: str, *, settings: Mapping[str, Any] | None = None, **parts: Any
) -> BrokerApp:
    """Return a broker of the cluster, not started. Both addresses have the same host.

    ``settings`` are fields of its configuration, ``parts`` further arguments of `BrokerApp`.
    """
    host, port = _parsed(address)
    config = BrokerConfig(
        cluster_name=CLUSTER,
        data_dir=str(_NO_DIRECTORY / host),
        bind_address=host,
        broker_service_port=port,
        web_service_port=_parsed(web_address)[1],
        metadata_store_url=f"zk:{servers}",
        replication_job="external",
        **(settings or {}),
    )
    return BrokerApp(config, open_stores=open_cluster_stores, process_usage=lambda: _USAGE, **parts)


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)

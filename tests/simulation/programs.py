"""Programs of nodes: the shipped broker over the disk and the network of its node."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.stores import OpenStores, Stores, log_config
from interpulse.proxy.app import CannotStartProxy, ProxyApp
from interpulse.proxy.proxy_config import load_config as load_proxy_config
from interpulse.serving.listening import ServiceAddress
from interpulse.storage.api import Change, DataDirectoryUnusable
from interpulse.storage.segments.disk_space import DiskSpace
from interpulse.storage.segments.journal import open_log_store
from tests.simulation.network import BoundAddress
from tests.simulation.nodes import Node, Program
from tests.support.memory_storage import MemoryMetadataStore, MemoryTree

BINARY_PORT, WEB_PORT = 6650, 8080
_SEGMENT_BYTES = 64 * 1024
"""Small, so that a run has many segments."""
STARTED_AGAIN_SECONDS = 1.0
"""The pause of a supervisor, when a program could not start."""


class CommittedMetadata(MemoryMetadataStore):
    """Metadata of one node: commits come one after the other, each a moment later, and outlive the node.

    It stands for SQLite, which is trusted: a commit that was under way at the end of a life has happened, or has not.
    """

    def __init__(self, node: Node, tree: MemoryTree) -> None:
        for earlier in list(tree.stores):
            tree.stores.remove(earlier)
        super().__init__(tree)
        self._worker = node.worker("metadata")
        self._loop = node.loop
        self._in_flight: dict[str, int] = {}

    async def commit(self, changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        keys = [change.key for change in changes]
        for key in keys:
            self._in_flight[key] = self._in_flight.get(key, 0) + 1

        def apply() -> None:
            try:
                self._check_open()
                self.tree.commit(changes, expect, self.session.id)
            except Exception as error:  # noqa: BLE001 - raised where the commit is awaited
                loop.call_soon(finish, error)
            else:
                loop.call_soon(finish, None)

        def finish(error: Exception | None) -> None:
            for key in keys:
                self._in_flight[key] -= 1
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        self._worker.put(apply)
        await done

    def announce(self, keys: Sequence[str]) -> None:
        self._loop.call_soon(super().announce, keys)

    def unchanged(self, versions: Mapping[str, int | None]) -> bool:
        return not any(self._in_flight.get(key) for key in versions) and super().unchanged(versions)


def stores_of(node: Node, tree: MemoryTree) -> OpenStores:
    """Return the function that opens the stores of a broker on its own: segments on the disk of the node."""

    async def open_stores(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
        directory = Path(config.data_dir)
        disk_space = DiskSpace(directory, node.disk, config.disk_reserve_in_mb * 1024 * 1024)
        metadata = CommittedMetadata(node, tree)
        opened.push_async_callback(metadata.close)
        logs = await open_log_store(
            directory / "log",
            metadata,
            config=log_config(config),
            segment_bytes_max=_SEGMENT_BYTES,
            files=node.disk,
            worker=node.worker,
            on_full=disk_space.ran_out,
            on_write=disk_space.takes,
        )
        opened.push_async_callback(logs.close)
        return Stores(metadata, logs, disk_space)

    return open_stores


def bind(address: ServiceAddress) -> socket.socket:
    """Bind an address of the simulated network."""
    return cast("socket.socket", BoundAddress(address.host, address.port))


def broker_settings(node: Node, settings: Mapping[str, object]) -> BrokerConfig:
    """Return the settings of a broker on this node."""
    own = {
        "dataDir": f"/{node.name}",
        "bindAddress": node.name,
        "advertisedAddress": node.name,
        "brokerServicePort": BINARY_PORT,
        "webServicePort": WEB_PORT,
        "replicationJob": "external",
    }
    return load_config(settings=[f"{key}={value}" for key, value in {**own, **settings}.items()]).config


async def started_broker(node: Node, tree: MemoryTree, settings: Mapping[str, object]) -> BrokerApp:
    """Start a standalone broker with these metadata, again and again while its data directory cannot be used."""
    while True:
        app = BrokerApp(broker_settings(node, settings), open_stores=stores_of(node, tree), bind=bind)
        try:
            await app.start()
        except DataDirectoryUnusable:
            await asyncio.sleep(STARTED_AGAIN_SECONDS)
        else:
            return app


class ServingBroker:
    """A standalone broker with these metadata, which runs until its node ends."""

    def __init__(self, tree: MemoryTree, settings: Mapping[str, object]) -> None:
        self.app: BrokerApp | None = None
        """The broker of the present life, once it serves."""
        self._tree = tree
        self._settings = settings

    async def run(self, node: Node) -> None:
        """Serve: the program of the node."""
        self.app = None
        self.app = await started_broker(node, self._tree, self._settings)
        await asyncio.get_running_loop().create_future()


def broker_alone(tree: MemoryTree, settings: Mapping[str, object]) -> Program:
    """Return the program of a standalone broker with these metadata."""
    return ServingBroker(tree, settings).run


class ServingProxy:
    """A proxy with these settings, which runs until its node ends."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.app: ProxyApp | None = None
        """The proxy of the present life, once it serves."""
        self._settings = settings

    async def run(self, node: Node) -> None:
        """Serve: the program of the node."""
        self.app = None
        own = {
            "bindAddress": node.name,
            "advertisedAddress": node.name,
            "servicePort": BINARY_PORT,
            "webServicePort": WEB_PORT,
        }
        config = load_proxy_config(
            settings=[f"{key}={value}" for key, value in {**own, **self._settings}.items()]
        ).config
        while True:
            app = ProxyApp(config, bind=bind)
            try:
                await app.start()
            except CannotStartProxy:
                await app.stop()
                await asyncio.sleep(STARTED_AGAIN_SECONDS)
            else:
                self.app = app
                await asyncio.get_running_loop().create_future()

"""The import of a data directory into a cluster, as the program of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.cluster_import.cluster_import import ClusterImport, Imported, ImportRefused
from interpulse.broker.cluster_import.source import DataDirectory
from interpulse.broker.cluster_stores import open_cluster_stores
from interpulse.broker.committer import IN_CLUSTER
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.errors import PulsarError
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.records import NO_ENTRY_YET, id_of
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR
from interpulse.storage.managed_ledger.schema_codec import decode_locator
from interpulse.storage.segments.files import ReadFile, ReadOnlyFiles, Room
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.simulation.cluster import CLUSTER
from tests.simulation.cluster_nodes import PLACEMENT, SERVERS
from tests.simulation.disk import SimulatedDisk
from tests.simulation.nodes import Node
from tests.simulation.programs import STARTED_AGAIN_SECONDS
from tests.support.memory_storage import MemoryMetadataStore, MemoryTree
from tests.support.zookeeper_tree import Nodes

_CONFIG: Final = BrokerConfig(cluster_name=CLUSTER, metadata_store_url=f"zk:{SERVERS}", **PLACEMENT)


class ReadOnlyDisk(ReadOnlyFiles):
    """The files of a simulated disk, which stay as they are."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk

    def open(self, path: Path) -> ReadFile:
        return self._disk.open(path)

    def names(self, directory: Path) -> list[str]:
        return self._disk.names(directory)

    def rewrite(self, path: Path, offset: int, content: bytes) -> None:
        self._disk.sync_file(path)

    def sync_directory(self, directory: Path) -> None:
        self._disk.sync_directory(directory)

    def room(self, directory: Path) -> Room:
        return self._disk.room(directory)


class Importing:
    """Imports the data directory of its node, with these metadata, and again when that has ended."""

    def __init__(self, tree: MemoryTree) -> None:
        self.finished: list[str] = []
        """The results of the imports that copied everything."""
        self.lines: list[str] = []
        """The lines that the last one has printed."""
        self.refusals: list[str] = []
        self._tree = tree

    async def run(self, node: Node) -> None:
        """Import again and again: the program of the node."""
        while True:
            try:
                imported = await self._import(node)
            except ImportRefused as refused:
                self.refusals.append(str(refused))
            except PulsarError as error:
                node.world.note("import failed", error)
            else:
                if not imported.failed:
                    self.finished.append(str(imported))
            await asyncio.sleep(STARTED_AGAIN_SECONDS)

    async def _import(self, node: Node) -> Imported:
        copied = MemoryTree()
        copied.load(self._tree.values)
        self.lines = []
        async with AsyncExitStack() as opened:
            source = await DataDirectory.with_metadata(
                MemoryMetadataStore(copied),
                Path(f"/{node.name}"),
                opened,
                files=ReadOnlyDisk(node.disk),
                worker=node.worker,
            )
            stores = await open_cluster_stores(_CONFIG, opened)
            return await ClusterImport(source, stores, CLUSTER, say=partial(self._say, node)).run()

    def _say(self, node: Node, line: str) -> None:
        self.lines.append(line)
        node.world.note("import", line)


async def left_behind(nodes: Nodes) -> list[int]:
    """Return the ledgers with entries that no topic of the cluster has, but for those of schemas.

    A schema whose upload is interrupted leaves its ledger behind on every broker.
    """
    unnamed = {ledger_id for path in nodes if (ledger_id := id_of(path)) is not None} - set(_named(nodes))
    async with AsyncExitStack() as opened:
        client = await ZooKeeperClient.connect(SERVERS)
        opened.push_async_callback(client.close)
        bookkeeper = BookKeeperClient(client)
        opened.push_async_callback(bookkeeper.close)
        readers = [await bookkeeper.recover(ledger_id) for ledger_id in sorted(unnamed)]
    return [
        reader.ledger_id
        for reader in readers
        if reader.last_confirmed != NO_ENTRY_YET and reader.metadata.custom.get("component") != b"schema"
    ]


def _named(nodes: Nodes) -> Iterator[int]:
    """Yield the ledgers that records name."""
    for path, node in nodes.items():
        if not node.value:
            continue
        topic = keys.topic_of_record(path) if path.startswith(keys.TOPIC_RECORDS) else None
        if topic is not None and path == keys.topic_record(topic):
            yield from (row.ledger_id for row in IN_CLUSTER.topic_records.decode(node.value).ledgers)
        elif topic is not None and path.endswith(f"/{COMPACTION_CURSOR}"):
            yield IN_CLUSTER.cursors.decode(COMPACTION_CURSOR, node.value).numbers[COMPACTED_LEDGER]
        elif path.startswith(keys.SCHEMAS):
            yield from (place.position.ledger for place in decode_locator(node.value))

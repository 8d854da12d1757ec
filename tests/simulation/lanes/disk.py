"""The disk of a node as the driver of a lane sees it."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from tests.simulation.nodes import Node


class NodeDisk:
    """`StateDisk` on the simulated disk of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def read(self, path: Path) -> str | None:
        try:
            file = self._node.disk.open(path)
        except FileNotFoundError:
            return None
        return file.read(file.size, 0).decode()

    def version(self, path: Path) -> Hashable:
        return self.read(path)

    def names(self, directory: Path) -> list[str]:
        return self._node.disk.names(directory)

    def write(self, path: Path, text: str, *, synced: bool) -> None:
        disk = self._node.disk
        disk.unlink(path)
        file = disk.create(path)
        file.write(text.encode())
        if synced:
            file.sync()

    def rename(self, source: Path, target: Path) -> None:
        self._node.disk.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._node.disk.unlink(path)

    def sync_directory(self, directory: Path) -> None:
        self._node.disk.sync_directory(directory)

"""A real ZooKeeper for the length of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.engines.zookeeper import RealZooKeeper


@contextmanager
def real_zookeeper(directory: Path) -> Iterator[RealZooKeeper]:
    """A running one, ended at the end."""
    zookeeper = RealZooKeeper(directory)
    zookeeper.start()
    try:
        yield zookeeper
    finally:
        zookeeper.kill()

"""A cluster as it is at a moment, seen from outside: locks, sessions and ledgers in ZooKeeper, entries on disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from interpulse.broker.metadata_paths import bundle_lock
from interpulse.model.brokers import BundleLock
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.rules.bundles import bundle_hash
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.bookie_journal import Kind, records_in
from tests.support.scripted_zookeeper import ScriptedZooKeeper


class Owner(NamedTuple):
    """The broker that the lock of a bundle names, and the session that the lock ends with."""

    broker: str
    session: int


class ClusterView:
    """The state of a cluster, as far as its judge looks at it."""

    def __init__(self, world: World, zookeeper: ScriptedZooKeeper, topic: TopicName, bookies: Sequence[Node]) -> None:
        self._world = world
        self._zookeeper = zookeeper
        self._topic = topic
        self._bookies = bookies
        self._read_upto: dict[tuple[str, Path], int] = {}
        self._copies: dict[Position, set[str]] = defaultdict(set)

    @property
    def seconds(self) -> float:
        """The time of the world."""
        return self._world.seconds

    def value(self, path: str) -> bytes | None:
        """Return the value of a node of ZooKeeper, None if it does not exist."""
        node = self._zookeeper.nodes.get(path)
        return None if node is None else node.value

    def owner(self) -> Owner | None:
        """Return the owner of the topic's bundle, None if the bundle is free."""
        namespace, position = self._topic.namespace_name, bundle_hash(self._topic)
        above = self._zookeeper.nodes.get(bundle_lock(namespace, "").rstrip("/"))
        for bundle in above.children if above is not None else ():
            lower, _, upper = bundle.partition("_")
            if int(lower, 16) <= position < int(upper, 16):
                lock = self._zookeeper.nodes[bundle_lock(namespace, bundle)]
                return Owner(_broker_of(lock.value), lock.owner)
        return None

    def has_session(self, broker: Node) -> bool:
        """Return True if a session of the broker lives, and the servers may not end it yet."""
        sessions = self._zookeeper.sessions.values()
        return any(session.deadline >= self._world.now for session in sessions if session.client_host == broker.address)

    def copies(self, position: Position) -> int:
        """Return the number of bookies on whose disks the entry is, synced."""
        copies = self._copies[position]
        if len(copies) < len(self._bookies):
            self._read_journals()
        return len(copies)

    def _read_journals(self) -> None:
        for bookie in self._bookies:
            for path in bookie.disk.names_synced:
                content = bookie.disk.names_synced[path]
                begin = self._read_upto.get((bookie.name, path), 0)
                if begin == content.synced:
                    continue
                end = begin
                for record, length in records_in(bytes(content.written[begin : content.synced])):
                    end = begin + length
                    if record.kind is Kind.ADD:
                        self._copies[Position(record.ledger_id, record.entry_id)].add(bookie.name)
                self._read_upto[bookie.name, path] = end


@lru_cache
def _broker_of(lock: bytes) -> str:
    return BundleLock.load(lock).broker.broker_id.partition(":")[0]

"""The view that the judge of a cluster has of ZooKeeper and of the disks of bookies."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from interpulse.model.brokers import BrokerAddresses, BundleLock, ListenerAddresses
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.zookeeper.records import CREATE, EPHEMERAL, Create
from tests.simulation.cluster_view import ClusterView, Owner
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.bookie_journal import KEY_SIZE, Kind, Record
from tests.support.scripted_zookeeper import ScriptedZooKeeper, ServerSession

TOPIC: Final = TopicName.parse("persistent://public/default/t")
JOURNAL: Final = Path("/bookie/00000000.journal")
SESSION: Final = 7


class Cluster:
    """A ZooKeeper without servers, and a bookie that does not run."""

    def __init__(self, world: World) -> None:
        self.zookeeper = ScriptedZooKeeper()
        self.bookie, self.broker = Node(world, "bookie"), Node(world, "one")
        self.view = ClusterView(world, self.zookeeper, TOPIC, [self.bookie])

    def create(self, path: str, value: bytes = b"", flags: int = 0) -> None:
        self.zookeeper.write(CREATE, Create(path, value, flags=flags), SESSION)

    def connect(self, seconds: float) -> None:
        connection = cast("Any", SimpleNamespace(client_host=self.broker.address))
        self.zookeeper.sessions[SESSION] = ServerSession(b"", 1.0, seconds, connection)


@pytest.fixture
def cluster(world: World) -> Cluster:
    return Cluster(world)


def _record(entry: int) -> bytes:
    return Record(Kind.ADD, 1, entry, b"k" * KEY_SIZE, b"packet").pack()


def test_owner_when_bundles_have_locks_then_it_is_that_of_the_topics_bundle(cluster: Cluster) -> None:
    for path in ("/namespace", "/namespace/public", "/namespace/public/default"):
        cluster.create(path)
    assert cluster.view.owner() is None
    for name, bundle in [("one", "0x00000000_0x80000000"), ("two", "0x80000000_0xffffffff")]:
        lock = BundleLock(BrokerAddresses(f"{name}:8080", ListenerAddresses(f"pulsar://{name}:6650")))
        cluster.create(f"/namespace/public/default/{bundle}", lock.dump(), EPHEMERAL)
    assert cluster.view.owner() == Owner("two", SESSION)


def test_session_when_the_servers_may_end_it_then_the_broker_has_none(cluster: Cluster, world: World) -> None:
    assert not cluster.view.has_session(cluster.broker)
    cluster.connect(world.now + 1)
    assert cluster.view.has_session(cluster.broker)
    assert not cluster.view.has_session(cluster.bookie)
    cluster.connect(world.now - 1)
    assert not cluster.view.has_session(cluster.broker)


def test_copies_when_an_entry_is_not_synced_then_it_does_not_count(cluster: Cluster) -> None:
    file = cluster.bookie.disk.create(JOURNAL)
    cluster.bookie.disk.sync_directory(JOURNAL.parent)
    file.write_durably(_record(0))
    assert cluster.view.copies(Position(1, 0)) == 1
    file.write(_record(1))
    assert cluster.view.copies(Position(1, 1)) == 0
    file.sync()
    assert cluster.view.copies(Position(1, 1)) == 1


def test_writes_when_applied_then_their_changes_are_reported_with_the_session(cluster: Cluster) -> None:
    seen: list[tuple[list[str], int]] = []
    cluster.zookeeper.on_write = lambda events, session: seen.append(([event.path for event in events], session))
    cluster.create("/a")
    assert seen == [(["/a"], SESSION)]

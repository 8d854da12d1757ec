"""A site that comes back asks its peer before it serves (PIP-188's counterpart of ours, ``failoverPeer``)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpulse.broker.assembly import CannotServe
from interpulse.failover.our_site import OurSite
from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.site import SiteAccess
from interpulse.model.clusters import ClusterData
from interpulse.model.names import NamespaceName
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.waiting import until

NAMESPACE = "public/default"
TOPIC = "persistent://public/default/orders"


class Pair:
    """Clusters east, which has a peer, and west, whose address east knows."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.west = InProcessBroker(directory / "west", {"clusterName": "west"})
        self.east = self._east()

    def _east(self, **settings: str) -> InProcessBroker:
        return InProcessBroker(
            self._directory / "east", {"clusterName": "east", "failoverPeer": "west", "failoverPeerWait": 1, **settings}
        )

    def restart_east(self, **settings: str) -> None:
        self.east = self._east(**settings).start()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Both clusters after an orderly start: east serves, and stopped; west is on standby and runs."""
    pair = Pair(tmp_path)
    with pair.west:
        with pair.east as east:
            east.admin.clusters.create("west", ClusterData(service_url=pair.west.web_url))
            east.admin.topics.create(TOPIC)
            east.admin.namespaces.set_failover_role(NAMESPACE, "active", 1)
            pair.west.admin.namespaces.set_failover_role(NAMESPACE, "standby", 1)
        yield pair
        pair.east.stop()


def answer_to_producer(broker: InProcessBroker, request: int = 1) -> object:
    with RawClient(broker.service_url) as client:
        return client.ask(commands.producer(request, request, TOPIC))


def test_site_that_comes_back_when_the_other_one_serves_then_takes_no_local_message(pair: Pair) -> None:
    pair.west.admin.namespaces.set_failover_role(NAMESPACE, "active", 2)
    pair.restart_east()
    refused = answer_to_producer(pair.east)
    assert isinstance(refused, pb.CommandError)
    assert refused.error == pb.ServiceNotReady
    until(lambda: pair.east.admin.namespaces.failover_role(NAMESPACE)["role"] == "standby;epoch=2")
    shown = pair.east.admin.namespaces.failover_role(NAMESPACE)["peer"]
    assert (shown["cluster"], shown["role"], shown["epoch"]) == ("west", "active;epoch=2", 2)
    assert isinstance(answer_to_producer(pair.east), pb.CommandError)


def test_site_that_comes_back_when_it_still_serves_then_is_active_after_the_answer(pair: Pair) -> None:
    pair.restart_east()
    until(lambda: isinstance(answer_to_producer(pair.east), pb.CommandProducerSuccess))
    assert pair.east.admin.namespaces.failover_role(NAMESPACE)["role"] == "active;epoch=1"


def test_site_that_comes_back_alone_then_serves_after_the_wait(pair: Pair) -> None:
    pair.west.stop()
    pair.restart_east()
    refused = answer_to_producer(pair.east)
    assert isinstance(refused, pb.CommandError)
    assert refused.message.startswith("Namespace public/default waits for the role at west, epoch 1")
    until(lambda: isinstance(answer_to_producer(pair.east), pb.CommandProducerSuccess))


def test_site_that_comes_back_alone_and_holds_then_serves_when_the_peer_answers(pair: Pair) -> None:
    pair.west.stop()
    pair.restart_east(failoverWithoutPeer="hold")
    assert isinstance(answer_to_producer(pair.east), pb.CommandError)
    pair.west.start()
    pair.east.admin.clusters.update("west", ClusterData(service_url=pair.west.web_url))
    until(lambda: isinstance(answer_to_producer(pair.east), pb.CommandProducerSuccess))


def test_site_that_runs_when_the_other_one_is_promoted_then_becomes_standby(pair: Pair) -> None:
    pair.restart_east()
    with RawClient(pair.east.service_url) as client:
        until(lambda: isinstance(client.ask(commands.producer(1, 1, TOPIC)), pb.CommandProducerSuccess))
        pair.west.admin.namespaces.set_failover_role(NAMESPACE, "active", 2)
        assert client.answer().command.close_producer.producer_id == 1
    assert pair.east.admin.namespaces.failover_role(NAMESPACE)["role"] == "standby;epoch=2"


def test_peer_that_is_the_cluster_itself_then_the_broker_does_not_start(tmp_path: Path) -> None:
    broker = InProcessBroker(tmp_path, {"clusterName": "east", "failoverPeer": "east"})
    with pytest.raises(CannotServe, match="failoverPeer=east is this cluster itself; name the other cluster"):
        broker.start()


async def test_site_that_waits_for_its_peer_then_its_stored_role_counts_for_a_switch(pair: Pair) -> None:
    """The role in force is provisional: a switch that takes it for a fence of its own skips its preflight."""
    await asyncio.to_thread(pair.west.stop)
    await asyncio.to_thread(pair.restart_east, failoverWithoutPeer="hold")
    shown = await asyncio.to_thread(pair.east.admin.namespaces.failover_role, NAMESPACE)
    assert shown["role"] == "fenced;epoch=1"
    address = SiteAddress(cluster="east", service_url=pair.east.service_url, admin_url=pair.east.web_url)
    async with SiteAccess("east", address, "west", (NamespaceName.parse(NAMESPACE),)) as east:
        (role,) = (await OurSite(east).roles()).values()
    assert str(role) == "active;epoch=1"

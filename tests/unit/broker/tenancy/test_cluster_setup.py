"""A cluster set up in a scripted ZooKeeper; the comparison with Pulsar's own tool is in `tests/interop`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import InvalidRequest, PreconditionFailed
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.scripted_zookeeper import scripted_zookeeper

LAB = NewCluster("lab", ClusterData("http://127.0.0.1:1", broker_service_url="pulsar://127.0.0.1:2"))


@pytest.fixture
async def servers() -> AsyncIterator[str]:
    async with scripted_zookeeper() as zookeeper:
        yield await zookeeper.listen()


async def test_cluster_when_set_up_again_then_nothing_is_made_and_what_was_changed_stays(servers: str) -> None:
    made = await set_up_cluster(servers, LAB)
    assert made[0] == "/stream/metadata"
    assert "/admin/clusters/lab" in made
    client = await ZooKeeperClient.connect(servers)
    await client.set("/admin/clusters/lab", b'{"serviceUrl":"http://moved:1"}')
    await client.delete("/bookies")
    assert await set_up_cluster(servers, LAB) == ["/bookies"]
    assert (await client.get("/admin/clusters/lab")).value == b'{"serviceUrl":"http://moved:1"}'
    assert (await client.get("/stream/metadata")).value == b"\x08\x10"
    await client.close()


async def test_cluster_when_it_has_many_containers_then_their_number_is_a_varint(servers: str) -> None:
    await set_up_cluster(servers, replace(LAB, stream_containers=300))
    client = await ZooKeeperClient.connect(servers)
    assert (await client.get("/stream/metadata")).value == b"\x08\xac\x02"
    await client.close()


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (replace(LAB, name="a/b"), "Cluster name is not valid"),
        (replace(LAB, addresses=ClusterData()), "--web-service-url"),
        (replace(LAB, addresses=ClusterData("nonsense")), "Illegal service url"),
        (replace(LAB, bundles=0), "--default-namespace-bundle-number 0 has to be at least 1"),
        (replace(LAB, transaction_coordinators=0), "--initial-num-transaction-coordinators 0"),
        (replace(LAB, stream_containers=-1), "--initial-num-stream-storage-containers -1"),
    ],
)
async def test_cluster_that_cannot_be_is_refused_before_anything_is_made(
    servers: str, cluster: NewCluster, problem: str
) -> None:
    with pytest.raises((PreconditionFailed, InvalidRequest), match=problem):
        await set_up_cluster(servers, cluster)
    client = await ZooKeeperClient.connect(servers)
    assert (await client.children("/")).names == []
    await client.close()

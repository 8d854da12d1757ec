"""Many topics of a broker of a cluster, unloaded and opened again: how often ZooKeeper is asked, how many at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.cluster_stores import in_cluster
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.client import Client, Producer
from interpulse.model.clusters import ClusterData
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.rest_client import call
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper

TOPICS = 60
REQUESTS_MAX = {"unload": 2, "open": 9}
"""Of one topic."""

TOGETHER_MIN = 10
"""Requests that come together on the average where nothing waits for another topic; at most as many as topics."""


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as running:
        yield running


@pytest.fixture
async def app(zookeeper: ScriptedZooKeeper, tmp_path: Path) -> AsyncIterator[BrokerApp]:
    """A broker of a cluster of three bookies."""
    servers = await zookeeper.listen()
    addresses = ClusterData("http://127.0.0.1:1", broker_service_url="pulsar://127.0.0.1:2")
    await set_up_cluster(servers, NewCluster("lab", addresses))
    async with AsyncExitStack() as running:
        nodes = await ZooKeeperClient.connect(servers)
        running.push_async_callback(nodes.close)
        await running.enter_async_context(scripted_bookies(nodes, 3))
        given = {
            "clusterName": "lab",
            "metadataStoreUrl": f"zk:{servers}",
            "dataDir": str(tmp_path / "data"),
            "brokerServicePort": "0",
            "webServicePort": "0",
        }
        broker = BrokerApp(load_config(options=given, in_cluster=True).config, open_stores=in_cluster)
        await broker.start()
        running.push_async_callback(broker.stop)
        yield broker


async def test_topics_when_unloaded_then_are_closed_and_opened_together_with_few_requests_each(
    zookeeper: ScriptedZooKeeper, app: BrokerApp
) -> None:
    asked: dict[str, tuple[int, int, Counter[str]]] = {}

    async def counted(what: str, work: Callable[[], Awaitable[object]]) -> None:
        requests, reads = len(zookeeper.requests), zookeeper.reads
        await work()
        made = zookeeper.requests[requests:]
        asked[what] = len(made), zookeeper.reads - reads, Counter(made)

    async with Client(app.service_url, backoff_initial_ms=10, backoff_max_ms=100) as client:
        names = [f"public/default/moved-{number}" for number in range(TOPICS)]
        producers: list[Producer] = [await client.create_producer(name) for name in names]

        async def publish() -> None:
            await asyncio.gather(*(producer.send(b"x") for producer in producers))

        async def unload() -> None:
            assert (await call(app.web_url, "PUT", "namespaces/public/default/unload")).status == 204

        await publish()
        await counted("unload", unload)
        await counted("open", publish)
        assert len(app.registry.topics()) == TOPICS
    for what, (requests, reads, by_name) in asked.items():
        assert requests <= REQUESTS_MAX[what] * TOPICS, (what, by_name)
        assert requests >= TOGETHER_MIN * reads, (what, requests, reads)

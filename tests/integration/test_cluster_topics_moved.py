"""Many topics of a broker of a cluster, unloaded, or left by one that is killed, and opened again: what it takes."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple
from weakref import ReferenceType, ref

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.cluster_stores import in_cluster
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.client import Client, Consumer, Producer
from interpulse.model.clusters import ClusterData
from interpulse.storage.bookkeeper.replica import Replica
from interpulse.storage.bookkeeper.writer import LedgerWriter
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.managed_ledger.cursor_codec import IN_RECORD, decode_record
from interpulse.storage.managed_ledger.topic_codec import PulsarTopicRecords
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.rest_client import call
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.standalone_process import BrokerProcess, interpulse
from tests.support.waiting import eventually

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
async def servers(zookeeper: ScriptedZooKeeper) -> AsyncIterator[str]:
    """The address of the metadata of a cluster of three bookies."""
    servers = await zookeeper.listen()
    addresses = ClusterData("http://127.0.0.1:1", broker_service_url="pulsar://127.0.0.1:2")
    await set_up_cluster(servers, NewCluster("lab", addresses))
    async with AsyncExitStack() as running:
        nodes = await ZooKeeperClient.connect(servers)
        running.push_async_callback(nodes.close)
        await running.enter_async_context(scripted_bookies(nodes, 3))
        yield servers


def settings(servers: str, directory: Path) -> dict[str, str]:
    """Those of a broker of the cluster."""
    return {
        "clusterName": "lab",
        "metadataStoreUrl": f"zk:{servers}",
        "dataDir": str(directory),
        "brokerServicePort": "0",
        "webServicePort": "0",
    }


Start = Callable[[], Awaitable[BrokerApp]]


@pytest.fixture
async def start(servers: str, tmp_path: Path) -> AsyncIterator[Start]:
    """`await start()`: a broker in this process, stopped at the end."""
    async with AsyncExitStack() as running:

        async def start_broker() -> BrokerApp:
            config = load_config(options=settings(servers, tmp_path / "data"), in_cluster=True).config
            broker = BrokerApp(config, open_stores=in_cluster)
            await broker.start()
            running.push_async_callback(broker.stop)
            return broker

        yield start_broker


async def test_topics_when_unloaded_then_are_closed_and_opened_together_with_few_requests_each(
    zookeeper: ScriptedZooKeeper, start: Start
) -> None:
    app = await start()
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


OF_LEDGERS = {LedgerWriter, Replica}
"""What only brokers of clusters have: none that another test has left running."""


async def test_topics_when_unloaded_then_their_memory_is_free_without_a_search_for_garbage(start: Start) -> None:
    app = await start()
    async with Client(app.service_url) as client:
        topics = [await opened(client, f"public/default/freed-{number}") for number in range(3)]
        for topic in topics:
            await topic.producer.send(b"x")
            topic.consumers["a"].acknowledge(await topic.consumers["a"].receive())
    await eventually(lambda: not any(topic.clients.connected for topic in app.registry.topics()))
    await app.registry.flush()  # one that is refused while the topic goes would hold it in its error
    gc.collect()
    held = held_by_topics(app)
    assert {type(each()) for each in held} == {Topic, Subscription, TopicLog}
    assert counted_of_ledgers().keys() == OF_LEDGERS
    gc.disable()
    try:
        assert (await call(app.web_url, "PUT", "namespaces/public/default/unload")).status == 204
        await eventually(lambda: all(each() is None for each in held) and not counted_of_ledgers())
    finally:
        gc.enable()


def held_by_topics(app: BrokerApp) -> list[ReferenceType[object]]:
    """Those of this broker: one of another test may run in this process."""
    topics = [topic for topic in app.registry.topics() if isinstance(topic, Topic)]
    subscriptions = [each for topic in topics for each in topic.subscriptions.values()]
    return [ref(each) for each in (*topics, *subscriptions, *(topic.log for topic in topics))]


def counted_of_ledgers() -> Counter[type]:
    return Counter(kind for kind in map(type, gc.get_objects()) if kind in OF_LEDGERS)


KILLED = 500
SUBSCRIPTIONS = ("a", "b")
FLUSHED, UNFLUSHED, IN_FLIGHT = b"flushed", b"unflushed", b"in flight"


class Killed(NamedTuple):
    """One of the topics, and who works on it."""

    name: str
    producer: Producer
    consumers: dict[str, Consumer]

    @property
    def record(self) -> str:
        return f"/managed-ledgers/public/default/persistent/{self.name.rpartition('/')[2]}"


async def opened(client: Client, name: str) -> Killed:
    consumers = {each: await client.subscribe(name, each) for each in SUBSCRIPTIONS}
    return Killed(name, await client.create_producer(name, send_timeout_ms=120_000, batching_enabled=False), consumers)


@pytest.mark.slow
async def test_topics_when_their_broker_is_killed_then_each_is_opened_once_and_its_clients_come_along(
    zookeeper: ScriptedZooKeeper, servers: str, start: Start, tmp_path: Path
) -> None:
    """Cluster 17, row 2. The session ends at once here; how long all this takes is measured on real engines."""
    others = set(zookeeper.sessions)
    lines = [f"{key}={value}" for key, value in settings(servers, tmp_path / "killed").items()]
    (tmp_path / "broker.conf").write_text("\n".join(lines))
    line = interpulse("broker", "--config", str(tmp_path / "broker.conf"))
    killed = await asyncio.to_thread(BrokerProcess, line, tmp_path / "killed.log")
    [session] = set(zookeeper.sessions) - others
    names = [f"persistent://public/default/killed-{number}" for number in range(KILLED)]
    acknowledged = set(names[::10])
    received: dict[tuple[str, str], list[bytes | None]] = defaultdict(list)

    async def receive(topic: Killed, subscription: str, last: bytes) -> None:
        """Up to a message; the first one of some topics is acknowledged."""
        here = received[topic.name, subscription]
        while last not in here:
            message = await topic.consumers[subscription].receive()
            here.append(message.content)
            if message.content == FLUSHED and topic.name in acknowledged:
                topic.consumers[subscription].acknowledge(message)

    async def receive_all(last: bytes) -> None:
        await asyncio.gather(*(receive(topic, each, last) for topic in topics for each in SUBSCRIPTIONS))

    def is_flushed() -> bool:
        flushed = [topic for topic in topics if topic.name in acknowledged]
        cursors = [f"{topic.record}/{each}" for topic in flushed for each in SUBSCRIPTIONS]
        return all(decode_record(zookeeper.nodes[path].value).ledger_id != IN_RECORD for path in cursors)

    try:
        async with Client(killed.service_url) as client:
            await client.lookup_batch(names)  # which it takes, being alone
        heir = await start()
        hosts = ",".join(url.removeprefix("pulsar://") for url in (killed.service_url, heir.service_url))
        async with Client(f"pulsar://{hosts}", operation_timeout_ms=120_000) as client:
            topics = await asyncio.gather(*(opened(client, name) for name in names))
            for content in (FLUSHED, UNFLUSHED):
                await asyncio.gather(*(topic.producer.send(content) for topic in topics))
                await receive_all(content)
            await eventually(is_flushed)
            assert heir.registry.loads.ended == 0
            sent = asyncio.gather(*(topic.producer.send(IN_FLIGHT) for topic in topics))
            await asyncio.to_thread(killed.kill)
            zookeeper.expire(session)
            await sent
            await receive_all(IN_FLIGHT)
            for (name, _), here in received.items():
                assert list(dict.fromkeys(here)) == [FLUSHED, UNFLUSHED, IN_FLIGHT]
                assert name not in acknowledged or here.count(FLUSHED) == 1
            assert {str(topic.name) for topic in heir.registry.topics()} == set(names)
            assert (heir.registry.loads.ended, heir.registry.loads.failed) == (KILLED, 0)
            records = [PulsarTopicRecords().decode(zookeeper.nodes[topic.record].value) for topic in topics]
            assert {len(record.ledgers) for record in records} == {2}  # that of each broker
    finally:
        killed.kill()

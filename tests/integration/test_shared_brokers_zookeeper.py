"""Two brokers over the store on ZooKeeper, each with a session, against a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.client import AdminClient, Client
from interpulse.model.names import TopicName
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore
from tests.support.rest_client import call
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

TOPIC = "persistent://public/default/t-0"
NAME = TopicName.parse(TOPIC)


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as server:
        yield server


@pytest.fixture
async def brokers(zookeeper: ScriptedZooKeeper) -> AsyncIterator[SharedBrokers]:
    """Two of them."""
    address = await zookeeper.listen()
    async with shared_brokers(0) as started:
        for _ in range(2):
            await started.start(await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(address)))
        yield started


async def take(brokers: SharedBrokers) -> tuple[SharedBroker, SharedBroker]:
    """The owner of the topic's bundle, and the other broker."""
    async with Client(brokers[0].service_url) as client:
        await client.lookup_batch([TOPIC])
    owner = await brokers.owner(TOPIC)
    return owner, brokers.other(owner)


def session_of(broker: SharedBroker) -> int:
    return broker.app.stores.metadata.session.id


async def test_bundle_when_moved_then_the_topic_goes_on(brokers: SharedBrokers) -> None:
    owner, other = await take(brokers)
    async with Client(other.service_url) as client, AdminClient(other.web_url) as admin:
        assert await admin.brokers.list() == sorted(each.id for each in brokers.brokers)
        producer = await client.create_producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        await producer.send(b"1")
        consumer.acknowledge(await consumer.receive())
        await owner.app.stop()
        brokers.brokers.remove(owner)
        await producer.send(b"2")
        assert (await consumer.receive()).content == b"2"
        assert other.ownership.holds(NAME)


async def test_session_when_expired_then_free_bundles_are_taken_again_and_topics_go_on(
    brokers: SharedBrokers, zookeeper: ScriptedZooKeeper
) -> None:
    owner, _ = await take(brokers)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        await producer.send(b"1")
        topic, first = owner.app.registry.get(NAME), session_of(owner)
        zookeeper.expire(first)
        await eventually(lambda: session_of(owner) != first and owner.ownership.serving())
        assert owner.ownership.holds(NAME)
        assert owner.app.registry.get(NAME) is topic
        await owner.app.registry.flush()
        await producer.send(b"2")


async def test_connection_when_cut_then_nothing_happens(brokers: SharedBrokers, zookeeper: ScriptedZooKeeper) -> None:
    owner, other = await take(brokers)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        topic, first = owner.app.registry.get(NAME), session_of(owner)
        zookeeper.cut()
        await producer.send(b"1")
        await eventually(lambda: owner.ownership.holds(NAME) and other.ownership.serving())
        assert (owner.app.registry.get(NAME), session_of(owner)) == (topic, first)
        await producer.send(b"2")


async def test_bundle_when_both_want_it_at_once_then_one_has_it(brokers: SharedBrokers) -> None:
    [bundle, *_] = await brokers[0].ownership.bundles_of(NAME.namespace_name)
    locks = await asyncio.gather(*(each.ownership.take(bundle) for each in brokers.brokers for _ in range(50)))
    assert len({lock.broker.broker_id for lock in locks}) == 1
    assert [len(each.bundles) for each in brokers.brokers] in ([0, 1], [1, 0])


async def test_lookup_when_zookeeper_is_silent_past_the_deadline_then_is_refused_without_waiting_for_it(
    zookeeper: ScriptedZooKeeper,
) -> None:
    """Cluster 17, row 8. What waits for ZooKeeper gets 500 in the end."""
    zookeeper.session_timeout_ms = 1000
    address = await zookeeper.listen()
    async with shared_brokers(0) as started:
        broker = await started.start(await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(address)))
        path = "/lookup/v2/topic/persistent/public/default/t-0"
        assert (await call(broker.web_url, "GET", path)).status == 200
        zookeeper.silent = True
        await eventually(lambda: not broker.ownership.serving())
        assert (await call(broker.web_url, "GET", path)).status == 503
        zookeeper.silent = False
        zookeeper.cut()
        await eventually(broker.ownership.serving)
        assert (await call(broker.web_url, "GET", path)).status == 200

"""Namespace isolation policies among several brokers: where bundles go, and when they move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import AdminClient, Client
from interpulse.model.errors import Conflict, ServiceNotReady
from interpulse.model.isolation import IsolationPolicy
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.rest_broker import rest_broker
from tests.support.rest_client import call
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

CLUSTER = "standalone"
APART, TOGETHER = r"localhost", r"127\.0\.0\.1"
TOPICS = [f"persistent://public/apart/t-{number}" for number in range(12)]
OTHERS = [f"persistent://public/default/t-{number}" for number in range(12)]


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Three of them: the last one has a host name of its own."""
    async with shared_brokers(2, BrokerConfig(force_delete_namespace_allowed=True)) as started:
        started.config = replace(started.config, advertised_address=APART)
        await started.start()
        async with AdminClient(started[0].web_url) as admin:
            await admin.namespaces.create("public/apart")
        yield started


def policy(*primary: str, namespaces: str = "public/apart", scope: str | None = None, **more: Any) -> IsolationPolicy:
    parameters = {"min_limit": "1", "usage_threshold": "100"}
    return IsolationPolicy((namespaces,), primary, parameters=parameters, unload_scope=scope, **more)


async def put(brokers: SharedBrokers, value: IsolationPolicy) -> None:
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.clusters.set_isolation_policy(CLUSTER, "p", value)


async def owners(brokers: SharedBrokers, topics: list[str], *, asked: int = 0) -> list[SharedBroker]:
    """The owners of the bundles of these topics, which are looked up first."""
    async with Client(brokers[asked].service_url) as client:
        await client.lookup_batch(topics)
    return [await brokers.owner(topic) for topic in topics]


async def test_bundles_when_a_policy_is_set_then_go_to_its_brokers_and_others_elsewhere(brokers: SharedBrokers) -> None:
    await put(brokers, policy(APART))
    for asked in range(3):
        assert set(map(id, await owners(brokers, TOPICS, asked=asked))) == {id(brokers[2])}
        assert id(brokers[2]) not in set(map(id, await owners(brokers, OTHERS, asked=asked)))
    async with Client(brokers[0].service_url) as client:
        producer = await client.create_producer(TOPICS[0])
        consumer = await client.subscribe(TOPICS[0], "s", initial_position="earliest")
        await producer.send(b"1")
        assert (await consumer.receive()).content == b"1"
    async with AdminClient(brokers[2].web_url) as admin:
        path = f"brokers/{CLUSTER}/{brokers[2].id}/ownedNamespaces"
        owned = (await call(brokers[2].web_url, "GET", path)).json
        assert set(owned) == brokers[2].bundles
        assert {tuple(each.values()) for each in owned.values()} == {("primary", True, True)}
        found = await admin.clusters.isolation_of_brokers(CLUSTER)
        assert [each.broker for each in found] == sorted(each.id for each in brokers.brokers)


async def test_bundles_when_the_scope_says_so_then_move_under_the_feet_of_clients(brokers: SharedBrokers) -> None:
    await put(brokers, policy(TOGETHER))
    async with Client(brokers[0].service_url) as client:
        producer = await client.create_producer(TOPICS[0])
        consumer = await client.subscribe(TOPICS[0], "s")
        await producer.send(b"1")
        before = await brokers.owner(TOPICS[0])
        assert before is not brokers[2]
        await put(brokers, policy(APART, scope="none"))
        await producer.send(b"2")
        assert await brokers.owner(TOPICS[0]) is before
        await put(brokers, policy(APART, scope="all_matching"))
        await producer.send(b"3")
        assert await brokers.owner(TOPICS[0]) is brokers[2]
        assert before.app.registry.get(TopicName.parse(TOPICS[0])) is None
        assert [(await consumer.receive()).content for _ in range(3)] == [b"1", b"2", b"3"]
        await put(brokers, policy(TOGETHER))
        await producer.send(b"4")
        assert await brokers.owner(TOPICS[0]) is not brokers[2]


async def test_bundles_when_the_primary_broker_stops_then_secondary_ones_serve(brokers: SharedBrokers) -> None:
    await put(brokers, policy(APART, secondary=(TOGETHER,)))
    assert set(map(id, await owners(brokers, TOPICS))) == {id(brokers[2])}
    await brokers[2].app.stop()
    del brokers.brokers[2]
    assert set(map(id, await owners(brokers, TOPICS))) <= set(map(id, brokers.brokers))


async def test_lookup_when_no_broker_is_permitted_then_the_policy_is_named_and_a_retry_helps(
    brokers: SharedBrokers,
) -> None:
    await put(brokers, policy("gone"))
    path = TOPICS[0].replace("://", "/")
    for flag in ("false", "true"):
        reply = await call(brokers[0].web_url, "GET", f"/lookup/v2/topic/{path}?authoritative={flag}")
        assert reply.status == 503
        assert "Namespace public/apart is for brokers of isolation policy p (primary gone)" in reply.reason
    assert not any("public/apart" in each for broker in brokers.brokers for each in broker.bundles)
    refusal = await asyncio.to_thread(_looked_up, brokers[1].service_url)
    assert refusal.error == pb.ServiceNotReady
    assert "isolation policy p (primary gone)" in refusal.message
    async with Client(brokers[0].service_url) as client, AdminClient(brokers[1].web_url) as admin:
        with refused_lookups(brokers[0]) as refused:
            waiting = asyncio.create_task(client.create_producer(TOPICS[0]))
            await asyncio.wait_for(refused.wait(), 20)
        await admin.clusters.delete_isolation_policy(CLUSTER, "p")
        await (await waiting).send(b"1")


def _looked_up(service_url: str) -> Any:
    with RawClient(service_url) as client:
        return client.ask(commands.lookup(1, TOPICS[0]))


@contextmanager
def refused_lookups(broker: SharedBroker) -> Iterator[asyncio.Event]:
    """Set when a lookup was refused there."""
    refused, find = asyncio.Event(), broker.app.lookups.find

    async def watching(*args: Any, **more: Any) -> Any:
        try:
            return await find(*args, **more)
        except ServiceNotReady:
            refused.set()
            raise

    broker.app.lookups.find = watching  # type: ignore[method-assign]
    yield refused
    broker.app.lookups.find = find  # type: ignore[method-assign]


async def test_unload_when_for_a_broker_that_may_not_have_it_then_is_refused(brokers: SharedBrokers) -> None:
    await put(brokers, policy(APART))
    await owners(brokers, TOPICS)
    bundle = await brokers[0].app.lookups.bundle(TopicName.parse(TOPICS[0]))
    path = f"namespaces/public/apart/{bundle}/unload?destinationBroker={brokers[0].id}"
    reply = await call(brokers[2].web_url, "PUT", path)
    assert reply.status == Conflict.http_status
    assert f"is not unloaded for {brokers[0].id}: Namespace public/apart is for brokers of" in reply.reason
    assert await brokers.owner(TOPICS[0]) is brokers[2]


async def test_namespace_when_deleted_at_a_broker_that_may_not_have_it_then_goes(brokers: SharedBrokers) -> None:
    await put(brokers, policy(APART))
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        for topic in TOPICS[:4]:
            await (await client.create_producer(topic)).close()
        await admin.namespaces.delete("public/apart", force=True)
        assert await admin.namespaces.list("public") == ["public/default"]
    assert not any("public/apart" in each for broker in brokers.brokers for each in broker.bundles)


async def test_broker_when_it_is_alone_then_keeps_policies_and_serves_all_the_same() -> None:
    async with rest_broker() as broker, AdminClient(broker.web_url) as admin:
        await admin.clusters.set_isolation_policy(CLUSTER, "p", policy("gone", namespaces="public/.*"))
        assert list(await admin.clusters.isolation_policies(CLUSTER)) == ["p"]
        reply = await call(broker.web_url, "GET", "/lookup/v2/topic/persistent/public/default/t")
        assert reply.status == 200


async def test_bundle_when_taken_again_after_a_lost_session_then_goes_where_policies_want_it_by_now(
    brokers: SharedBrokers,
) -> None:
    """The policy came into force while the broker was cut off, so that it was not asked to give the bundle away."""
    await put(brokers, policy(TOGETHER))
    owner = (await owners(brokers, TOPICS[:1]))[0]
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPICS[0])
        await producer.send(b"1")
        await put(brokers, policy(APART, scope="none"))
        assert owner.bundles
        owner.store.cut_off()
        owner.store.expire_unseen()
        owner.store.reconnect()
        await eventually(lambda: not any("public/apart" in each for each in owner.bundles))
        await producer.send(b"2")
        assert await brokers.owner(TOPICS[0]) is brokers[2]
        consumer = await client.subscribe(TOPICS[0], "s", initial_position="earliest")
        assert [(await consumer.receive()).content for _ in range(2)] == [b"1", b"2"]

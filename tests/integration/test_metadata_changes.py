"""The call that waits for changes of topics, policies and clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import InvalidRequest, NotConnected, ServiceNotReady
from interpulse.sync import AdminClient as BlockingAdmin
from interpulse.testing.broker import BrokerFactory, InProcessBroker

NAMESPACE = "public/default"
TOPIC = "persistent://public/default/orders"

CHANGES: list[Callable[[BlockingAdmin], object]] = [
    lambda admin: admin.topics.create(f"{TOPIC}-plain"),
    lambda admin: admin.topics.create_partitioned(f"{TOPIC}-parts", 2),
    lambda admin: admin.topics.expand(f"{TOPIC}-parts", 3),
    lambda admin: admin.topics.delete_partitioned(f"{TOPIC}-parts"),
    lambda admin: admin.topics.set_replication_clusters(f"{TOPIC}-plain", ["standalone"]),
    lambda admin: admin.namespaces.set_property(NAMESPACE, "team", "shop"),
    lambda admin: admin.clusters.create("west", ClusterData(service_url="http://west:8080")),
    lambda admin: admin.brokers.set_dynamic_configuration("dispatchThrottlingRatePerReplicatorInMsg", "10"),
]


async def test_changes_then_each_ends_the_wait_with_a_new_token(pulsar_broker: InProcessBroker) -> None:
    async with AdminClient(pulsar_broker.web_url, timeout_ms=60_000) as admin:
        token = await admin.brokers.metadata_changes()
        for change in CHANGES:
            assert await admin.brokers.metadata_changes(since=token) == token
            waiting = asyncio.create_task(admin.brokers.metadata_changes(since=token, wait_s=50))
            await asyncio.to_thread(change, pulsar_broker.admin)
            new = await waiting
            assert new != token
            while (token := await admin.brokers.metadata_changes(since=new, wait_s=0.2)) != new:
                new = token  # a change of several records
        assert (await admin.brokers.runtime_configuration())["supportsMetadataChanges"] == "1"


async def test_acknowledgements_then_are_no_change(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        consumer = await client.subscribe(TOPIC, "s")
        producer = await client.create_producer(TOPIC)
        token = await admin.brokers.metadata_changes()
        await producer.send(b"1")
        consumer.acknowledge(await consumer.receive(30_000))
        await consumer.close()
        await asyncio.to_thread(pulsar_broker.call, lambda app: app.registry.flush())
        assert await admin.brokers.metadata_changes(since=token) == token


async def test_wait_that_is_too_long_then_refused(pulsar_broker_session: InProcessBroker) -> None:
    async with AdminClient(pulsar_broker_session.web_url, timeout_ms=2000) as admin:
        with pytest.raises(InvalidRequest, match="wait_s=2 must be less than the admin client's time-out"):
            await admin.brokers.metadata_changes(wait_s=2)


async def test_broker_when_it_stops_then_ends_the_wait(pulsar_broker_factory: BrokerFactory) -> None:
    broker = pulsar_broker_factory()
    async with AdminClient(broker.web_url, timeout_ms=60_000) as admin:
        token = await admin.brokers.metadata_changes()
        waiting = asyncio.create_task(admin.brokers.metadata_changes(since=token, wait_s=50))
        async with asyncio.timeout(40):  # less than the call would wait
            await asyncio.to_thread(broker.stop)
            with pytest.raises((ServiceNotReady, NotConnected)):  # the call may come after the end
                await waiting

"""Bundles, and the subscriptions of a whole namespace at once, with messages that wait and consumers that listen."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.client import Client
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PreconditionFailed, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.testing import InProcessBroker

NAMESPACE = "public/n"
BOUNDARIES = ("0x00000000", "0x80000000", "0xffffffff")
LOWER, UPPER = "0x00000000_0x80000000", "0x80000000_0xffffffff"
TOPICS = [f"persistent://{NAMESPACE}/t{number}" for number in range(6)]
IN_LOWER = [topic for topic in TOPICS if bundle_of(TopicName.parse(topic), BOUNDARIES) == LOWER]
IN_UPPER = [topic for topic in TOPICS if topic not in IN_LOWER]


async def prepare(client: Client, admin: AdminClient) -> None:
    """Every topic has two messages; subscription ``a`` on all, ``b`` on the first one of each bundle."""
    await admin.namespaces.create(NAMESPACE, bundles=2)
    for topic in TOPICS:
        await admin.topics.create(topic)
        for subscription in ("a", "b") if topic in (IN_LOWER[0], IN_UPPER[0]) else ("a",):
            await admin.topics.create_subscription(topic, subscription, MessageId(*EARLIEST))
        producer = await client.create_producer(topic)
        for payload in (b"one", b"two"):
            await producer.send(payload)
        await producer.close()


async def loaded_topics(app: BrokerApp) -> set[str]:
    return {str(name) for name in app.registry.names}


async def backlogs(admin: AdminClient, subscription: str) -> dict[str, int]:
    found = {}
    for topic in TOPICS:
        subscriptions = (await admin.topics.stats(topic))["subscriptions"]
        if subscription in subscriptions:
            found[topic] = subscriptions[subscription]["msgBacklog"]
    return found


async def test_backlog_is_cleared_by_bundle_by_subscription_or_as_a_whole(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        await prepare(client, admin)
        await admin.namespaces.clear_backlog(NAMESPACE, bundle=LOWER, subscription="a")
        assert await backlogs(admin, "a") == {topic: 0 if topic in IN_LOWER else 2 for topic in TOPICS}
        assert set((await backlogs(admin, "b")).values()) == {2}
        await admin.namespaces.clear_backlog(NAMESPACE, subscription="b")
        assert set((await backlogs(admin, "b")).values()) == {0}
        with pytest.raises(SubscriptionNotFound, match="Subscription nobody not found: no topic of public/n has it"):
            await admin.namespaces.clear_backlog(NAMESPACE, subscription="nobody")
        with pytest.raises(SubscriptionNotFound, match=f"no topic of {UPPER} has it"):
            await admin.namespaces.clear_backlog(NAMESPACE, subscription="nobody", bundle=UPPER)
        assert {2, 0} == set((await backlogs(admin, "a")).values())
        await admin.namespaces.clear_backlog(NAMESPACE)
        assert set((await backlogs(admin, "a")).values()) == {0}


async def test_subscription_in_use_stays_and_is_told_after_all_others_are_gone(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        await prepare(client, admin)
        await admin.namespaces.unsubscribe(NAMESPACE, "b", bundle=UPPER)
        assert set(await backlogs(admin, "b")) == {IN_LOWER[0]}
        consumer = await client.subscribe(TOPICS[0], "a")
        with pytest.raises(PreconditionFailed, match="active connected consumers"):
            await admin.namespaces.unsubscribe(NAMESPACE, "a")
        assert set(await backlogs(admin, "a")) == {TOPICS[0]}
        await consumer.close()
        await admin.namespaces.unsubscribe(NAMESPACE, "a")
        assert await backlogs(admin, "a") == {}


async def test_split_closes_the_topics_of_the_bundle_if_asked_and_loses_nothing(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, AdminClient(pulsar_broker.web_url) as admin:
        await prepare(client, admin)
        await admin.namespaces.split_bundle(NAMESPACE, UPPER, unload=True)
        assert (await admin.namespaces.bundles(NAMESPACE))["boundaries"] == [
            "0x00000000",
            "0x80000000",
            "0xbfffffff",
            "0xffffffff",
        ]
        loaded = await asyncio.to_thread(pulsar_broker.call, loaded_topics)
        assert loaded.isdisjoint(IN_UPPER)
        assert loaded >= set(IN_LOWER)
        assert set((await backlogs(admin, "a")).values()) == {2}
        await admin.namespaces.split_bundle(NAMESPACE, "LARGEST", algorithm="topic_count_equally_divide")
        assert (await admin.namespaces.bundles(NAMESPACE))["numBundles"] == 4

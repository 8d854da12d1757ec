"""Policies of topics among brokers that share a cluster: told, followed, and told late where nobody was told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.change_events.event_codec import event_key
from interpulse.client import AdminClient, Client
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.model.policies.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.storage.api import Delete, Put
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

T, OTHER = "persistent://public/default/t", "persistent://public/default/other"
NAME = TopicName.parse(T)
EVENTS = "persistent://public/default/__change_events"


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    async with shared_brokers(2) as running:
        yield running


async def told(broker: SharedBroker) -> dict[str, bytes | None]:
    """What the events say last of each key."""
    found = {}
    async with Client(broker.service_url) as client:
        reader = await client.create_reader(EVENTS, EARLIEST, force_topic_creation=False)
        while await reader.has_message_available():
            message = await reader.read_next()
            found[message.key or ""] = message.content
    return found


async def record(broker: SharedBroker) -> TopicPolicyRecord:
    stored = await broker.store.get(keys.topic_policies(NAME))
    return TopicPolicyRecord.load(stored.value) if stored else TopicPolicyRecord()


async def test_policies_when_set_then_are_told_once_for_each_level_that_changed(brokers: SharedBrokers) -> None:
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create(T)
        assert EVENTS not in await admin.topics.list("public/default", system_included=True)
        await admin.topic_policies.set(T, "max_producers", 5)
        await admin.topic_policies.set(T, "max_producers", 5)
        await admin.topic_policies.set(T, "max_consumers", 6, everywhere=True)
        assert {key: content is not None for key, content in (await told(brokers[1])).items()} == {
            event_key(NAME, everywhere=False): True,
            event_key(NAME, everywhere=True): True,
        }
        stored = await record(brokers[1])
        assert (stored.here.max_producers, stored.everywhere.max_consumers, stored.untold) == (5, 6, [])
        assert stored.position(everywhere=False) < stored.position(everywhere=True)  # type: ignore[operator]
        await admin.topics.delete(T)
    await eventually_told_nothing(brokers[0])
    assert await record(brokers[0]) == TopicPolicyRecord()


async def eventually_told_nothing(broker: SharedBroker) -> None:
    while any(content is not None for content in (await told(broker)).values()):
        pass


async def test_policies_when_told_by_somebody_else_then_reach_a_loaded_topic_and_one_that_is_loaded_later(
    brokers: SharedBrokers,
) -> None:
    """The record is taken away, as if a broker of another kind had told them while ours were down."""
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        for topic in (T, OTHER):
            await admin.topics.create(topic)
            await admin.topic_policies.set(topic, "max_consumers", 7)
        for broker in brokers.brokers:
            await broker.app.stop()
        del brokers.brokers[1:]
        brokers.brokers.clear()
        last = await brokers.start()
        gone = [keys.topic_policies(TopicName.parse(topic)) for topic in (T, OTHER)]
        await last.store.commit([Delete(key) for key in gone])
        await client.close()
    async with Client(last.service_url) as client:
        await client.create_producer(T)
        loaded = last.app.registry.get(NAME)
        assert loaded is not None
        assert loaded.settings.max_consumers == 7
        sender = await client.create_producer(EVENTS)
        await sender.send(None, key=event_key(NAME, everywhere=False))
        await eventually(lambda: loaded.settings.max_consumers == 0)


async def test_policies_when_nobody_was_told_of_them_then_are_told_when_a_topic_is_loaded(
    brokers: SharedBrokers,
) -> None:
    """As an import leaves them."""
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create(T)
    raw = TopicPolicyRecord(TopicPolicies(max_producers=3)).dump()
    await brokers[0].store.commit([Put(keys.topic_policies(NAME), raw)])
    async with Client(brokers[0].service_url) as client:
        await client.create_producer(T)
    assert (await record(brokers[0])).untold == []
    assert (await told(brokers[0]))[event_key(NAME, everywhere=False)] is not None


async def test_policies_when_compaction_has_removed_that_they_were_taken_away_then_are_gone(
    brokers: SharedBrokers,
) -> None:
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        for topic in (T, OTHER):
            await admin.topics.create(topic)
            await admin.topic_policies.set(topic, "max_consumers", 7)
        stale = await brokers[0].store.get(keys.topic_policies(NAME))
        assert stale is not None
        await admin.topic_policies.remove(T, "max_consumers")
        await admin.topic_policies.set(OTHER, "max_consumers", 8)
        await admin.topics.compact(EVENTS)
        while (await admin.topics.compaction_status(EVENTS))["status"] != "SUCCESS":
            pass
        await client.close()
    for broker in brokers.brokers:
        await broker.app.stop()
    brokers.brokers.clear()
    last = await brokers.start()
    await last.store.commit([Put(keys.topic_policies(NAME), stale.value)])
    async with Client(last.service_url) as client:
        await client.create_producer(T)
        loaded = last.app.registry.get(NAME)
        assert loaded is not None
        assert loaded.settings.max_consumers == 0
    assert await record(last) == TopicPolicyRecord()

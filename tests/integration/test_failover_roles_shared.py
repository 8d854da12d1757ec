"""The role of a namespace whose bundles several brokers own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import AdminClient, Client
from interpulse.model.errors import MetadataError, ServiceNotReady
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName
from tests.support.shared_brokers import SharedBrokers, shared_brokers

NAMESPACE = "public/default"
TOPICS = [f"persistent://public/default/t{number}" for number in range(12)]


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    async with shared_brokers(3, BrokerConfig()) as started:
        yield started


async def test_fence_when_several_brokers_own_the_topics_then_all_have_closed_their_producers(
    brokers: SharedBrokers,
) -> None:
    async with Client(brokers[0].service_url) as client, AdminClient(brokers[0].web_url) as admin:
        ends = {}
        for number, topic in enumerate(TOPICS):
            producer = await client.create_producer(topic)
            for _ in range(number + 1):
                message_id = await producer.send(b"x")
            ends[topic] = Position(message_id.ledger, message_id.entry)
        owners = {(await brokers.owner(topic)).id for topic in TOPICS}
        assert len(owners) > 1
        await admin.topics.unload(TOPICS[0])
        answer = await admin.namespaces.set_failover_role(NAMESPACE, "fenced", 3)
        shown: dict[str, Any] = answer["positions"]
        assert {topic: Position.parse(text) for topic, text in shown.items()} == ends
        assert answer["closedProducers"] >= len(TOPICS) - 1
        for topic in TOPICS:
            owner = await brokers.owner(topic)
            loaded = next(each for each in owner.app.registry.topics() if str(each.name) == topic)
            assert not loaded.producers.by_name
        await admin.namespaces.set_failover_role(NAMESPACE, "active", 3)


async def test_fence_when_a_broker_cannot_apply_it_then_the_call_fails_and_names_it(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(namespace: NamespaceName) -> None:
        raise MetadataError("the store is stalled")

    monkeypatch.setattr(brokers[1].app.registry, "policies_changed", fail)
    words = f"The role fenced;epoch=3 is stored, .* not confirmed by broker {brokers[1].id}: .*stalled; repeat the call"
    async with AdminClient(brokers[0].web_url) as admin:
        with pytest.raises(ServiceNotReady, match=words):
            await admin.namespaces.set_failover_role(NAMESPACE, "fenced", 3)
        assert (await admin.namespaces.failover_role(NAMESPACE))["role"] == "fenced;epoch=3"

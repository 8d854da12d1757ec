"""Policies of topics among brokers that share a cluster: told, followed, and told late where nobody was told."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.own_access import OWN_CREDENTIALS
from interpulse.broker.topics.change_events.event_codec import EVENT_SCHEMA, encode_policies, event_key
from interpulse.client import AdminClient, Client, Credentials
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.storage.api import Delete, Put
from tests.front_ends.access import token
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.tokens import SECRET
from tests.support.waiting import eventually

T, OTHER = "persistent://public/default/t", "persistent://public/default/other"
NAME = TopicName.parse(T)
EVENTS = "persistent://public/default/__change_events"
SPREAD = [f"persistent://public/default/t-{number}" for number in range(12)]


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
        assert (stored.here.max_producers, stored.everywhere.max_consumers, stored.unreported) == (5, 6, [])
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
    assert (await record(brokers[0])).unreported == []
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


async def test_policies_when_two_kinds_change_them_at_once_then_the_later_event_holds_at_both(
    brokers: SharedBrokers,
) -> None:
    """Each event has all policies of a topic, so one that was made without knowing of the other takes that away: also
    at a real broker, where this was seen. Here the other kind speaks after ours, and before it could read that."""
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.topics.create(T)
        await client.create_producer(T)
        await admin.topic_policies.set(T, "max_producers", 5)
        late = TopicPolicies(max_consumers=6)
        other = await client.create_producer(EVENTS, schema=EVENT_SCHEMA, batching_enabled=False)
        content = encode_policies(NAME, late, everywhere=False, cluster="standalone")
        await other.send(content, key=event_key(NAME, everywhere=False))
        for broker in brokers.brokers:
            async with AdminClient(broker.web_url) as asked:
                while await asked.topic_policies.get(T, "max_consumers") != 6:
                    pass
                assert await asked.topic_policies.get(T, "max_producers") is None
        await admin.topic_policies.set(T, "max_producers", 7)
        stored = await record(brokers[1])
        assert (stored.here.max_producers, stored.here.max_consumers) == (7, 6)


# --- with authentication

ADMIN = Credentials.token(f"token:{token('admin')}")
GUARDED = BrokerConfig(
    authentication_enabled=True,
    authorization_enabled=True,
    authentication_providers="AuthenticationProviderToken",
    token_secret_key=base64.b64encode(SECRET).decode(),
    super_user_roles="admin",
)


def guarded(role: str) -> BrokerConfig:
    """Of a broker that has this role among the others."""
    return replace(
        GUARDED,
        broker_client_authentication_plugin="AuthenticationToken",
        broker_client_authentication_parameters=f"token:{token(role)}",
    )


async def test_policies_when_brokers_ask_for_credentials_then_follow_with_their_own() -> None:
    async with shared_brokers(2, guarded("admin")) as running:
        running.credentials = ADMIN
        await running.spread(SPREAD)
        owners = {topic: await running.owner(topic) for topic in SPREAD}
        topics = [next(topic for topic, owner in owners.items() if owner is each) for each in running.brokers]
        async with Client(running[0].service_url, credentials=ADMIN) as client:
            for topic in topics:
                await client.create_producer(topic)

            def in_force() -> set[int]:
                loaded = [owners[topic].app.registry.get(TopicName.parse(topic)) for topic in topics]
                return {each.settings.max_consumers for each in loaded if each is not None}

            for number, at in enumerate(running.brokers, 7):
                async with AdminClient(at.web_url, credentials=ADMIN) as admin:
                    for topic in topics:
                        await admin.topic_policies.set(topic, "max_consumers", number)
                await eventually(lambda number=number: in_force() == {number})  # type: ignore[misc]
            other_kind = await client.create_producer(EVENTS)
            for topic in topics:
                await other_kind.send(None, key=event_key(TopicName.parse(topic), everywhere=False))
            await eventually(lambda: in_force() == {0})


@pytest.mark.parametrize("config", [GUARDED, guarded("nobody")], ids=["none", "no super user"])
async def test_policies_when_the_own_credentials_of_a_broker_do_not_do_then_says_which_to_set(
    config: BrokerConfig,
) -> None:
    async with shared_brokers(1, config) as running:
        broker = running[0]
        async with (
            Client(broker.service_url, credentials=ADMIN) as client,
            AdminClient(broker.web_url, credentials=ADMIN) as admin,
        ):
            await client.lookup_batch(SPREAD)
            for topic in (T, OTHER):
                await client.create_producer(topic)
            with pytest.raises(ServiceNotReady, match=OWN_CREDENTIALS):
                await admin.topic_policies.set(T, "max_consumers", 7)
            assert await record(broker) == TopicPolicyRecord()
            running.config = replace(
                running.config,
                broker_client_authentication_plugin="AuthenticationToken",
                broker_client_authentication_parameters=f"token:{token('admin')}",
            )
            async with AdminClient((await running.start()).web_url, credentials=ADMIN) as other:
                await other.topic_policies.set(OTHER, "max_consumers", 8)
            with pytest.raises(ServiceNotReady, match=OWN_CREDENTIALS):
                await broker.app.registry.open(TopicName.parse(SPREAD[0]))

"""A broker that may have lost its session, has lost it, or comes back: what stops and what goes on, without harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker.ownership.ownership import NO_OPTIONS
from interpulse.client import Client
from interpulse.model.errors import PulsarError, ServiceNotReady
from interpulse.model.names import TopicName
from interpulse.storage.api import Delete
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

TOPIC = "persistent://public/default/t-0"
NAME = TopicName.parse(TOPIC)
RECORD = "/managed-ledgers/public/default/persistent/t-0"


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Two of them."""
    async with shared_brokers(2) as started:
        yield started


async def lookup_refusal(broker: SharedBroker, topic: str = TOPIC) -> PulsarError | None:
    try:
        await broker.app.lookups.find(TopicName.parse(topic), NO_OPTIONS)
    except PulsarError as error:
        return error
    return None


async def content(consumer: Any) -> bytes | None:
    """The next message, acknowledged."""
    message = await consumer.receive()
    consumer.acknowledge(message)
    found: bytes | None = message.content
    return found


def records(brokers: SharedBrokers) -> dict[str, Any]:
    """The record of the topic and what is below it."""
    return {key: value for key, value in brokers.tree.values.items() if key.startswith(RECORD)}


# --- suspect


async def test_suspect_when_the_session_comes_back_then_nothing_has_happened(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        await producer.send(b"1")
        assert await content(consumer) == b"1"
        topic = owner.app.registry.get(NAME)
        owner.store.cut_off()
        await producer.send(b"2")  # publishing goes on: nobody has fenced the ledger
        refusal = await lookup_refusal(owner)
        assert isinstance(refusal, ServiceNotReady)
        assert owner.app.lookups.cached(TOPIC) is None
        with pytest.raises(ServiceNotReady):
            await owner.app.registry.open(NAME)
        assert await lookup_refusal(other) is None  # the owner is still the owner
        received = asyncio.create_task(content(consumer))
        await producer.send(b"3")
        assert not received.done()  # entries wait until the broker is sure of the topic again
        owner.store.reconnect()
        assert await received == b"2"
        assert await content(consumer) == b"3"
        assert owner.app.registry.get(NAME) is topic
        assert await lookup_refusal(owner) is None


async def test_suspect_when_a_receipt_is_wanted_for_an_acknowledgement_then_is_refused(brokers: SharedBrokers) -> None:
    owner, _ = await brokers.take(TOPIC)

    def run() -> Any:
        with RawClient(owner.service_url) as client:
            subscribe = pb.CommandSubscribe(
                topic=TOPIC, subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1, request_id=1
            )
            client.ask(commands.encode(subscribe))
            ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, request_id=2)
            ack.message_id.add(ledgerId=1, entryId=0)
            asyncio.run_coroutine_threadsafe(cut_off(), loop).result()
            refused = client.ask(commands.encode(ack))
            asyncio.run_coroutine_threadsafe(reconnect(), loop).result()
            return refused, client.ask(commands.encode(ack))

    async def cut_off() -> None:
        owner.store.cut_off()

    async def reconnect() -> None:
        owner.store.reconnect()

    loop = asyncio.get_running_loop()
    refused, accepted = await asyncio.to_thread(run)
    assert refused.error == pb.ServiceNotReady
    assert not accepted.HasField("error")


async def test_suspect_when_a_topic_keeps_nothing_then_takes_nothing(brokers: SharedBrokers) -> None:
    fleeting = "non-persistent://public/default/f"
    owner, _ = await brokers.take(fleeting)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(fleeting, send_timeout_ms=60_000)
        await producer.send(b"1")
        owner.store.cut_off()
        sent = asyncio.create_task(producer.send(b"2"))
        topic = owner.app.registry.get(TopicName.parse(fleeting))
        assert topic is not None
        await asyncio.wait([sent], timeout=0.2)
        assert not sent.done()
        assert topic.entries_added == 1
        owner.store.reconnect()
        await sent


# --- expired


async def test_expired_when_nobody_took_the_bundle_then_clients_notice_nothing(brokers: SharedBrokers) -> None:
    owner, _ = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        topic = owner.app.registry.get(NAME)
        await producer.send(b"1")
        owner.store.cut_off()
        owner.store.expire_unseen()
        await producer.send(b"2")
        owner.store.reconnect()
        assert [await content(consumer), await content(consumer)] == [b"1", b"2"]
        await eventually(owner.ownership.serving)
        assert owner.app.registry.get(NAME) is topic
        assert owner.ownership.holds(NAME)
        await owner.app.registry.flush()  # its records are written under the new lock
        await producer.send(b"3")
        assert await content(consumer) == b"3"
        reports = await owner.ownership.brokers.view()
        assert set(reports.reports) == {each.id for each in brokers.brokers}


async def test_expired_when_another_has_the_topic_then_the_zombie_harms_nothing(brokers: SharedBrokers) -> None:
    zombie, heir = await brokers.take(TOPIC)
    async with Client(zombie.service_url) as old, Client(heir.service_url) as new:
        producer = await old.create_producer(TOPIC, send_timeout_ms=60_000)
        consumer = await old.subscribe(TOPIC, "s")
        await producer.send(b"1")
        assert await content(consumer) == b"1"
        await producer.send(b"2")
        second = await consumer.receive()
        zombie.store.cut_off()
        zombie.store.expire_unseen()
        heirs = await new.create_producer(TOPIC)
        await heirs.send(b"3")
        late = asyncio.create_task(producer.send(b"4"))  # to the zombie, whose ledger the heir has fenced
        consumer.acknowledge(second)
        await eventually(lambda: zombie.app.registry.get(NAME) is None)
        assert not late.done()
        before = records(brokers)
        with pytest.raises(ServiceNotReady):
            await zombie.app.registry.open(NAME)
        assert records(brokers) == before
        zombie.store.reconnect()
        await eventually(zombie.ownership.serving)
        assert zombie.bundles.isdisjoint(heir.bundles)
        await late  # the client found the heir
        after = await new.subscribe(TOPIC, "other", initial_position="earliest")
        found = [await content(after) for _ in range(4)]
        assert found == [b"1", b"2", b"3", b"4"]
        assert heir.app.registry.get(NAME) is not None


async def test_expired_when_another_has_the_topic_and_no_entry_comes_then_the_zombie_closes_it_unwritten(
    brokers: SharedBrokers,
) -> None:
    zombie, heir = await brokers.take(TOPIC)
    async with Client(zombie.service_url) as old, Client(heir.service_url) as new:
        consumer = await old.subscribe(TOPIC, "s")
        await (await old.create_producer(TOPIC)).send(b"1")
        message = await consumer.receive()
        zombie.store.cut_off()
        zombie.store.expire_unseen()
        taken = await new.subscribe(TOPIC, "s")
        assert (await taken.receive()).content == b"1"
        consumer.acknowledge(message)
        before = records(brokers)
        zombie.store.reconnect()
        await eventually(lambda: zombie.app.registry.get(NAME) is None)
        await eventually(zombie.ownership.serving)
        await zombie.app.registry.flush()
        assert records(brokers) == before
        assert heir.ownership.holds(NAME)


async def test_expired_when_another_had_the_topic_and_left_then_is_opened_anew(brokers: SharedBrokers) -> None:
    zombie, heir = await brokers.take(TOPIC)
    async with Client(zombie.service_url) as old, Client(heir.service_url) as new:
        producer = await old.create_producer(TOPIC, send_timeout_ms=60_000)
        await producer.send(b"1")
        zombie.store.cut_off()
        zombie.store.expire_unseen()
        heirs = await new.create_producer(TOPIC)
        await heirs.send(b"2")
        await heirs.close()
        for bundle in heir.ownership.owned:
            await heir.ownership.release(bundle)
        stale = zombie.app.registry.get(NAME)
        zombie.store.reconnect()
        await eventually(zombie.ownership.serving)
        assert zombie.app.registry.get(NAME) is not stale
        await producer.send(b"3")
        reader = await new.subscribe(TOPIC, "s", initial_position="earliest")
        assert [await content(reader) for _ in range(3)] == [b"1", b"2", b"3"]


async def test_lock_when_removed_by_hand_then_the_topic_goes_on(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC)
        await producer.send(b"1")
        topic = owner.app.registry.get(NAME)
        [key] = [key for key in brokers.tree.values if key.startswith("/namespace/")]
        await other.store.commit([Delete(key)])
        await eventually(lambda: key in brokers.tree.values and owner.ownership.holds(NAME))
        assert owner.app.registry.get(NAME) is topic
        await producer.send(b"2")


async def test_topic_when_opened_by_two_then_the_former_owner_gives_it_up(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(owner.service_url) as client:
        producer = await client.create_producer(TOPIC, send_timeout_ms=60_000)
        await producer.send(b"1")
        [key] = [key for key in brokers.tree.values if key.startswith("/namespace/")]
        [bundle] = owner.ownership.owned
        with owner.store.out_of_sight():  # it is not told yet
            await other.store.commit([Delete(key)])
            await other.ownership.take(bundle)
            await other.app.registry.open(NAME)
            sent = asyncio.create_task(producer.send(b"2"))
            await eventually(lambda: owner.app.registry.get(NAME) is None)
        await sent
        assert other.ownership.holds(NAME)
        reader = await client.subscribe(TOPIC, "s", initial_position="earliest")
        assert [await content(reader), await content(reader)] == [b"1", b"2"]


# --- work of one broker of the cluster


async def test_sole_task_when_the_session_of_the_chosen_ends_then_another_does_it(brokers: SharedBrokers) -> None:
    def chosen() -> list[str]:
        return [value.value.decode() for key, value in brokers.tree.values.items() if key.endswith("tasks/replication")]

    await eventually(chosen)
    [first] = chosen()
    broker = brokers.of_id(first)
    broker.store.cut_off()
    broker.store.expire_unseen()
    await eventually(lambda: chosen() == [brokers.other(broker).id])
    broker.store.reconnect()

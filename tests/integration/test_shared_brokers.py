"""Several brokers over one metadata store: who answers what, how clients find the way, how bundles move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pulsar
import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.ownership.ownership import NO_OPTIONS
from interpulse.broker.topics.lookup.lookup import BatchLookup
from interpulse.client import AdminClient, BrokerAddress, Client
from interpulse.clock import now_ms
from interpulse.model.errors import NotAllowed, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.bundles import bundle_of
from interpulse.storage.api import Put
from interpulse.storage.cursors import cursor_key
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.official_client import connected
from tests.support.raw_client import RawClient
from tests.support.rest_client import call
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.waiting import eventually

MANY = 10_000
TOPICS = [f"persistent://public/default/t-{number}" for number in range(12)]
TOPIC = TOPICS[0]
PATH = "persistent/public/default/t-0"


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Three of them."""
    async with shared_brokers(3, BrokerConfig(max_topics_per_batch_lookup=MANY)) as started:
        yield started


@contextmanager
def counted_batches(brokers: SharedBrokers) -> Iterator[list[str]]:
    """The brokers that were asked for many topics, in order."""
    asked: list[str] = []

    def counting(broker: SharedBroker) -> Any:
        find_many = broker.app.lookups.find_many

        async def count(request: BatchLookup) -> Any:
            asked.append(broker.id)
            return await find_many(request)

        return count

    for broker in brokers.brokers:
        broker.app.lookups.find_many = counting(broker)  # type: ignore[method-assign]
    yield asked


# --- finding the way


async def test_clients_when_topics_are_spread_then_each_finds_the_owner(brokers: SharedBrokers) -> None:
    await brokers.spread(TOPICS)
    async with Client(brokers[0].service_url) as client:
        for topic in TOPICS:
            await (await client.create_producer(topic)).send(topic.encode())
    assert [len(each.bundles) for each in brokers.brokers] == [2, 1, 1]

    def consume() -> list[bytes]:
        found = []
        with connected(brokers[1].service_url) as official:
            for topic in TOPICS:
                reader = official.create_reader(topic, pulsar.MessageId.earliest)
                found.append(reader.read_next(60_000).data())
        return found

    assert await asyncio.to_thread(consume) == [topic.encode() for topic in TOPICS]


async def test_lookup_when_the_bundle_is_free_then_the_candidate_is_named_and_takes_it(brokers: SharedBrokers) -> None:
    answers = {each.id: await each.app.lookups.find(TopicName.parse(TOPIC), NO_OPTIONS) for each in brokers.brokers}
    redirects = {answer.broker_id for answer in answers.values() if answer.redirect and answer.authoritative}
    takers = {answer.broker_id for answer in answers.values() if not answer.redirect}
    owner = await brokers.owner(TOPIC)
    assert redirects | takers == {owner.id}
    for broker in brokers.brokers:
        answer = await broker.app.lookups.find(TopicName.parse(TOPIC), NO_OPTIONS)
        assert (answer.broker_id, answer.redirect, answer.service_url) == (owner.id, False, owner.service_url)
        assert broker.app.lookups.cached(TOPIC) == answer


async def test_producer_when_the_bundle_is_not_here_then_the_client_is_told_to_look_up(brokers: SharedBrokers) -> None:
    _, other = await brokers.take(TOPIC)
    bundle = f"public/default/{await other.app.lookups.bundle(TopicName.parse(TOPIC))}"
    for frame in (producer_frame(), subscribe_frame()):

        def ask(frame: bytes = frame) -> Any:
            with RawClient(other.service_url) as client:
                return client.ask(frame)

        refusal = await asyncio.to_thread(ask)
        assert refusal.error == pb.ServiceNotReady
        assert refusal.message == (
            f"Namespace bundle ({bundle}) for topic ({TOPIC}) not served by this instance:{other.id}. "
            f"Please redo the lookup."
        )


def producer_frame() -> bytes:
    return commands.encode(pb.CommandProducer(topic=TOPIC, producer_id=1, request_id=1))


def subscribe_frame() -> bytes:
    return commands.encode(
        pb.CommandSubscribe(
            topic=TOPIC, subscription="s", subType=pb.CommandSubscribe.Shared, consumer_id=1, request_id=1
        )
    )


async def test_lookup_when_a_listener_is_not_known_then_is_refused(brokers: SharedBrokers) -> None:
    owner, _ = await brokers.take(TOPIC)

    def ask(listener: str) -> Any:
        with RawClient(owner.service_url) as client:
            return client.ask(commands.lookup(1, TOPIC, listener_name=listener))

    assert (await asyncio.to_thread(ask, "internal")).brokerServiceUrl == owner.service_url
    refusal = await asyncio.to_thread(ask, "zz")
    assert (refusal.error, refusal.message) == (
        pb.ServiceNotReady,
        f"The broker '{owner.id}' does not have 'zz' listener configured.",
    )


# --- REST


async def test_rest_lookup_when_owned_then_any_broker_answers(brokers: SharedBrokers) -> None:
    replies = {each.id: await call(each.web_url, "GET", f"/lookup/v2/topic/{PATH}") for each in brokers.brokers}
    for reply in replies.values():
        if reply.status == 307:
            assert reply.headers["Location"].endswith(f"/lookup/v2/topic/{PATH}?authoritative=true")
    await brokers.take(TOPIC)
    owner = await brokers.owner(TOPIC)
    for broker in brokers.brokers:
        reply = await call(broker.web_url, "GET", f"/lookup/v2/topic/{PATH}")
        assert (reply.status, reply.json["brokerUrl"]) == (200, owner.service_url)


async def test_rest_of_a_topic_when_the_owner_is_another_then_redirects_there(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    reply = await call(other.web_url, "GET", f"{PATH}/stats?getPreciseBacklog=true&authoritative=true")
    assert reply.status == 307
    assert reply.headers["Location"] == f"{owner.web_url}/admin/v2/{PATH}/stats?getPreciseBacklog=true"
    async with AdminClient(other.web_url) as admin:
        await admin.topics.create(TOPIC)
        await admin.topics.create_subscription(TOPIC, "s")
        assert await admin.topics.subscriptions(TOPIC) == ["s"]
        assert (await admin.topics.stats(TOPIC))["msgInCounter"] == 0
        assert len(await admin.topics.list("public/default")) == 1
        await admin.topics.delete(TOPIC, force=True)
        assert not await admin.topics.list("public/default")


async def test_rest_of_a_topic_when_free_then_redirects_to_the_candidate_with_authoritative(
    brokers: SharedBrokers,
) -> None:
    replies = [await call(each.web_url, "GET", f"{PATH}/stats") for each in brokers.brokers]
    locations = {reply.headers["Location"] for reply in replies if reply.status == 307}
    owner = await brokers.owner(TOPIC)
    assert locations <= {
        f"{owner.web_url}/admin/v2/{PATH}/stats?authoritative=true",
        f"{owner.web_url}/admin/v2/{PATH}/stats",
    }


async def test_rest_of_a_partitioned_topic_when_spread_then_all_partitions_are_acted_on(brokers: SharedBrokers) -> None:
    base = "persistent://public/default/p"
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.topics.create_partitioned(base, 8)
        await brokers.spread([f"{base}-partition-{number}" for number in range(8)])
        await admin.topics.create_subscription(base, "s")
        producer = await client.create_producer(base)
        for number in range(16):
            await producer.send(b"%d" % number)
        stats = await admin.topics.partitioned_stats(base)
        assert stats["msgInCounter"] == 16
        assert len(stats["partitions"]) == 8
        assert stats["subscriptions"]["s"]["msgBacklog"] == 16
        assert await admin.topics.subscriptions(base) == ["s"]
        await admin.topics.skip_all(base, "s")
        assert (await admin.topics.partitioned_stats(base))["subscriptions"]["s"]["msgBacklog"] == 0
        loaded = [len(each.app.registry.names) for each in brokers.brokers]
        assert sum(loaded) == 8
        assert max(loaded) < 8
        await producer.close()
        await admin.topics.delete_partitioned(base)
        assert sum(len(each.app.registry.names) for each in brokers.brokers) == 0


async def test_brokers_when_several_then_are_listed_with_what_they_own(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with AdminClient(other.web_url) as admin:
        assert await admin.brokers.list() == sorted(each.id for each in brokers.brokers)
    reply = await call(other.web_url, "GET", f"brokers/standalone/{owner.id}/ownedNamespaces")
    assert reply.status == 307
    reply = await call(owner.web_url, "GET", f"brokers/standalone/{owner.id}/ownedNamespaces")
    assert set(reply.json) == owner.bundles


# --- many topics


async def test_batch_when_ten_thousand_topics_are_spread_then_few_questions_find_all(brokers: SharedBrokers) -> None:
    await call(brokers[0].web_url, "PUT", "namespaces/public/many", {"bundles": {"numBundles": 64}})
    topics = [f"persistent://public/many/t-{number}" for number in range(MANY)]
    with counted_batches(brokers) as asked:
        async with Client(brokers[0].service_url, batch_lookup_topics_max=MANY) as client:
            found = await client.lookup_batch(topics)
            assert len(asked) <= 1 + 3
            assert {str(address) for address in found.values()} == {each.service_url for each in brokers.brokers}
            asked.clear()
            assert await client.lookup_batch(topics) == found
            assert asked == [brokers[0].id]
    assert sum(len(each.bundles) for each in brokers.brokers) == 64
    owners = {bundle: each.service_url for each in brokers.brokers for bundle in each.bundles}
    policies = await brokers[0].app.context.namespaces.get_policies(NamespaceName("public", "many"))
    boundaries = policies.other["bundles"]["boundaries"]
    for topic in topics:
        bundle = bundle_of(TopicName.parse(topic), boundaries)
        assert str(found[topic]) == owners[f"public/many/{bundle}"]


async def test_batch_when_a_broker_dies_meanwhile_then_no_topic_is_forgotten_and_the_next_one_finds_all(
    brokers: SharedBrokers,
) -> None:
    """Cluster 17, row 29."""
    await call(brokers[0].web_url, "PUT", "namespaces/public/many", {"bundles": {"numBundles": 32}})
    topics = [f"persistent://public/many/t-{number}" for number in range(1000)]
    async with Client(brokers[0].service_url) as client:
        await client.lookup_batch(topics)
    dying = brokers[1]
    async with Client(brokers[0].service_url) as client:
        asked = asyncio.create_task(client.lookup_batch(topics))
        dying.store.cut_off()
        dying.store.expire_unseen()
        await dying.app.stop()
        found = await asked
        assert list(found) == topics
        assert all(isinstance(each, BrokerAddress | PulsarError) for each in found.values())
        found = await client.lookup_batch(topics)
    brokers.brokers.remove(dying)
    assert {str(each) for each in found.values()} == {each.service_url for each in brokers.brokers}


class _Shifted:
    """A clock that is wrong."""

    def __init__(self, hours: int) -> None:
        self._ms = hours * 3_600_000

    def now_ms(self) -> int:
        return now_ms() + self._ms


@pytest.mark.parametrize("hours", [-1, 1])
async def test_clock_when_that_of_one_broker_is_wrong_then_topics_come_and_go_as_before(
    brokers: SharedBrokers, hours: int
) -> None:
    """Cluster 17, row 31."""
    wrong = await brokers.start(clock=_Shifted(hours))
    right = brokers[0]
    async with Client(right.service_url) as client:
        consumer = await client.subscribe(TOPIC, "s", subscription_type="shared")
        producer = await client.create_producer(TOPIC)
        for number in range(12):
            if number % 3 == 0:
                await brokers.move(TOPIC, (wrong, right)[number // 3 % 2])
                assert await brokers.owner(TOPIC) is (wrong, right)[number // 3 % 2]
            await producer.send(b"%d" % number)
            while int((message := await consumer.receive()).content or b"") < number:
                consumer.acknowledge(message)  # again: the topic moved before the first acknowledgement was sent
            assert message.content == b"%d" % number
            consumer.acknowledge(message)
        assert (wrong.app.ready, wrong.ownership.serving()) == (True, True)
        view = await right.ownership.brokers.view()
        assert set(view.reports) == {each.id for each in brokers.brokers}


async def test_lookups_when_a_thousand_ask_for_one_free_bundle_then_one_owner(brokers: SharedBrokers) -> None:
    async def ask(number: int) -> str:
        async with asyncio.timeout(60):
            return str(await client_of[number % 3].session.lookup.broker(TopicName.parse(TOPIC)))

    clients = [Client(each.service_url) for each in brokers.brokers]
    client_of = clients
    try:
        found = await asyncio.gather(*(ask(number) for number in range(1000)))
    finally:
        for client in clients:
            await client.close()
    assert set(found) == {(await brokers.owner(TOPIC)).service_url}
    assert sum(len(each.bundles) for each in brokers.brokers) == 1


# --- moving


async def test_bundles_when_unloaded_to_and_fro_under_load_then_nothing_is_lost(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    acknowledged: list[bytes] = []
    stopped = False

    async def publish(client: Client) -> None:
        producer = await client.create_producer(TOPIC, send_timeout_ms=60_000)
        number = 0
        while not stopped:
            number += 1
            await producer.send(b"%d" % number)
            acknowledged.append(b"%d" % number)

    received: list[bytes] = []

    async def consume(client: Client) -> None:
        consumer = await client.subscribe(TOPIC, "s", initial_position="earliest")
        while True:
            message = await consumer.receive()
            received.append(message.content)  # type: ignore[arg-type]
            consumer.acknowledge(message)

    async with Client(brokers[0].service_url, backoff_max_ms=100) as client:
        consuming, publishing = asyncio.create_task(consume(client)), asyncio.create_task(publish(client))
        for turn in range(10):
            before = len(acknowledged)
            await eventually(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
            await brokers.move(TOPIC, other if turn % 2 == 0 else owner)
            assert await brokers.owner(TOPIC) is (other if turn % 2 == 0 else owner)
        stopped = True
        await publishing
        await eventually(lambda: len(set(received)) == len(acknowledged))
        consuming.cancel()
        await asyncio.wait([consuming])
    assert list(dict.fromkeys(received)) == acknowledged


async def test_bundles_when_unloaded_under_an_official_producer_then_nothing_is_lost(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    acknowledged: list[bytes] = []
    stopped = False

    def publish() -> None:
        with connected(brokers[0].service_url) as official:
            producer = official.create_producer(TOPIC)
            while not stopped:
                producer.send(b"%d" % len(acknowledged))
                acknowledged.append(b"%d" % len(acknowledged))

    publishing = asyncio.create_task(asyncio.to_thread(publish))
    for target in (other, owner):
        before = len(acknowledged)
        await eventually(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
        await brokers.move(TOPIC, target)
    before = len(acknowledged)
    await eventually(lambda: len(acknowledged) > before + 20)
    stopped = True
    await publishing
    async with Client(brokers[0].service_url) as client:
        reader = await client.subscribe(TOPIC, "s", initial_position="earliest")
        received: list[bytes | None] = []
        while len(set(received)) < len(acknowledged):
            received.append((await reader.receive()).content)
    assert list(dict.fromkeys(received)) == acknowledged


async def test_stop_when_orderly_then_others_have_the_bundles_and_nothing_is_lost(brokers: SharedBrokers) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(other.service_url) as client:
        producer = await client.create_producer(TOPIC)
        consumer = await client.subscribe(TOPIC, "s")
        await producer.send(b"1")
        first = await consumer.receive()
        consumer.acknowledge(first)
        await owner.app.stop()
        brokers.brokers.remove(owner)
        await producer.send(b"2")
        assert (await consumer.receive()).content == b"2"
    assert await brokers.owner(TOPIC) in brokers.brokers
    async with AdminClient(other.web_url) as admin:
        assert await admin.brokers.list() == sorted(each.id for each in brokers.brokers)


@pytest.mark.parametrize("unload", [False, True])
async def test_split_when_at_the_owner_then_both_parts_are_held_or_free(brokers: SharedBrokers, unload: bool) -> None:
    owner, other = await brokers.take(TOPIC)
    async with Client(other.service_url) as client:
        producer = await client.create_producer(TOPIC)
        await producer.send(b"1")
        [bundle] = owner.bundles
        reply = await call(other.web_url, "PUT", f"namespaces/{bundle}/split?unload={str(unload).lower()}")
        assert reply.status == 307
        assert reply.headers["Location"].startswith(owner.web_url)
        reply = await call(owner.web_url, "PUT", f"namespaces/{bundle}/split?unload={str(unload).lower()}")
        assert reply.status == 204
        assert len(owner.bundles) == (0 if unload else 2)
        assert bundle not in owner.bundles
        assert (owner.app.registry.get(TopicName.parse(TOPIC)) is None) is unload
        await producer.send(b"2")
        owner = await brokers.owner(TOPIC)
        assert owner.ownership.holds(TopicName.parse(TOPIC))


async def test_namespace_when_deleted_by_force_then_the_topics_of_all_brokers_go(brokers: SharedBrokers) -> None:
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.namespaces.create("public/gone")
        await brokers.spread([f"persistent://public/gone/{number}" for number in range(8)])
        producers = [await client.create_producer(f"public/gone/{number}") for number in range(8)]
        for producer in producers:
            await producer.send(b"x")
            await producer.close()
        await admin.brokers.set_dynamic_configuration("forceDeleteNamespaceAllowed", "true")
        await admin.namespaces.delete("public/gone", force=True)
        assert "public/gone" not in await admin.namespaces.list("public")
    assert not any(each.app.registry.names for each in brokers.brokers)
    assert not [key for key in brokers.tree.values if "/gone/" in key and not key.startswith("/namespace")]


@pytest.mark.parametrize("policy", ["reconnect", "shutdown"])
async def test_session_when_lost_then_the_broker_stops_if_the_policy_says_so(policy: str) -> None:
    async with shared_brokers(1, BrokerConfig(zookeeper_session_expired_policy=policy)) as started:
        broker = started[0]
        await broker.ownership.brokers.refresh()
        assert not broker.app.must_stop.is_set()
        broker.store.cut_off()
        assert broker.app.must_stop.is_set() == (policy == "shutdown")
        broker.store.reconnect()


@pytest.mark.parametrize(
    "sign",
    ["__transaction_buffer_snapshot", "__transaction_buffer_snapshot-partition-0", "x-s__transaction_pending_ack"],
)
async def test_topic_when_there_are_transactions_then_is_left_as_it_is(brokers: SharedBrokers, sign: str) -> None:
    topic = TopicName.parse("persistent://public/default/x")
    metadata = brokers[0].store
    record = keys.topic_record(topic)
    await metadata.commit([Put(record, b""), Put(cursor_key(topic.log_name, "s"), b"")])
    async with Client(brokers[0].service_url) as client:
        await metadata.commit([Put(keys.topic_record(TopicName.of("persistent", "public", "default", sign)), b"")])
        with pytest.raises(NotAllowed, match="namespace public/default has transactions"):
            await client.create_producer(str(topic))
    found = await metadata.get(record)
    assert found is not None
    assert found.value == b""

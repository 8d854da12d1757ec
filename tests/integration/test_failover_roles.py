"""The role of a namespace through the binary protocol and the admin API: who is served, refused and redirected."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import Client
from interpulse.client.failover.auto import AutoFailover
from interpulse.client.failover.sites import Site
from interpulse.model.ids import Position
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.testing.broker import BrokerFactory, InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.rest_client import Reply, call
from tests.support.site_pair import TOPIC as SITES_TOPIC
from tests.support.site_pair import site_pair
from tests.support.waiting import eventually, until

NAMESPACE = "public/default"
TOPIC = "persistent://public/default/orders"
OTHER = "persistent://public/default/returns"
LANE = "interpulse.shop.east-->west.e0"
WEST = "pulsar://west.example:6650"
NO_REQUEST = 2**64 - 1


async def set_role(broker: InProcessBroker, role: str, epoch: int, **fields: Any) -> Reply:
    path = f"namespaces/{NAMESPACE}/failover"
    return await call(broker.web_url, "POST", path, {"role": role, "epoch": epoch, **fields})


def published(client: RawClient, number: int, payload: bytes) -> Position:
    message_id = client.ask(commands.send(1, number, entry(payload))).message_id
    return Position(message_id.ledgerId, message_id.entryId)


def refusal(client: RawClient, frame: bytes) -> tuple[int, str]:
    answer = client.ask(frame)
    assert isinstance(answer, pb.CommandError)
    return answer.error, answer.message.partition(":")[0]


async def test_fenced_namespace_then_local_producers_are_closed_and_only_copies_follow(
    pulsar_broker: InProcessBroker,
) -> None:
    pulsar_broker.admin.topics.create(OTHER)
    with RawClient(pulsar_broker.service_url) as client, RawClient(pulsar_broker.service_url) as job:
        client.ask(commands.producer(1, 1, TOPIC))
        job.ask(commands.producer(1, 1, TOPIC, name=LANE))
        end = published(client, 0, b"first")
        reply = await set_role(pulsar_broker, "fenced", 5)
        assert (reply.json["role"], reply.json["closedProducers"]) == ("fenced;epoch=5", 1)
        positions = reply.json["positions"]
        assert (sorted(positions), positions[TOPIC]) == ([TOPIC, OTHER], str(end))
        assert Position.parse(positions[OTHER]).entry == -1
        closed = client.answer().command.close_producer
        assert (closed.producer_id, closed.request_id) == (1, NO_REQUEST)
        about = "Namespace public/default is fenced for a switch, epoch 5"
        assert refusal(client, commands.producer(1, 2, TOPIC)) == (pb.ServiceNotReady, about)
        assert refusal(client, commands.producer(1, 2, f"{TOPIC}-new")) == (pb.ServiceNotReady, about)
        assert published(job, 0, b"copy") == Position(end.ledger, end.entry + 1)
        job.ask(commands.producer(2, 2, TOPIC, name="pulsar.repl.east"))
        again = await set_role(pulsar_broker, "fenced", 5)
        assert again.json["closedProducers"] == 1


async def test_namespace_when_closed_to_a_cluster_then_its_lanes_go_and_clients_stay(
    pulsar_broker: InProcessBroker,
) -> None:
    with RawClient(pulsar_broker.service_url) as client, RawClient(pulsar_broker.service_url) as job:
        client.ask(commands.producer(1, 1, TOPIC))
        job.ask(commands.producer(1, 1, TOPIC, name=LANE))
        published(job, 0, b"copy")
        reply = await set_role(pulsar_broker, "active", 5, closedTo="east")
        assert (reply.json["role"], reply.json["closedProducers"]) == ("active;epoch=5;lanesFrom=east:closed", 0)
        assert job.answer().command.close_producer.producer_id == 1
        about = "Namespace public/default is active, epoch 5"
        assert refusal(job, commands.producer(1, 2, TOPIC, name=LANE)) == (pb.ServiceNotReady, about)
        assert refusal(job, commands.producer(1, 2, TOPIC, name="pulsar.repl.east")) == (pb.ServiceNotReady, about)
        published(client, 0, b"local")
        await set_role(pulsar_broker, "active", 5)
        job.ask(commands.producer(1, 2, TOPIC, name=LANE))
    reply = await set_role(pulsar_broker, "active", 5, holdConsumersFor=60)
    assert reply.json["role"].startswith("active;epoch=5;consumersFrom=")
    reply = await set_role(pulsar_broker, "active", 5, holdConsumersFor=3601)
    assert (reply.status, "holdConsumersFor must be between 0 and 3600" in reply.reason) == (400, True)
    reply = await set_role(pulsar_broker, "active", 5, closedTo="e;x")
    assert (reply.status, "closedTo must be the name of a cluster" in reply.reason) == (400, True)


async def test_epoch_lower_than_the_stored_one_then_refused(pulsar_broker: InProcessBroker) -> None:
    await set_role(pulsar_broker, "standby", 6)
    reply = await set_role(pulsar_broker, "active", 5)
    assert (reply.status, reply.reason) == (
        409,
        "The namespace has epoch 6 (standby;epoch=6), so epoch 5 comes too late",
    )
    shown = (await call(pulsar_broker.web_url, "GET", f"namespaces/{NAMESPACE}/failover")).json
    assert (shown["role"], shown["epoch"], shown["since"][:2]) == ("standby;epoch=6", 6, "20")


async def test_property_set_by_anyone_then_has_the_same_effect(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        client.ask(commands.producer(1, 1, TOPIC))
        pulsar_broker.admin.namespaces.set_property(NAMESPACE, "interpulse.failover.role", "fenced;epoch=2")
        assert client.answer().command.close_producer.producer_id == 1
        shown = (await call(pulsar_broker.web_url, "GET", f"namespaces/{NAMESPACE}/failover")).json
        assert shown == {"role": "fenced;epoch=2", "epoch": 2, "since": None}
        pulsar_broker.admin.namespaces.remove_property(NAMESPACE, "interpulse.failover.role")
        until(lambda: isinstance(client.ask(commands.producer(2, 1, TOPIC)), pb.CommandProducerSuccess))


async def test_moved_namespace_then_clients_are_redirected_and_come_back(pulsar_broker: InProcessBroker) -> None:
    with RawClient(pulsar_broker.service_url) as client, RawClient(pulsar_broker.service_url) as drained:
        client.ask(commands.producer(1, 1, TOPIC))
        client.ask(commands.subscribe(2, 2, TOPIC, "s"))
        drained.ask(commands.subscribe(1, 1, TOPIC, "t"))
        position = published(client, 0, b"first")
        drained.send(commands.ack(1, [pb.MessageIdData(ledgerId=position.ledger, entryId=position.entry)]))
        until(lambda: pulsar_broker.admin.topics.stats(TOPIC)["subscriptions"]["t"]["msgBacklog"] == 0)
        await set_role(pulsar_broker, "moved", 7, url=WEST)
        for received, kind in ((client, "producer"), (drained, "consumer")):
            moved = received.answer().command.topicMigrated
            assert (moved.resource_id, pb.CommandTopicMigrated.ResourceType.Name(moved.resource_type).lower()) == (
                1,
                kind,
            )
            assert (moved.brokerServiceUrl, moved.brokerServiceUrlTls) == (WEST, "")
            assert getattr(received.answer().command, f"close_{kind}").request_id == NO_REQUEST
        client.send(commands.producer(3, 1, TOPIC))
        assert client.answer().command.topicMigrated.brokerServiceUrl == WEST
        assert client.answer().command.close_producer.producer_id == 1
        client.send(commands.ack(2, [pb.MessageIdData(ledgerId=position.ledger, entryId=position.entry)]))
        assert client.answer().command.topicMigrated.resource_id == 2
        assert client.answer().command.close_consumer.consumer_id == 2
        await set_role(pulsar_broker, "active", 7)
        assert isinstance(client.ask(commands.producer(4, 1, TOPIC)), pb.CommandProducerSuccess)


async def test_client_of_an_older_protocol_then_is_refused_for_now(pulsar_broker: InProcessBroker) -> None:
    await set_role(pulsar_broker, "moved", 7, url=WEST)
    with RawClient(pulsar_broker.service_url, greet=False) as client:
        client.send(commands.connect(client_version="old", protocol_version=19, feature_flags=pb.FeatureFlags()))
        client.receive()
        assert refusal(client, commands.producer(1, 1, TOPIC)) == (
            pb.ServiceNotReady,
            "Namespace public/default has moved to another cluster, epoch 7",
        )


async def test_consumers_when_refused_on_standby_then_wait_for_the_role(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.admin.topics.create_subscription(TOPIC, "s")
    pulsar_broker.admin.brokers.set_dynamic_configuration("standbyConsumers", "refuse")
    await set_role(pulsar_broker, "standby", 1)
    with RawClient(pulsar_broker.service_url) as client:
        about = "Namespace public/default is standby, epoch 1"
        assert refusal(client, commands.subscribe(1, 1, TOPIC, "s")) == (pb.ServiceNotReady, about)
        pulsar_broker.admin.brokers.set_dynamic_configuration("standbyConsumers", "allow")
        until(lambda: isinstance(client.ask(commands.subscribe(2, 1, TOPIC, "s")), pb.CommandSuccess))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"role": "fence", "epoch": 1}, "The body needs a role of active, fenced, standby, moved, and an epoch from 0"),
        ({"role": "fenced"}, "The body needs a role"),
        ({"role": "fenced", "epoch": -1}, "The body needs a role"),
        ({"role": "moved", "epoch": 1}, "The role moved cannot be set: moved needs a url"),
        ({"role": "active", "epoch": 1, "url": WEST}, "The role active cannot be set: only moved has a url"),
    ],
)
async def test_role_that_is_malformed_then_refused_and_nothing_is_stored(
    pulsar_broker_session: InProcessBroker, body: dict[str, Any], reason: str
) -> None:
    reply = await call(pulsar_broker_session.web_url, "POST", f"namespaces/{NAMESPACE}/failover", body)
    assert (reply.status, reply.reason[: len(reason)]) == (400, reason)
    assert pulsar_broker_session.admin.namespaces.properties(NAMESPACE) == {}


async def test_role_of_a_missing_namespace_then_not_found(pulsar_broker_session: InProcessBroker) -> None:
    body = {"role": "fenced", "epoch": 1}
    reply = await call(pulsar_broker_session.web_url, "POST", "namespaces/public/missing/failover", body)
    assert (reply.status, reply.reason) == (404, "Namespace does not exist")


async def test_migration_then_shown_like_pulsar_does_and_taken_back(pulsar_broker: InProcessBroker) -> None:
    admin, url = pulsar_broker.admin, pulsar_broker.web_url
    shown = await call(url, "GET", "clusters/standalone/migrate")
    assert shown.json == {"migrated": False, "migratedClusterUrl": {"empty": True}}
    reply = await call(url, "POST", f"namespaces/{NAMESPACE}/migration", True)
    assert (reply.status, reply.reason[:37]) == (409, "There is no cluster to redirect to: s")
    urls = {"serviceUrl": "http://west.example:8080", "brokerServiceUrl": WEST}
    for migrated in ("true", "false"):
        reply = await call(url, "POST", f"clusters/standalone/migrate?migrated={migrated}", urls)
        assert (reply.status, reply.body) == (200, b"")
        shown = await call(url, "GET", "clusters/standalone/migrate")
        assert shown.json == {"migrated": migrated == "true", "migratedClusterUrl": {**urls, "empty": False}}
    admin.namespaces.set_migrated(NAMESPACE, True)
    assert admin.namespaces.policies_json(NAMESPACE)["migrated"] is True
    assert admin.namespaces.failover_role(NAMESPACE)["role"] == f"moved;epoch=0;url={WEST}"
    with RawClient(pulsar_broker.service_url) as client:
        client.send(commands.producer(1, 1, TOPIC))
        assert client.answer().command.topicMigrated.brokerServiceUrl == WEST
        admin.namespaces.set_migrated(NAMESPACE, False)
        client.answer()
        assert isinstance(client.ask(commands.producer(2, 1, TOPIC)), pb.CommandProducerSuccess)
    reply = await call(url, "POST", "clusters/other/migrate?migrated=true", urls)
    assert (reply.status, reply.reason) == (
        412,
        "This is a broker of cluster standalone; clients of other are redirected by its own",
    )


async def test_namespace_url_then_counts_before_that_of_the_cluster(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.admin.namespaces.set_property(NAMESPACE, "interpulse.failover.url", WEST)
    pulsar_broker.admin.namespaces.set_migrated(NAMESPACE, True)
    assert pulsar_broker.admin.namespaces.failover_role(NAMESPACE)["role"] == f"moved;epoch=0;url={WEST}"
    reply = await set_role(pulsar_broker, "moved", 2)
    assert reply.json["role"] == f"moved;epoch=2;url={WEST}"


async def test_client_when_its_site_is_lost_and_the_other_is_on_standby_then_waits_for_promotion(
    tmp_path: Path,
) -> None:
    """F19."""
    with site_pair(tmp_path) as pair:
        pair.west.admin.topics.create(SITES_TOPIC)
        pair.west.admin.namespaces.set_failover_role(NAMESPACE, "standby", 1)
        rules = AutoFailover([pair.east.service_url, pair.west.service_url], fail_after=2, interval_s=0.05, timeout_s=2)
        async with Client(pair.east.service_url, failover=rules, backoff_max_ms=200) as client:
            producer = await client.create_producer(SITES_TOPIC, batch_messages_max=1)
            await producer.send(b"on east")
            await asyncio.to_thread(pair.east.stop)
            pending = [await producer.enqueue(b"%d" % number) for number in range(20)]
            await eventually(lambda: client.site == Site(pair.west.service_url))
            assert not any(future.done() for future in pending)
            stats = await asyncio.to_thread(pair.west.admin.topics.stats, SITES_TOPIC)
            assert (stats["msgInCounter"], stats["publishers"]) == (0, [])
            await asyncio.to_thread(pair.west.admin.namespaces.set_failover_role, NAMESPACE, "active", 2)
            await asyncio.gather(*pending)
            reader = await client.create_reader(SITES_TOPIC)
            contents = [(await reader.read_next(60_000)).content for _ in pending]
            assert contents == [b"%d" % number for number in range(20)]


async def test_client_when_the_namespace_is_fenced_and_moved_then_goes_on_at_the_other_site_and_back(
    pulsar_broker_factory: BrokerFactory,
) -> None:
    east, west = pulsar_broker_factory(clusterName="east"), pulsar_broker_factory(clusterName="west")

    async def move(here: InProcessBroker, there: InProcessBroker, epoch: int) -> None:
        await set_role(here, "fenced", epoch)
        await set_role(there, "active", epoch)
        await set_role(here, "moved", epoch, url=there.service_url)

    for site in (east, west):
        site.admin.topics.create_subscription(TOPIC, "s")
    async with Client(east.service_url, backoff_max_ms=200) as client:
        producer, consumer = await client.create_producer(TOPIC, name="p"), await client.subscribe(TOPIC, "s")
        for epoch, sites in enumerate(((east, west), (west, east)), 1):
            await asyncio.to_thread(until, lambda at=sites[0]: at.admin.topics.stats(TOPIC)["publishers"])
            await move(*sites, epoch)
            await producer.send(b"%d" % epoch)
            message = await consumer.receive(60_000)
            assert message.content == b"%d" % epoch
            consumer.acknowledge(message)
            stats = await asyncio.to_thread(sites[1].admin.topics.stats, TOPIC)
            assert stats["msgInCounter"] == 1


async def test_client_when_it_opens_in_a_moved_namespace_then_goes_to_the_other_site_without_delay(
    pulsar_broker_factory: BrokerFactory,
) -> None:
    east, west = pulsar_broker_factory(clusterName="east"), pulsar_broker_factory(clusterName="west")
    await set_role(east, "moved", 1, url=west.service_url)
    async with Client(east.service_url, backoff_max_ms=200) as client, asyncio.timeout(20):
        consumer = await client.subscribe(TOPIC, "s")
        producer = await client.create_producer(TOPIC, schema=SchemaInfo(SchemaType.STRING))
        await producer.send(b"there")
        assert (await consumer.receive(10_000)).content == b"there"
    stats = await asyncio.to_thread(west.admin.topics.stats, TOPIC)
    assert stats["msgInCounter"] == 1

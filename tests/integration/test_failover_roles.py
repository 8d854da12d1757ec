"""The role of a namespace through the binary protocol and the admin API: who is served, refused and redirected."""

from __future__ import annotations

from typing import Any

from interpulse.model.ids import Position
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.rest_client import Reply, call
from tests.support.waiting import until

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

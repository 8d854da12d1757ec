"""A consumer over topics and partitions."""

import pytest

from interpulse.client import Client
from interpulse.model.errors import AlreadyClosed, InvalidRequest, OperationTimeout, TopicNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from tests.scripted_broker import ScriptedBroker
from tests.unit.client.test_consumer import single

TOPIC = "persistent://public/default/t"


def consumer_ids(broker: ScriptedBroker) -> dict[str, int]:
    return {
        command.subscribe.topic: command.subscribe.consumer_id for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)
    }


async def test_messages_of_all_partitions_come_out_of_one_consumer_and_acks_find_their_way() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 2
        consumer = await client.subscribe(TOPIC, "s")
        for index, consumer_id in enumerate(consumer_ids(broker).values()):
            broker.peers[0].say(commands.message(consumer_id, Position(index, 0), single(b"%d" % index)))
        messages = [await consumer.receive(5000) for _ in range(2)]
        assert {message.id.partition for message in messages} == {0, 1}
        for message in messages:
            consumer.acknowledge(message)
        await broker.heard(pb.BaseCommand.ACK, 2)
        acks = {command.ack.consumer_id for command in broker.all_of(pb.BaseCommand.ACK)}
        assert acks == set(consumer_ids(broker).values())


async def test_seek_to_a_message_of_one_partition_then_the_others_stay() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 2
        consumer = await client.subscribe(TOPIC, "s")
        await consumer.seek(MessageId(5, 5, 1))
        (seek,) = [command.seek for command in broker.all_of(pb.BaseCommand.SEEK)]
        assert seek.consumer_id == consumer_ids(broker)[f"{TOPIC}-partition-1"]
        await consumer.seek(1234)
        assert broker.count(pb.BaseCommand.SEEK) == 3


async def test_consumer_when_one_of_its_topics_fails_for_good_then_receivers_hear_of_it() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        consumer = await client.subscribe([TOPIC, f"{TOPIC}2"], "s")
        broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
            commands.error(frame.command.subscribe.request_id, 11, "deleted")
        )
        broker.peers[0].say(commands.close_consumer(consumer_ids(broker)[TOPIC]))
        with pytest.raises(TopicNotFound):
            await consumer.receive(5000)


async def test_iteration_ends_when_the_consumer_is_closed() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        consumer = await client.subscribe(TOPIC, "s")
        broker.peers[0].say(commands.message(consumer_ids(broker)[TOPIC], Position(1, 0), single(b"x")))
        seen = []
        async for message in consumer:
            seen.append(message)
            await consumer.close()
        assert len(seen) == 1
        with pytest.raises(AlreadyClosed):
            consumer.acknowledge(seen[0])


async def test_misuse_is_refused_before_anything_is_sent() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        with pytest.raises(InvalidRequest):
            await client.subscribe([], "s")
        with pytest.raises(InvalidRequest):
            await client.subscribe(TOPIC, "")
        shared = await client.subscribe(TOPIC, "s", subscription_type="shared")
        broker.peers[0].say(commands.message(consumer_ids(broker)[TOPIC], Position(1, 0), single(b"x")))
        message = await shared.receive(5000)
        with pytest.raises(InvalidRequest):
            shared.acknowledge_cumulative(message)
        with pytest.raises(OperationTimeout):
            await shared.receive(5)

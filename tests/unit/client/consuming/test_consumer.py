"""A consumer over topics and partitions."""

import asyncio

import pytest

from interpulse.client import Client
from interpulse.model.errors import AlreadyClosed, InvalidRequest, NotAllowed, OperationTimeout, TopicNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.unit.client.consuming.test_partition_consumer import single

TOPIC = "persistent://public/default/t"
EARLIEST = pb.CommandSubscribe.Earliest


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


async def test_new_partitions_are_looked_for_without_creating_and_taken_from_their_beginning() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 1
        await client.subscribe(TOPIC, "s", auto_update_partitions_interval_ms=1)
        broker.partitions[TOPIC] = 2
        await broker.heard(pb.BaseCommand.SUBSCRIBE, 2)
        first, second = [command.subscribe for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert (first.initialPosition, second.initialPosition) == (pb.CommandSubscribe.Latest, EARLIEST)
        asked = [command.partitionMetadata for command in broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)]
        assert [request.metadata_auto_creation_enabled for request in asked[:2]] == [True, False]


async def test_message_of_a_new_partition_can_be_acknowledged_before_all_new_ones_are_open() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 1
        consumer = await client.subscribe(TOPIC, "s")
        broker.partitions[TOPIC] = 3
        held: list[tuple[Peer, Frame]] = []

        def hold_last(peer: Peer, frame: Frame) -> None:
            if frame.command.subscribe.topic.endswith("-2"):
                held.append((peer, frame))
            else:
                peer.answer(frame)

        broker.scripts[pb.BaseCommand.SUBSCRIBE] = hold_last
        growing = asyncio.create_task(consumer.update_partitions())
        await broker.heard(pb.BaseCommand.FLOW, 2)
        new = f"{TOPIC}-partition-1"
        broker.peers[0].say(commands.message(consumer_ids(broker)[new], Position(1, 0), single(b"x")))
        message = await consumer.receive(5000)
        consumer.acknowledge(message)
        assert (message.topic, growing.done()) == (new, False)
        ((peer, frame),) = held
        peer.answer(frame)
        peer.say(b"")
        await growing
        assert len(consumer.parts) == 3


async def test_new_partitions_when_one_is_refused_then_none_is_kept_and_its_messages_are_not_ours() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 1
        consumer = await client.subscribe(TOPIC, "s")
        broker.partitions[TOPIC] = 3
        messages = []

        def refuse_last(peer: Peer, frame: Frame) -> None:
            subscribe = frame.command.subscribe
            if subscribe.topic.endswith("-2"):
                peer.say(commands.error(subscribe.request_id, 22, "not this one"))
                return
            peer.answer(frame)
            peer.say(commands.message(subscribe.consumer_id, Position(1, 0), single(b"x")))

        broker.scripts[pb.BaseCommand.SUBSCRIBE] = refuse_last
        growing = asyncio.create_task(consumer.update_partitions())
        messages.append(await consumer.receive(5000))
        with pytest.raises(NotAllowed):
            await growing
        assert [str(part.topic) for part in consumer.parts] == [f"{TOPIC}-partition-0"]
        with pytest.raises(AlreadyClosed, match="are redelivered"):
            consumer.acknowledge(messages[0])
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 1


async def test_growth_of_one_topic_is_noticed_although_another_is_gone() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        gone = f"{TOPIC}-gone"
        broker.partitions |= {gone: 1, TOPIC: 1}
        consumer = await client.subscribe([gone, TOPIC], "s")
        broker.partitions[TOPIC] = 2

        def absent(peer: Peer, frame: Frame) -> None:
            if frame.command.partitionMetadata.topic == gone:
                peer.say(commands.partitioned_metadata_error(frame.command.partitionMetadata.request_id, 11, ""))
            else:
                peer.answer(frame)

        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = absent
        with pytest.raises(TopicNotFound, match="gone"):
            await consumer.update_partitions()
        assert len(consumer.parts) == 3


async def test_consumer_when_closed_while_it_grows_then_leaves_nothing_open() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 1
        consumer = await client.subscribe(TOPIC, "s")
        broker.partitions[TOPIC] = 2
        held: list[tuple[Peer, Frame]] = []
        broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: held.append((peer, frame))
        growing = asyncio.create_task(consumer.update_partitions())
        await broker.heard(pb.BaseCommand.SUBSCRIBE, 2)
        await consumer.close()
        held[0][0].answer(held[0][1])
        with pytest.raises(AlreadyClosed):
            await growing
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 2
        with pytest.raises(AlreadyClosed):
            await consumer.update_partitions()


async def test_topics_are_added_and_removed_while_others_go_on() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions["persistent://public/default/parts"] = 2
        consumer = await client.subscribe(TOPIC, "s")
        await consumer.add_topics(["parts", TOPIC])
        assert consumer.topics == [TOPIC, "persistent://public/default/parts"]
        assert len(consumer.parts) == 3
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == 3
        await consumer.remove_topics(["parts", "unknown"])
        assert (consumer.topics, len(consumer.parts)) == ([TOPIC], 1)
        closed = {command.close_consumer.consumer_id for command in broker.all_of(pb.BaseCommand.CLOSE_CONSUMER)}
        assert closed == {consumer_ids(broker)[f"persistent://public/default/parts-partition-{n}"] for n in range(2)}
        await consumer.close()
        with pytest.raises(AlreadyClosed):
            await consumer.add_topics(["x"])


async def test_topic_that_cannot_be_added_leaves_the_consumer_as_it_was() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        consumer = await client.subscribe(TOPIC, "s")
        broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
            commands.error(frame.command.subscribe.request_id, 22, "no")
        )
        with pytest.raises(NotAllowed):
            await consumer.add_topics(["x"])
        assert (consumer.topics, len(consumer.parts), consumer.is_connected) == ([TOPIC], 1, True)


async def test_seek_by_function_asks_for_every_partition() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 2
        consumer = await client.subscribe(TOPIC, "s")
        await consumer.seek(lambda topic: 5 if topic.endswith("0") else MessageId(1, 2))
        first, second = sorted(
            (command.seek for command in broker.all_of(pb.BaseCommand.SEEK)), key=lambda seek: seek.consumer_id
        )
        assert (first.message_publish_time, second.message_id.entryId) == (5, 2)
        with pytest.raises(InvalidRequest, match="fits one topic or partition only, and there are 2"):
            await consumer.seek(MessageId(1, 2))


async def test_retry_letters_are_read_by_the_consumer_that_sends_them() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        consumer = await client.subscribe(TOPIC, "s", retry_enabled=True)
        assert list(consumer_ids(broker)) == [TOPIC, f"{TOPIC}-s-RETRY"]
        assert consumer.topics == [TOPIC]
        broker.peers[0].say(commands.message(consumer_ids(broker)[TOPIC], Position(1, 0), single(b"x")))
        await consumer.reconsume_later(await consumer.receive(5000), 10, {"why": "busy"})
        await broker.heard(pb.BaseCommand.ACK)
        (producer,) = broker.all_of(pb.BaseCommand.PRODUCER)
        assert producer.producer.topic == f"{TOPIC}-s-RETRY"
        await consumer.close()
        await broker.heard(pb.BaseCommand.CLOSE_PRODUCER)


async def test_retry_letter_that_is_refused_leaves_its_message_unacknowledged() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        consumer = await client.subscribe(TOPIC, "s", retry_enabled=True)
        broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
            commands.error(frame.command.producer.request_id, 22, "no")
        )
        broker.peers[0].say(commands.message(consumer_ids(broker)[TOPIC], Position(1, 0), single(b"x")))
        with pytest.raises(NotAllowed):
            await consumer.reconsume_later(await consumer.receive(5000), 10)
        await consumer.close()
        assert broker.count(pb.BaseCommand.ACK) == 0

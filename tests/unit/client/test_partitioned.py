"""A producer over partitions."""

import pytest

from interpulse.client import Client
from interpulse.client.partitioned import partition_names
from interpulse.model.errors import AlreadyClosed, NotAllowed
from interpulse.model.names import TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.scripted_broker import Peer, ScriptedBroker

TOPIC = TopicName.parse("t")


def answer_batch(broker: ScriptedBroker) -> None:
    def answer(peer: Peer, frame: Frame) -> None:
        request = frame.command.batchLookupTopic
        group = pb.BatchLookupGroup(
            brokerServiceUrl=broker.url, response=pb.CommandLookupTopicResponse.Connect, topicname=request.topics
        )
        peer.say(commands.batch_lookup_response(request.request_id, groups=[group]))

    broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer


def test_names_of_partitions() -> None:
    assert partition_names(TOPIC, 0) == [TOPIC]
    assert [str(name) for name in partition_names(TOPIC, 3, first=1)] == [
        f"{TOPIC}-partition-1",
        f"{TOPIC}-partition-2",
    ]


async def test_producer_of_many_partitions_then_finds_their_brokers_with_one_question() -> None:
    async with ScriptedBroker(pb.FeatureFlags(supports_batch_lookup=True)) as broker:
        broker.partitions[str(TOPIC)] = 50
        answer_batch(broker)
        async with Client(broker.url) as client:
            producer = await client.create_producer(str(TOPIC))
            consumer = await client.subscribe(str(TOPIC), "s")
            assert (len(producer.partitions), len(consumer.parts)) == (50, 50)
        assert broker.count(pb.BaseCommand.BATCH_LOOKUP) == 2
        assert broker.count(pb.BaseCommand.LOOKUP) == 0
        assert broker.count(pb.BaseCommand.PRODUCER) == broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 50
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 50
        assert len(broker.peers) == 1


async def test_producer_when_one_partition_refuses_then_the_others_are_closed_again() -> None:
    async with ScriptedBroker() as broker:
        broker.partitions[str(TOPIC)] = 3

        def refuse_last(peer: Peer, frame: Frame) -> None:
            if frame.command.producer.topic.endswith("-2"):
                peer.say(commands.error(frame.command.producer.request_id, 22, "not this one"))
            else:
                peer.answer(frame)

        broker.scripts[pb.BaseCommand.PRODUCER] = refuse_last
        async with Client(broker.url) as client:
            with pytest.raises(NotAllowed, match="not this one"):
                await client.create_producer(str(TOPIC))
            assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 2


async def test_producer_looks_for_new_partitions_without_creating_anything() -> None:
    async with ScriptedBroker() as broker:
        broker.partitions[str(TOPIC)] = 1
        async with Client(broker.url) as client:
            producer = await client.create_producer(str(TOPIC), partitions_update_interval_ms=10)
            broker.partitions[str(TOPIC)] = 2
            await broker.heard(pb.BaseCommand.PRODUCER, 2)
            asked = [command.partitionMetadata for command in broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)]
            assert asked[0].metadata_auto_creation_enabled
            assert not asked[1].metadata_auto_creation_enabled
            assert {command.producer.topic for command in broker.all_of(pb.BaseCommand.PRODUCER)} == {
                f"{TOPIC}-partition-0",
                f"{TOPIC}-partition-1",
            }
            await producer.close()
            with pytest.raises(AlreadyClosed):
                await producer.send(b"x")


async def test_producer_when_its_topic_is_gone_then_the_watch_goes_on_quietly() -> None:
    async with ScriptedBroker() as broker:
        broker.partitions[str(TOPIC)] = 1
        async with Client(broker.url) as client:
            producer = await client.create_producer(str(TOPIC), partitions_update_interval_ms=5)
            broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
                commands.partitioned_metadata_error(frame.command.partitionMetadata.request_id, 11, "")
            )
            await broker.heard(pb.BaseCommand.PARTITIONED_METADATA, 4)
            await producer.send(b"still works")

"""The producer of a topic, and the choice of a partition."""

import asyncio
from collections import Counter

import pytest

from interpulse.client import Client
from interpulse.client.partitions import partition_names
from interpulse.client.producing.producer import Router
from interpulse.model.errors import AlreadyClosed, NotAllowed, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker


def test_key_when_routed_then_follows_the_hash_of_the_java_client() -> None:
    router = Router()
    assert router.choose("key1", 10) == 3288498 % 10
    assert {router.choose("test", 7) for _ in range(5)} == {3556498 % 7}
    assert Router(hashing="murmur3").choose("key1", 10) == 462881061 % 10


def test_messages_without_key_go_around_in_strides() -> None:
    router = Router(stride=3)
    chosen = [router.choose(None, 4) for _ in range(24)]
    assert Counter(chosen) == {0: 6, 1: 6, 2: 6, 3: 6}
    assert all(chosen[start : start + 3] == [chosen[start]] * 3 for start in range(0, 24, 3))


def test_messages_without_key_in_single_mode_stay_together() -> None:
    router = Router(mode="single")
    assert len({router.choose(None, 4) for _ in range(10)}) == 1


TOPIC = TopicName.parse("t")


def answer_batch(broker: ScriptedBroker) -> None:
    def answer(peer: Peer, frame: Frame) -> None:
        request = frame.command.batchLookupTopic
        group = pb.BatchLookupGroup(
            brokerServiceUrl=broker.url, response=pb.CommandLookupTopicResponse.Connect, topicname=request.topics
        )
        peer.say(commands.batch_lookup_response(request.request_id, groups=[group]))

    broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer


def refuse_partition_2(peer: Peer, frame: Frame) -> None:
    if frame.command.producer.topic.endswith("-2"):
        peer.say(commands.error(frame.command.producer.request_id, 22, "not this one"))
    else:
        peer.answer(frame)


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
        broker.scripts[pb.BaseCommand.PRODUCER] = refuse_partition_2
        async with Client(broker.url) as client:
            with pytest.raises(NotAllowed, match="not this one"):
                await client.create_producer(str(TOPIC))
            assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 2


async def test_producer_looks_for_new_partitions_without_creating_anything() -> None:
    async with ScriptedBroker() as broker:
        broker.partitions[str(TOPIC)] = 1
        async with Client(broker.url) as client:
            producer = await client.create_producer(str(TOPIC), auto_update_partitions_interval_ms=10)
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
            producer = await client.create_producer(str(TOPIC), auto_update_partitions_interval_ms=5)
            broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
                commands.partitioned_metadata_error(frame.command.partitionMetadata.request_id, 11, "")
            )
            await broker.heard(pb.BaseCommand.PARTITIONED_METADATA, 4)
            await producer.send(b"still works")


async def test_producer_that_shall_not_look_for_partitions_never_asks() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions |= {str(TOPIC): 1, f"{TOPIC}2": 1}
        await client.create_producer(str(TOPIC), auto_update_partitions=False, auto_update_partitions_interval_ms=1)
        await client.create_producer(f"{TOPIC}2", auto_update_partitions_interval_ms=1)
        await broker.heard(pb.BaseCommand.PARTITIONED_METADATA, 10)
        asked = [command.partitionMetadata.topic for command in broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)]
        assert asked.count(str(TOPIC)) == 1


async def test_producer_of_a_topic_without_partitions_stays_on_it() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        producer = await client.create_producer(str(TOPIC), auto_update_partitions_interval_ms=1)
        broker.partitions[str(TOPIC)] = 3
        await producer.update_partitions()
        assert [partition.topic for partition in producer.partitions] == [str(TOPIC)]
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 1


async def test_producer_when_a_new_partition_refuses_then_keeps_none_of_the_new_ones_and_finds_them_next_time() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        producer = await client.create_producer(str(TOPIC))
        broker.partitions[str(TOPIC)] = 3
        broker.scripts[pb.BaseCommand.PRODUCER] = refuse_partition_2
        with pytest.raises(NotAllowed):
            await producer.update_partitions()
        assert len(producer.partitions) == 1
        assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 1
        await producer.send(b"still works")
        del broker.scripts[pb.BaseCommand.PRODUCER]
        await producer.update_partitions()
        assert [partition.topic for partition in producer.partitions] == [
            str(name) for name in partition_names(TOPIC, 3)
        ]


async def test_producer_when_looked_for_twice_at_once_then_opens_each_partition_once() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        producer = await client.create_producer(str(TOPIC))
        broker.partitions[str(TOPIC)] = 2
        await asyncio.gather(producer.update_partitions(), producer.update_partitions())
        assert len(producer.partitions) == broker.count(pb.BaseCommand.PRODUCER) == 2


async def test_producer_when_closed_while_it_grows_then_leaves_nothing_open() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        producer = await client.create_producer(str(TOPIC))
        broker.partitions[str(TOPIC)] = 2
        waiting: list[tuple[Peer, Frame]] = []
        broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: waiting.append((peer, frame))
        growing = asyncio.create_task(producer.update_partitions())
        await broker.heard(pb.BaseCommand.PRODUCER, 2)
        await producer.close()
        (peer, frame), *_ = waiting
        peer.answer(frame)
        with pytest.raises(AlreadyClosed):
            await growing
        assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 2
        with pytest.raises(AlreadyClosed):
            await producer.update_partitions()


async def test_producer_when_closed_while_its_watch_opens_a_partition_then_says_goodbye_for_that_one_too() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        producer = await client.create_producer(str(TOPIC), auto_update_partitions_interval_ms=1)
        unanswered: list[tuple[Peer, Frame]] = []
        broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: unanswered.append((peer, frame))
        broker.partitions[str(TOPIC)] = 2
        await broker.heard(pb.BaseCommand.PRODUCER, 2)
        await producer.close()
        [(peer, frame)] = unanswered
        peer.answer(frame)
        await broker.heard(pb.BaseCommand.CLOSE_PRODUCER, 2)


async def test_producer_when_its_topic_is_gone_then_a_direct_question_says_so() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        producer = await client.create_producer(str(TOPIC))
        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
            commands.partitioned_metadata_error(frame.command.partitionMetadata.request_id, 11, "")
        )
        with pytest.raises(TopicNotFound):
            await producer.update_partitions()


async def test_producer_on_a_broker_older_than_pip_344_notices_growth_too() -> None:
    async with ScriptedBroker(pb.FeatureFlags()) as broker, Client(broker.url) as client:
        broker.partitions[str(TOPIC)] = 1
        await client.create_producer(str(TOPIC), auto_update_partitions_interval_ms=1)
        broker.partitions[str(TOPIC)] = 2
        await broker.heard(pb.BaseCommand.PRODUCER, 2)

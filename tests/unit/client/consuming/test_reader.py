"""A reader."""

import pytest

from interpulse.client import Client
from interpulse.model.errors import AlreadyClosed, InvalidRequest
from interpulse.model.ids import LATEST, MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker
from tests.unit.client.consuming.test_partition_consumer import batch, single

TOPIC = "persistent://public/default/t"
TOPIC_A, TOPIC_B = "persistent://public/default/a", "persistent://public/default/b"


async def test_reader_introduces_itself_as_one_that_leaves_nothing_behind() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        await client.create_reader(TOPIC, LATEST, force_topic_creation=False)
        (subscribe,) = [command.subscribe for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert not subscribe.durable
        assert not subscribe.force_topic_creation
        assert subscribe.subscription.startswith("reader-")
        assert subscribe.start_message_id.entryId == 2**63 - 1


@pytest.mark.parametrize(
    ("last", "read", "more"),
    [((-1, -1), 0, False), ((1, 0), 0, True), ((1, 0), 1, False), ((1, 1), 1, True)],
)
async def test_end_when_asked_for_then_compares_with_the_last_message(
    last: tuple[int, int], read: int, more: bool
) -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(TOPIC)
        consumer_id = broker.all_of(pb.BaseCommand.SUBSCRIBE)[0].subscribe.consumer_id
        for entry in range(read):
            broker.peers[0].say(commands.message(consumer_id, Position(1, entry), single(b"x")))
            await reader.read_next(5000)
        broker.last = last
        assert await reader.has_message_available() == more


async def test_reader_inside_a_batch_when_asked_for_the_end_then_counts_its_messages() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(TOPIC, MessageId(1, 0, -1, 0))
        consumer_id = broker.all_of(pb.BaseCommand.SUBSCRIBE)[0].subscribe.consumer_id
        broker.scripts[pb.BaseCommand.GET_LAST_MESSAGE_ID] = lambda peer, frame: peer.say(
            commands.get_last_message_id_response(
                frame.command.getLastMessageId.request_id, MessageId(1, 0, -1, 1), Position(-1, -1)
            )
        )
        assert await reader.has_message_available()
        broker.peers[0].say(commands.message(consumer_id, Position(1, 0), batch(b"a", b"b")))
        assert (await reader.read_next(5000)).content == b"b"
        assert not await reader.has_message_available()


async def test_messages_that_were_read_are_acknowledged() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(TOPIC)
        consumer_id = broker.all_of(pb.BaseCommand.SUBSCRIBE)[0].subscribe.consumer_id
        broker.peers[0].say(commands.message(consumer_id, Position(1, 0), single(b"x")))
        await reader.read_next(60_000)
        await broker.heard(pb.BaseCommand.ACK)
        (ack,) = [command.ack for command in broker.all_of(pb.BaseCommand.ACK)]
        assert (ack.ack_type, ack.consumer_id, ack.message_id[0].entryId) == (pb.CommandAck.Cumulative, consumer_id, 0)


async def test_reader_when_closed_then_iteration_ends() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(TOPIC)
        await reader.close()
        assert [message async for message in reader] == []
        with pytest.raises(AlreadyClosed):
            await reader.read_next(5)
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 1


async def test_reader_reads_new_partitions_from_their_beginning() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions[TOPIC] = 1
        reader = await client.create_reader(TOPIC, LATEST, auto_update_partitions_interval_ms=1)
        broker.partitions[TOPIC] = 2
        await broker.heard(pb.BaseCommand.FLOW, 2)
        subscribes = [command.subscribe for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert [each.start_message_id.entryId for each in subscribes] == [2**63 - 1, 2**64 - 1]
        broker.peers[0].say(commands.message(subscribes[1].consumer_id, Position(1, 0), single(b"x")))
        assert (await reader.read_next(5000)).topic == f"{TOPIC}-partition-1"
        await reader.close()
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 2
        with pytest.raises(AlreadyClosed):
            await reader.update_partitions()


async def test_reader_of_a_topic_without_partitions_does_not_look_for_any() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(TOPIC)
        broker.partitions[TOPIC] = 2
        await reader.update_partitions()
        assert broker.count(pb.BaseCommand.SUBSCRIBE) == broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 1


async def test_reader_of_several_topics_begins_where_all_of_them_can() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        reader = await client.create_reader(["a", "b"], LATEST)
        assert (reader.topic, reader.topics) == (TOPIC_A, [TOPIC_A, TOPIC_B])
        assert {command.subscribe.topic for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)} == {TOPIC_A, TOPIC_B}
        with pytest.raises(InvalidRequest, match="7:8:-1 fits one topic"):
            await client.create_reader(["a", "b"], MessageId(7, 8))
        with pytest.raises(InvalidRequest):
            await client.create_reader([])
        await broker.heard(pb.BaseCommand.CLOSE_CONSUMER, 2)


async def test_reader_of_ranges_asks_for_these_keys_alone() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        await client.create_reader(TOPIC, key_hash_ranges=((0, 9), (20, 30)))
        (subscribe,) = [command.subscribe for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert (subscribe.subType, subscribe.keySharedMeta.keySharedMode) == (pb.CommandSubscribe.Exclusive, pb.STICKY)
        assert [(each.start, each.end) for each in subscribe.keySharedMeta.hashRanges] == [(0, 9), (20, 30)]


async def test_reader_of_ranges_that_no_broker_filters_is_refused() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        with pytest.raises(InvalidRequest, match="does not filter the non-persistent topic non-persistent://t/ns/a"):
            await client.create_reader("non-persistent://t/ns/a", key_hash_ranges=((0, 9),))
        with pytest.raises(ValueError, match="without overlap"):
            await client.create_reader(TOPIC, key_hash_ranges=((0, 9), (9, 10)))
        assert broker.all_of(pb.BaseCommand.SUBSCRIBE) == []

"""One partition consumer against a scripted broker, and its queue of messages."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.consuming.consumer_config import (
    ConsumerConfig,
    DeadLetterPolicy,
    KeySharedPolicy,
    RedeliveryBackoff,
)
from interpulse.client.consuming.dead_letters import DeadLetterProducer
from interpulse.client.consuming.partition_consumer import Inbox, PartitionConsumer
from interpulse.client.consuming.unpacker import Start
from interpulse.client.messages import Message
from interpulse.client.session import Session
from interpulse.model.errors import (
    AlreadyClosed,
    ConsumerBusy,
    CryptoError,
    MessageOfAnotherCluster,
    OperationTimeout,
    TopicNotFound,
)
from interpulse.model.ids import EARLIEST, LATEST, ChunkMessageId, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.support.waiting import eventually
from tests.unit.client.consuming.test_ack_tracker import message as received


class Owner:
    def __init__(self) -> None:
        self.taken: list[Message] = []

    def on_taken(self, message: Message) -> None:
        self.taken.append(message)


async def test_messages_come_in_order_and_their_source_hears_of_it() -> None:
    inbox, owner = Inbox(), Owner()
    inbox.put(received(1, 1), owner)
    inbox.put(received(1, 2), owner)
    assert [(await inbox.take(None)).id.entry for _ in range(2)] == [1, 2]
    assert [taken.id.entry for taken in owner.taken] == [1, 2]


async def test_taker_when_nothing_comes_then_operation_timeout() -> None:
    with pytest.raises(OperationTimeout):
        await Inbox().take(10)


async def test_taker_when_it_waits_then_gets_the_message_that_comes() -> None:
    inbox = Inbox()
    task = asyncio.create_task(inbox.take(None))
    await asyncio.sleep(0)
    inbox.put(received(1, 1), Owner())
    assert (await task).id.entry == 1


async def test_failure_is_raised_when_the_inbox_is_empty() -> None:
    inbox = Inbox()
    inbox.put(received(1, 1), Owner())
    inbox.fail(AlreadyClosed("over"))
    await inbox.take(None)
    with pytest.raises(AlreadyClosed):
        await inbox.take(None)


async def test_messages_of_one_source_when_discarded_then_the_others_stay() -> None:
    inbox, first, second = Inbox(), Owner(), Owner()
    inbox.put(received(1, 1), first)
    inbox.put(received(2, 1), second)
    assert inbox.discard(first) == 1
    assert len(inbox) == 1


async def test_batch_ends_with_the_first_limit_that_is_reached() -> None:
    inbox, owner = Inbox(), Owner()
    for number in range(6):
        inbox.put(replace(received(1, number), content=b"12345"), owner)

    async def take(messages_max: int | None, bytes_max: int, timeout_ms: int = 60_000) -> list[int]:
        batch = await inbox.take_batch(messages_max=messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)
        return [each.id.entry for each in batch]

    assert await take(2, 1000) == [0, 1]
    assert await take(None, 10) == [2, 3]
    assert await take(None, 1000, timeout_ms=10) == [4, 5]
    assert await take(None, 1000, timeout_ms=0) == []


async def test_batch_when_the_inbox_fails_then_what_is_there_comes_first() -> None:
    inbox = Inbox()
    inbox.put(received(1, 1), Owner())
    inbox.fail(AlreadyClosed("over"))
    assert len(await inbox.take_batch(messages_max=None, bytes_max=100, timeout_ms=60_000)) == 1
    with pytest.raises(AlreadyClosed):
        await inbox.take_batch(messages_max=None, bytes_max=100, timeout_ms=60_000)


TOPIC = TopicName.parse("t")


def single(content: bytes, **fields: Any) -> bytes:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields)
    return build_entry(metadata.SerializeToString(), content)


def batch(*contents: bytes) -> bytes:
    payload = pack_batch((pb.SingleMessageMetadata(), content) for content in contents)
    return single(payload, num_messages_in_batch=len(contents))


class Stage:
    """A consumer, its inbox, and the broker it talks to."""

    def __init__(self, broker: ScriptedBroker, session: Session) -> None:
        self.broker = broker
        self.session = session
        self.inbox = Inbox()
        self.consumer: PartitionConsumer

    async def open(self, *, start: MessageId | None = None, included: bool = False, **config: Any) -> None:
        settings = ConsumerConfig(**config)
        policy = settings.effective_dead_letter_policy
        dead_letter_producer = DeadLetterProducer(self.session, "s", policy) if policy else None
        self.consumer = PartitionConsumer(
            self.session,
            TOPIC,
            "s",
            settings,
            self.inbox,
            start=start and Start(start, included),
            dead_letter_producer=dead_letter_producer,
        )
        await self.consumer.open()
        await self.broker.heard(pb.BaseCommand.FLOW)

    @property
    def consumer_id(self) -> int:
        return self.broker.all_of(pb.BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_id

    def deliver(
        self,
        entry_id: int,
        entry: bytes,
        *,
        redelivery_count: int = 0,
        ack_set: Iterable[int] = (),
        epoch: int | None = None,
    ) -> None:
        self.broker.peers[-1].say(
            commands.message(
                self.consumer_id,
                Position(1, entry_id),
                entry,
                redelivery_count=redelivery_count,
                ack_set=list(ack_set),
                consumer_epoch=epoch,
            )
        )

    def redirect(self, before: ScriptedBroker, after: ScriptedBroker) -> None:
        """Send the consumer from one broker to the cluster of another one."""
        moved = pb.CommandTopicMigrated(
            resource_id=self.consumer_id, resource_type=pb.CommandTopicMigrated.Consumer, brokerServiceUrl=after.url
        )
        before.peers[-1].say(commands.encode(moved))

    async def take(self, count: int = 1) -> list[Message]:
        return [await self.inbox.take(5000) for _ in range(count)]

    def permits(self) -> list[int]:
        return [command.flow.messagePermits for command in self.broker.all_of(pb.BaseCommand.FLOW)]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with ScriptedBroker() as broker:
        session = Session(
            ClientConfig(broker.url, backoff_initial_ms=1, backoff_max_ms=10, operation_timeout_ms=60_000)
        )
        yield Stage(broker, session)
        await session.close()


async def test_permits_when_half_are_used_then_are_granted_again(stage: Stage) -> None:
    await stage.open(receiver_queue_size=4)
    stage.deliver(0, batch(b"a", b"b", b"c"))
    await stage.take(3)
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    assert stage.permits() == [4, 2]
    await stage.consumer.close()


async def test_messages_when_acknowledged_then_one_command_leaves_for_them_all(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    stage.deliver(1, batch(b"b", b"c"))
    for message in await stage.take(3):
        stage.consumer.acks.acknowledge(message)
    await stage.broker.heard(pb.BaseCommand.ACK)
    (ack,) = [command.ack for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert [message_id.entryId for message_id in ack.message_id] == [0, 1]
    await stage.consumer.close()


async def test_batch_when_the_broker_says_some_are_acknowledged_then_those_are_left_out(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, batch(b"a", b"b", b"c"), ack_set=[0b101])
    assert [message.content for message in await stage.take(2)] == [b"a", b"c"]
    await stage.consumer.close()


async def test_batch_when_some_of_it_was_acknowledged_before_then_the_rest_completes_it(stage: Stage) -> None:
    await stage.open(receiver_queue_size=4)
    stage.deliver(0, batch(b"a", b"b", b"c"), ack_set=[0b101])
    for message in await stage.take(2):
        stage.consumer.acks.acknowledge(message)
    await stage.broker.heard(pb.BaseCommand.ACK)
    (ack,) = [command.ack for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert [(each.entryId, list(each.ack_set)) for each in ack.message_id] == [(0, [])]
    assert stage.permits() == [4, 2]  # what was acknowledged took none
    await stage.consumer.close()


async def test_batch_when_the_broker_hears_of_indexes_then_before_it_is_asked_for_the_rest(stage: Stage) -> None:
    await stage.open(subscription_type="shared", nack_delay_ms=1, batch_index_ack_enabled=True)
    stage.deliver(0, batch(b"a", b"b", b"c"))
    a, b, _ = await stage.take(3)
    stage.consumer.acks.acknowledge(a)
    stage.consumer.acks.negative_acknowledge(b)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    ack, again = stage.broker.peers[-1].seen[-2:]
    assert list(ack.ack.message_id[0].ack_set) == [0b110]
    assert [each.entryId for each in again.redeliverUnacknowledgedMessages.message_ids] == [0]
    await stage.consumer.close()


async def test_batch_when_taken_and_done_up_to_a_message_then_its_timeout_is_for_the_later_ones(stage: Stage) -> None:
    await stage.open(ack_timeout_ms=20)
    stage.deliver(0, batch(b"a", b"b"))
    a, _ = await stage.take(2)
    stage.consumer.acks.acknowledge_cumulative(a)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    stage.deliver(0, batch(b"a", b"b"))  # from a broker that repeats no epochs
    assert [message.content for message in await stage.take()] == [b"b"]
    await stage.consumer.close()


async def test_batch_when_it_comes_again_after_a_lost_connection_then_finished_messages_do_not(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, batch(b"a", b"b"))
    first, _ = await stage.take(2)
    stage.consumer.acks.acknowledge(first)
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    stage.deliver(0, batch(b"a", b"b"), redelivery_count=1)
    (again,) = await stage.take()
    assert (again.content, again.redelivery_count) == (b"b", 1)
    await stage.consumer.close()


async def test_messages_not_taken_when_the_connection_is_lost_then_come_from_the_broker_again(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    await stage.take(1)
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    assert len(stage.inbox) == 0
    stage.deliver(1, single(b"b"))
    assert [message.content for message in await stage.take()] == [b"b"]
    await stage.consumer.close()


async def test_nack_on_a_shared_subscription_asks_for_that_entry_only(stage: Stage) -> None:
    await stage.open(subscription_type="shared", nack_delay_ms=10)
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    first, _ = await stage.take(2)
    stage.consumer.acks.negative_acknowledge(first)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    (command,) = stage.broker.all_of(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert [message_id.entryId for message_id in command.redeliverUnacknowledgedMessages.message_ids] == [0]
    await stage.consumer.close()


async def test_nack_on_an_exclusive_subscription_asks_for_everything_and_empties_the_inbox(stage: Stage) -> None:
    await stage.open(nack_delay_ms=10)
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    (first,) = await stage.take()
    stage.consumer.acks.negative_acknowledge(first)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    (command,) = stage.broker.all_of(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert not command.redeliverUnacknowledgedMessages.message_ids
    assert len(stage.inbox) == 0
    await stage.consumer.close()


async def test_messages_when_sent_before_a_full_redelivery_then_do_not_overtake_it(stage: Stage) -> None:
    await stage.open(nack_delay_ms=10, receiver_queue_size=4)
    stage.deliver(0, single(b"a"))
    (first,) = await stage.take()
    stage.consumer.acks.negative_acknowledge(first)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    stage.deliver(1, single(b"on its way"))
    stage.deliver(2, single(b"on its way"), ack_set=[1])
    stage.deliver(0, single(b"a"), epoch=0)
    stage.deliver(0, single(b"again"), epoch=1)
    assert [message.content for message in await stage.take()] == [b"again"]
    await stage.broker.heard(pb.BaseCommand.FLOW, 3)
    assert stage.permits() == [4, 2, 2]  # those of the dropped ones, too
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.SUBSCRIBE, 2)
    (first_subscribe, second_subscribe) = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)
    assert not first_subscribe.subscribe.HasField("consumer_epoch")
    assert second_subscribe.subscribe.consumer_epoch == 1
    await stage.consumer.close()


async def test_message_when_not_acknowledged_in_time_then_is_asked_for_again(stage: Stage) -> None:
    await stage.open(subscription_type="shared", ack_timeout_ms=10)
    stage.deliver(0, single(b"a"))
    await stage.take()
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    await stage.consumer.close()


async def test_entry_when_damaged_then_is_acknowledged_with_the_reason_and_not_handed_out(stage: Stage) -> None:
    await stage.open(receiver_queue_size=2)
    stage.deliver(0, single(b"a")[:-1] + b"x")
    stage.deliver(1, single(b"not lz4", compression=pb.LZ4, uncompressed_size=100, num_messages_in_batch=7))
    stage.deliver(2, single(b"good"))
    assert [message.content for message in await stage.take()] == [b"good"]
    await stage.broker.heard(pb.BaseCommand.ACK, 2)
    reasons = [command.ack.validation_error for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert reasons == [pb.CommandAck.ChecksumMismatch, pb.CommandAck.DecompressionError]
    await stage.broker.heard(pb.BaseCommand.FLOW, 4)
    assert stage.permits() == [2, 1, 7, 1]  # a batch took as many as it has messages
    await stage.consumer.close()


async def test_chunks_when_complete_then_are_one_message_and_acknowledged_together(stage: Stage) -> None:
    await stage.open(receiver_queue_size=2)
    for index, piece in enumerate((b"ab", b"cd", b"ef")):
        stage.deliver(index, single(piece, uuid="u", num_chunks_from_msg=3, chunk_id=index, total_chunk_msg_size=6))
    (message,) = await stage.take()
    assert (message.content, message.id) == (b"abcdef", MessageId(1, 2, -1))
    stage.consumer.acks.acknowledge(message)
    await stage.broker.heard(pb.BaseCommand.ACK)
    (ack,) = stage.broker.all_of(pb.BaseCommand.ACK)
    assert [message_id.entryId for message_id in ack.ack.message_id] == [0, 1, 2]
    assert sum(stage.permits()) >= 4
    await stage.consumer.close()


CHUNKED = ChunkMessageId(1, 3, -1, -1, Position(1, 1))


def deliver_a_message_in_chunks_and_its_neighbours(stage: Stage) -> None:
    """The message ``CHUNKED`` has another one between its chunks, and one behind it."""
    for entry_id, chunk_id in ((1, 0), (3, 1)):
        stage.deliver(entry_id, single(b"%d" % chunk_id, uuid="u", num_chunks_from_msg=2, chunk_id=chunk_id))
        stage.deliver(entry_id + 1, single(b"between" if entry_id == 1 else b"behind"))


@pytest.mark.parametrize(("included", "expected", "done"), [(True, [b"01", b"behind"], 1), (False, [b"behind"], 3)])
async def test_seek_when_the_message_came_in_chunks_then_begins_with_the_first(
    stage: Stage, included: bool, expected: list[bytes], done: int
) -> None:
    await stage.open()
    await stage.consumer.seek(CHUNKED, included=included)
    (seek,) = stage.broker.all_of(pb.BaseCommand.SEEK)
    assert (seek.seek.message_id.ledgerId, seek.seek.message_id.entryId) == (1, 1)
    deliver_a_message_in_chunks_and_its_neighbours(stage)
    assert [message.content for message in await stage.take(len(expected))] == expected
    await stage.consumer.close()  # sends what was acknowledged: what lies before the place that was sought
    acks = [command.ack for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert sum(len(ack.message_id) for ack in acks) == done


async def test_seek_when_an_operator_goes_back_before_anything_came_then_everything_comes(stage: Stage) -> None:
    await stage.open()
    await stage.consumer.seek(CHUNKED, included=False)
    stage.deliver(0, single(b"before"))
    deliver_a_message_in_chunks_and_its_neighbours(stage)
    assert [message.content for message in await stage.take(4)] == [b"before", b"between", b"01", b"behind"]
    await stage.consumer.close()


@pytest.mark.parametrize(("included", "expected"), [(True, [b"01", b"behind"]), (False, [b"behind"])])
async def test_reader_when_it_starts_at_a_message_in_chunks_then_begins_with_the_first(
    stage: Stage, included: bool, expected: list[bytes]
) -> None:
    await stage.open(start=CHUNKED, included=included)
    (subscribe,) = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)
    start = subscribe.subscribe.start_message_id
    assert (start.ledgerId, start.entryId) == (1, 1)
    deliver_a_message_in_chunks_and_its_neighbours(stage)
    assert [message.content for message in await stage.take(len(expected))] == expected
    await stage.consumer.close()


async def test_reader_when_it_starts_inside_a_batch_then_skips_what_is_before(stage: Stage) -> None:
    await stage.open(start=MessageId(1, 0, -1, 1))
    (subscribe,) = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)
    assert not subscribe.subscribe.durable
    assert subscribe.subscribe.start_message_id.batch_index == 1
    stage.deliver(0, batch(b"a", b"b", b"c"))
    stage.deliver(1, single(b"d"))
    assert [message.content for message in await stage.take(2)] == [b"c", b"d"]
    await stage.consumer.close()


@pytest.mark.parametrize(("included", "expected"), [(True, [b"a", b"b"]), (False, [b"b"])])
async def test_reader_when_its_start_is_included_or_not_then_reads_it_or_not(
    stage: Stage, included: bool, expected: list[bytes]
) -> None:
    await stage.open(start=MessageId(1, 0), included=included)
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    assert [message.content for message in await stage.take(len(expected))] == expected
    await stage.consumer.close()


async def test_reader_when_it_comes_back_then_goes_on_behind_the_last_message_taken(stage: Stage) -> None:
    await stage.open(start=MessageId(*EARLIEST))
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    await stage.take(1)
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    again = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)[-1].subscribe
    assert (again.start_message_id.ledgerId, again.start_message_id.entryId) == (1, 0)
    for entry_id, content in enumerate((b"a", b"b")):
        stage.deliver(entry_id, single(content))
    assert [message.content for message in await stage.take()] == [b"b"]
    await stage.consumer.close()


@pytest.mark.parametrize("durable", [True, False])  # as of a reader, as of a consumer
async def test_what_begins_at_the_end_when_nothing_was_taken_then_comes_back_to_the_first_that_came(
    stage: Stage, durable: bool
) -> None:
    await stage.open(start=MessageId(*LATEST), durable=durable)
    stage.deliver(5, batch(b"a", b"b"))
    stage.deliver(6, single(b"c"))
    await eventually(lambda: len(stage.inbox) == 3)
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    assert start_of(stage, -1) == (1, 5)
    stage.deliver(5, batch(b"a", b"b"))
    stage.deliver(6, single(b"c"))
    assert [message.content for message in await stage.take(3)] == [b"a", b"b", b"c"]
    assert stage.consumer.start == Start(MessageId(1, 6))
    await stage.consumer.close()


async def test_reader_at_the_end_when_a_part_of_a_batch_was_taken_then_only_the_rest_comes_again(stage: Stage) -> None:
    await stage.open(start=MessageId(*LATEST))
    stage.deliver(5, batch(b"a", b"b"))
    await stage.take(1)
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    assert start_of(stage, -1) == (1, 5)
    stage.deliver(5, batch(b"a", b"b"))
    assert [message.content for message in await stage.take()] == [b"b"]
    await stage.consumer.close()


async def test_reader_at_the_end_when_a_message_is_incomplete_then_comes_back_to_its_first_chunk(stage: Stage) -> None:
    await stage.open(start=MessageId(*LATEST))
    first, last = (single(b"%d" % chunk, uuid="u", num_chunks_from_msg=2, chunk_id=chunk) for chunk in (0, 1))
    stage.deliver(5, first)
    await eventually(lambda: stage.consumer.start != Start(MessageId(*LATEST)))
    stage.broker.peers[-1].drop()
    await stage.broker.heard(pb.BaseCommand.FLOW, 2)
    assert start_of(stage, -1) == (1, 5)
    stage.deliver(5, first)
    stage.deliver(6, last)
    assert [message.content for message in await stage.take()] == [b"01"]
    await stage.consumer.close()


async def test_reader_when_it_seeks_the_end_then_older_messages_on_their_way_do_not_move_it(stage: Stage) -> None:
    await stage.open(start=MessageId(*EARLIEST))

    def seek(peer, frame) -> None:
        stage.deliver(0, single(b"old"))
        peer.say(commands.close_consumer(stage.consumer_id))
        peer.say(commands.success(frame.command.seek.request_id))

    stage.broker.scripts[pb.BaseCommand.SEEK] = seek
    await stage.consumer.seek(MessageId(*LATEST))
    assert start_of(stage, -1) == LATEST
    await stage.consumer.close()


def start_of(stage: Stage, subscribe: int) -> tuple[int, int]:
    """The position that a SUBSCRIBE named."""
    start = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)[subscribe].subscribe.start_message_id
    return start.ledgerId, start.entryId


async def test_seek_when_the_broker_closes_first_then_old_messages_are_gone_and_it_subscribes_again(
    stage: Stage,
) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    first, _ = await stage.take(2)
    stage.deliver(2, single(b"old"))

    def seek(peer, frame) -> None:
        peer.say(commands.close_consumer(stage.consumer_id))
        peer.say(commands.success(frame.command.seek.request_id))

    stage.broker.scripts[pb.BaseCommand.SEEK] = seek
    await stage.consumer.seek(first.id)
    assert stage.broker.count(pb.BaseCommand.SUBSCRIBE) == 2
    assert len(stage.inbox) == 0
    stage.deliver(0, single(b"a"))
    assert [message.content for message in await stage.take()] == [b"a"]
    await stage.consumer.close()


async def test_seek_behind_a_message_then_it_is_done_and_what_an_operator_goes_back_to_comes(
    stage: Stage,
) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    stage.deliver(1, single(b"b"))
    _, second = await stage.take(2)
    await stage.consumer.seek(second.id, included=False)
    stage.deliver(1, single(b"b"))
    await stage.broker.heard(pb.BaseCommand.ACK)
    (ack,) = [command.ack for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert [each.entryId for each in ack.message_id] == [1]
    stage.broker.peers[-1].say(commands.close_consumer(stage.consumer_id))
    await stage.broker.heard(pb.BaseCommand.SUBSCRIBE, 2)
    stage.deliver(0, single(b"a"))
    assert [message.content for message in await stage.take()] == [b"a"]
    await stage.consumer.close()


async def test_consumer_when_refused_then_raises_at_once(stage: Stage) -> None:
    stage.broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 5, "taken")
    )
    with pytest.raises(ConsumerBusy):
        await stage.open()


async def test_consumer_when_its_topic_is_deleted_then_takers_hear_of_it(stage: Stage) -> None:
    await stage.open()
    stage.broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 11, "deleted")
    )
    stage.broker.peers[-1].say(commands.close_consumer(stage.consumer_id))
    with pytest.raises(TopicNotFound):
        await stage.inbox.take(5000)
    await stage.consumer.close()


async def test_consumer_when_redirected_then_takes_no_acknowledgement_to_the_other_cluster(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    (message,) = await stage.take()
    stage.consumer.acks.acknowledge(message)
    async with ScriptedBroker() as west:
        stage.redirect(stage.broker, west)
        await west.heard(pb.BaseCommand.FLOW)
        await stage.consumer.close()
        assert (west.count(pb.BaseCommand.LOOKUP), west.count(pb.BaseCommand.ACK)) == (1, 0)
    assert stage.broker.count(pb.BaseCommand.ACK) == 1


async def test_consumer_when_redirected_then_ids_of_the_former_cluster_are_of_no_use(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.open(initial_position="latest", nack_delay_ms=1)
    stage.deliver(0, single(b"a"))
    (former,) = await stage.take()
    async with ScriptedBroker() as west:
        stage.redirect(stage.broker, west)
        await west.heard(pb.BaseCommand.FLOW)
        (subscribed,) = west.all_of(pb.BaseCommand.SUBSCRIBE)
        assert subscribed.subscribe.initialPosition == pb.CommandSubscribe.Earliest
        for refused in (stage.consumer.acks.acknowledge, stage.consumer.acks.negative_acknowledge):
            refused(former)
        assert stage.session.late_acknowledgements == 2
        assert f"earlier={stage.broker.url} site={west.url}" in caplog.text
        with pytest.raises(MessageOfAnotherCluster, match=f"the client is at {west.url}"):
            await stage.consumer.seek(former.id)
        west.peers[-1].say(commands.message(stage.consumer_id, Position(1, 0), single(b"b")))
        (present,) = await stage.take()
        assert present.id.cluster == west.url
        stage.consumer.acks.acknowledge(present)
        stage.redirect(west, stage.broker)
        await stage.broker.heard(pb.BaseCommand.FLOW, 2)
        assert west.count(pb.BaseCommand.ACK) == 1
        stage.consumer.acks.acknowledge(present)
        assert stage.session.late_acknowledgements == 3
        await stage.consumer.close()
    assert stage.broker.count(pb.BaseCommand.ACK) == 0


async def test_consumer_when_redirected_before_it_was_open_then_begins_where_it_wants(stage: Stage) -> None:
    async with ScriptedBroker() as west:
        stage.broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: stage.redirect(stage.broker, west)
        opening = asyncio.create_task(stage.open(initial_position="latest"))
        await west.heard(pb.BaseCommand.FLOW)
        (subscribed,) = west.all_of(pb.BaseCommand.SUBSCRIBE)
        assert subscribed.subscribe.initialPosition == pb.CommandSubscribe.Latest
        opening.cancel()
        await asyncio.wait([opening])
        await stage.consumer.close()


async def test_consumer_when_redirected_in_place_of_an_answer_then_opens_at_the_other_cluster(stage: Stage) -> None:
    async with ScriptedBroker() as west:

        def redirect(peer: Peer, frame: Frame) -> None:
            moved = pb.CommandTopicMigrated(
                resource_id=frame.command.subscribe.consumer_id,
                resource_type=pb.CommandTopicMigrated.Consumer,
                brokerServiceUrl=west.url,
            )
            peer.say(commands.encode(moved))

        stage.broker.scripts[pb.BaseCommand.SUBSCRIBE] = redirect
        opening = asyncio.create_task(stage.open())
        await west.heard(pb.BaseCommand.FLOW)
        assert stage.broker.count(pb.BaseCommand.SUBSCRIBE) == 1
        opening.cancel()
        await asyncio.wait([opening])
        await stage.consumer.close()


async def test_consumer_when_closed_then_sends_its_acknowledgements_first(stage: Stage) -> None:
    await stage.open(start=None)
    stage.deliver(0, single(b"a"))
    (message,) = await stage.take()
    stage.consumer.acks.acknowledge(message)
    await stage.consumer.close()
    kinds = [command.type for command in stage.broker.peers[-1].seen]
    assert kinds[-2:] == [pb.BaseCommand.ACK, pb.BaseCommand.CLOSE_CONSUMER]
    with pytest.raises(AlreadyClosed):
        await stage.inbox.take(10)


def encrypted(content: bytes, **fields: Any) -> bytes:
    return single(content, encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")], **fields)


async def test_encrypted_message_when_it_comes_then_the_consumer_ends_there_and_says_why(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    stage.deliver(1, encrypted(b"?"))
    stage.deliver(2, single(b"b"))
    assert [message.content for message in await stage.take()] == [b"a"]
    for _ in range(2):
        with pytest.raises(CryptoError, match=r"message 1:1:-1: a message of .*/t cannot be .* the private key of 'k'"):
            await stage.inbox.take(5000)
    assert stage.broker.count(pb.BaseCommand.ACK) == 0
    await stage.consumer.close()


async def test_encrypted_messages_when_discarded_then_are_acknowledged_with_the_reason(stage: Stage) -> None:
    await stage.open(crypto_failure_action="discard", receiver_queue_size=2)
    stage.deliver(0, encrypted(b"?"))
    for number in range(2):
        stage.deliver(1 + number, encrypted(b"?", uuid="u", num_chunks_from_msg=2, chunk_id=number))
    stage.deliver(3, encrypted(b"?", num_messages_in_batch=5))
    stage.deliver(4, single(b"a"))
    assert [message.content for message in await stage.take()] == [b"a"]
    await stage.broker.heard(pb.BaseCommand.ACK, 3)
    acks = [command.ack for command in stage.broker.all_of(pb.BaseCommand.ACK)]
    assert [[each.entryId for each in ack.message_id] for ack in acks] == [[0], [1, 2], [3]]
    assert {ack.validation_error for ack in acks} == {pb.CommandAck.DecryptionError}
    await stage.broker.heard(pb.BaseCommand.FLOW, 6)
    assert stage.permits() == [2, 1, 1, 1, 5, 1]
    await stage.consumer.close()


async def test_encrypted_messages_when_consumed_then_say_what_they_are(stage: Stage) -> None:
    await stage.open(crypto_failure_action="consume")
    stage.deliver(0, encrypted(b"?"))
    stage.deliver(1, encrypted(b"a batch", num_messages_in_batch=3))
    messages = await stage.take(2)
    assert [(message.content, message.is_encrypted) for message in messages] == [(b"?", True), (b"a batch", True)]
    await stage.consumer.close()


async def test_state_of_the_subscription_is_followed(stage: Stage) -> None:
    await stage.open(start=MessageId(*LATEST))
    stage.broker.peers[-1].say(commands.active_consumer_change(stage.consumer_id, active=False))
    stage.broker.peers[-1].say(commands.reached_end_of_topic(stage.consumer_id))
    stage.broker.last = (1, 5)
    last = await stage.consumer.last_message()
    assert (last.id, last.mark_delete) == (MessageId(1, 5), EARLIEST)
    assert not stage.consumer.is_active
    assert stage.consumer.reached_end_of_topic
    await stage.consumer.close()


async def test_acknowledgements_without_connection_wait_for_the_next_one(stage: Stage) -> None:
    await stage.open()
    stage.deliver(0, single(b"a"))
    (message,) = await stage.take()
    connection = await stage.session.connect(TOPIC)
    stage.broker.peers[-1].drop()
    await connection.closed()
    stage.consumer.acks.acknowledge(message)
    stage.consumer.acks.flush()
    await stage.broker.heard(pb.BaseCommand.ACK)
    assert stage.broker.peers[-1].seen[-1].type in (pb.BaseCommand.ACK, pb.BaseCommand.FLOW)
    await asyncio.wait_for(stage.consumer.close(), 5)


async def test_consumer_when_opening_is_cancelled_then_it_is_closed_at_the_broker(stage: Stage) -> None:
    held: list[tuple[Peer, Frame]] = []
    stage.broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: held.append((peer, frame))
    opening = asyncio.create_task(stage.open())
    await stage.broker.heard(pb.BaseCommand.SUBSCRIBE)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    peer, frame = held[0]
    peer.answer(frame)
    await stage.broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    (closed,) = stage.broker.all_of(pb.BaseCommand.CLOSE_CONSUMER)
    assert closed.close_consumer.consumer_id == stage.consumer_id


async def acknowledged(broker: ScriptedBroker, count: int = 1) -> list[int]:
    await broker.heard(pb.BaseCommand.ACK, count)
    acks = broker.all_of(pb.BaseCommand.ACK)
    return [message_id.entryId for command in acks for message_id in command.ack.message_id]


def asked_again(broker: ScriptedBroker) -> list[list[int]]:
    asked = broker.all_of(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    return [[one.entryId for one in each.redeliverUnacknowledgedMessages.message_ids] for each in asked]


DYING: dict[str, Any] = {"subscription_type": "shared", "nack_delay_ms": 10, "dead_letter_policy": DeadLetterPolicy(1)}


async def test_message_given_back_for_the_last_time_is_moved_instead_of_asked_for(stage: Stage) -> None:
    await stage.open(**DYING)
    stage.deliver(0, single(b"early"), redelivery_count=0)
    stage.deliver(1, single(b"last"), redelivery_count=1)
    for message in await stage.take(2):
        stage.consumer.acks.negative_acknowledge(message)
    assert await acknowledged(stage.broker) == [1]
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert asked_again(stage.broker) == [[0]]
    assert len(stage.broker.stored) == 1
    await stage.consumer.close()


async def test_message_redelivered_too_often_elsewhere_is_dead_without_being_delivered(stage: Stage) -> None:
    await stage.open(receiver_queue_size=2, **DYING)
    stage.deliver(0, batch(b"a", b"b"), redelivery_count=2)
    assert await acknowledged(stage.broker) == [0]
    assert len(stage.broker.stored) == 2
    assert len(stage.inbox) == 0
    assert stage.permits() == [2, 2]
    await stage.consumer.close()


async def test_message_that_was_acknowledged_is_not_dead(stage: Stage) -> None:
    await stage.open(**DYING)
    stage.deliver(0, batch(b"a", b"b"), redelivery_count=1)
    done, bad = await stage.take(2)
    stage.consumer.acks.negative_acknowledge(bad)
    stage.consumer.acks.acknowledge(done)
    assert await acknowledged(stage.broker) == [0]
    assert len(stage.broker.stored) == 1
    assert asked_again(stage.broker) == []
    await stage.consumer.close()


async def test_message_that_cannot_be_moved_is_kept_and_tried_again(stage: Stage) -> None:
    await stage.open(**DYING)
    stage.broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.error(frame.command.producer.request_id, 22, "no dead letters here")
    )
    stage.deliver(0, single(b"bad"), redelivery_count=1)
    (message,) = await stage.take()
    stage.consumer.acks.negative_acknowledge(message)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert (asked_again(stage.broker), stage.broker.count(pb.BaseCommand.ACK)) == ([[0]], 0)
    del stage.broker.scripts[pb.BaseCommand.PRODUCER]
    stage.deliver(0, single(b"bad"), redelivery_count=2)
    assert await acknowledged(stage.broker) == [0]
    await stage.consumer.close()


async def test_consumer_when_closed_while_a_message_is_moved_then_waits_for_it(stage: Stage) -> None:
    await stage.open(**DYING)
    stage.deliver(0, single(b"bad"), redelivery_count=2)
    await stage.broker.heard(pb.BaseCommand.SEND)
    await stage.consumer.close()
    assert [command.type for command in stage.broker.peers[-1].seen][-2:] == [
        pb.BaseCommand.ACK,
        pb.BaseCommand.CLOSE_CONSUMER,
    ]


async def test_delays_grow_with_every_time_a_message_comes_again(stage: Stage) -> None:
    backoff = RedeliveryBackoff(10, 60_000, 1000)
    await stage.open(subscription_type="shared", nack_backoff=backoff, ack_timeout_backoff=backoff)
    stage.deliver(0, single(b"fourth time"), redelivery_count=3)
    stage.deliver(1, single(b"first time"))
    stage.deliver(2, single(b"first time, forgotten"))
    for message in (await stage.take(3))[:2]:
        stage.consumer.acks.negative_acknowledge(message)
    await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    while sum(map(len, asked_again(stage.broker))) < 2:
        await stage.broker.heard(pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, len(asked_again(stage.broker)) + 1)
    assert sorted(entry for each in asked_again(stage.broker) for entry in each) == [1, 2]
    await stage.consumer.close()


@pytest.mark.parametrize(
    ("policy", "mode", "ranges", "out_of_order"),
    [
        pytest.param(None, None, [], False, id="none"),
        pytest.param(KeySharedPolicy(), pb.AUTO_SPLIT, [], False, id="shared-out-by-the-broker"),
        pytest.param(KeySharedPolicy(((0, 9), (20, 30))), pb.STICKY, [(0, 9), (20, 30)], False, id="sticky"),
        pytest.param(KeySharedPolicy(out_of_order_allowed=True), pb.AUTO_SPLIT, [], True, id="out-of-order"),
    ],
)
async def test_keys_are_asked_for_when_subscribing(
    stage: Stage,
    policy: KeySharedPolicy | None,
    mode: int | None,
    ranges: list[tuple[int, int]],
    out_of_order: bool,
) -> None:
    await stage.open(subscription_type="key-shared", key_shared=policy)
    subscribe = stage.broker.all_of(pb.BaseCommand.SUBSCRIBE)[0].subscribe
    assert subscribe.HasField("keySharedMeta") == (policy is not None)
    meta = subscribe.keySharedMeta
    assert mode is None or meta.keySharedMode == mode
    assert [(each.start, each.end) for each in meta.hashRanges] == ranges
    assert meta.allowOutOfOrderDelivery == out_of_order
    await stage.consumer.close()

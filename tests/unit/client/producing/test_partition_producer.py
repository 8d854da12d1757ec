"""A producer of one topic: batches, single messages, order, limits."""

import asyncio

import pytest

from interpulse.client.messages import OutgoingMessage
from interpulse.client.producing.partition_producer import PartitionProducer, ProducerConfig
from interpulse.client.session import Session
from interpulse.model.errors import InvalidRequest, NotAllowed, PulsarError
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker


async def open_producer(session: Session, topic: str = "t", **config: object) -> PartitionProducer:
    producer = PartitionProducer(session, TopicName.parse(topic), ProducerConfig(**config))  # type: ignore[arg-type]
    await producer.open()
    return producer


def sends(broker: ScriptedBroker) -> list[tuple[int, int, int]]:
    commands_seen = [command.send for command in broker.all_of(pb.BaseCommand.SEND)]
    return [(send.sequence_id, send.highest_sequence_id, send.num_messages) for send in commands_seen]


async def test_messages_when_batched_then_share_an_entry_and_have_indexes(
    broker: ScriptedBroker, session: Session
) -> None:
    producer = await open_producer(session, "t-partition-2", batch_messages_max=3)
    futures = [await producer.enqueue(OutgoingMessage(b"x")) for _ in range(7)]
    await producer.flush()
    assert sends(broker) == [(0, 2, 3), (3, 5, 3), (6, 6, 1)]
    assert futures[4].result() == MessageId(1, 1, 2, 1)
    assert producer.last_sequence_id == 6
    await producer.close()


@pytest.mark.parametrize("limits", [{"batch_messages_max": 3}, {"batch_bytes_max": 25}])
async def test_sender_when_it_never_waits_for_room_then_receipts_come_in_meanwhile(
    broker: ScriptedBroker, session: Session, limits: dict[str, int]
) -> None:
    producer = await open_producer(session, batch_delay_ms=60_000, pending_messages_max=1_000_000, **limits)  # type: ignore[arg-type]
    first = await producer.enqueue(OutgoingMessage(b"0123456789"))
    sent = 1
    while not first.done() and sent < 100_000:
        await producer.enqueue(OutgoingMessage(b"0123456789"))
        sent += 1
    assert first.done()
    await producer.close()


async def test_batch_when_nothing_follows_then_leaves_after_its_delay(broker: ScriptedBroker, session: Session) -> None:
    producer = await open_producer(session, batch_delay_ms=5)
    assert await producer.send(OutgoingMessage(b"x")) == MessageId(1, 0, -1, 0)
    await producer.close()


async def test_delayed_message_when_others_are_collected_then_goes_alone_and_in_order(
    broker: ScriptedBroker, session: Session
) -> None:
    producer = await open_producer(session, batch_delay_ms=60_000)
    await producer.enqueue(OutgoingMessage(b"first"))
    alone = await producer.enqueue(OutgoingMessage(b"later", deliver_at_ms=99))
    await producer.flush()
    assert sends(broker) == [(0, 0, 1), (1, 0, 1)]
    assert alone.result().batch_index == -1
    await producer.close()


async def test_sequence_ids_go_on_after_the_last_one_the_broker_knows(broker: ScriptedBroker, session: Session) -> None:
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.producer_success(frame.command.producer.request_id, name="n", last_sequence_id=41)
    )
    producer = await open_producer(session, name="n", batching_enabled=False)
    await producer.send(OutgoingMessage(b"x"))
    await producer.send(OutgoingMessage(b"x", sequence_id=100))
    await producer.send(OutgoingMessage(b"x"))
    assert [number for number, _, _ in sends(broker)] == [42, 100, 101]
    await producer.close()


@pytest.mark.parametrize("batching", [True, False])
async def test_message_when_above_the_limit_then_is_refused_and_nothing_is_sent(
    broker: ScriptedBroker, session: Session, batching: bool
) -> None:
    producer = await open_producer(session, batching_enabled=batching)
    with pytest.raises(InvalidRequest, match="limit"):
        await producer.send(OutgoingMessage(bytes(6 * 1024 * 1024)))
    await producer.send(OutgoingMessage(b"small"))
    assert [number for number, _, _ in sends(broker)] == [0]
    await producer.close()


async def test_flush_when_a_message_failed_then_raises_its_failure(broker: ScriptedBroker, session: Session) -> None:
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.say(
        commands.send_error(frame.command.send.producer_id, frame.command.send.sequence_id, 22, "no")
    )
    producer = await open_producer(session)
    future = await producer.enqueue(OutgoingMessage(b"x"))
    with pytest.raises(NotAllowed):
        await producer.flush()
    with pytest.raises(PulsarError):
        await future
    await producer.close()


async def test_senders_when_too_much_is_unconfirmed_then_wait(broker: ScriptedBroker, session: Session) -> None:
    held: list[tuple[object, object]] = []
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: held.append((peer, frame))
    producer = await open_producer(session, batching_enabled=False, pending_messages_max=2)
    for _ in range(2):
        await producer.enqueue(OutgoingMessage(b"x"))
    third = asyncio.create_task(producer.enqueue(OutgoingMessage(b"x")))
    await broker.heard(pb.BaseCommand.SEND, 2)
    assert not third.done()
    broker.scripts.clear()
    for peer, frame in held:
        peer.answer(frame)  # type: ignore[attr-defined]
    await (await asyncio.wait_for(third, 5))
    await producer.close()


async def test_waiter_when_cancelled_then_the_message_is_sent_all_the_same(
    broker: ScriptedBroker, session: Session
) -> None:
    producer = await open_producer(session, batch_delay_ms=60_000)
    waiter = asyncio.create_task(producer.send(OutgoingMessage(b"x")))
    await asyncio.sleep(0)
    waiter.cancel()
    await producer.flush()
    assert sends(broker) == [(0, 0, 1)]
    await producer.close()


async def test_large_message_when_chunked_then_goes_in_pieces_under_one_number(
    broker: ScriptedBroker, session: Session
) -> None:
    producer = await open_producer(session, batching_enabled=False, chunking_enabled=True)
    message_id = await producer.send(OutgoingMessage(bytes(12 * 1024 * 1024)))
    small = await producer.send(OutgoingMessage(b"small"))
    chunks = [command.send for command in broker.all_of(pb.BaseCommand.SEND)]
    assert [(send.sequence_id, send.is_chunk) for send in chunks] == [(0, True)] * 3 + [(1, False)]
    assert (message_id, message_id.first_chunk) == (MessageId(1, 2, -1), Position(1, 0))
    assert (small, small.first_chunk) == (MessageId(1, 3, -1), None)
    await producer.close()


async def test_large_message_when_one_chunk_fails_then_the_message_fails(
    broker: ScriptedBroker, session: Session
) -> None:
    first = iter([True])
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: (
        peer.say(commands.send_error(frame.command.send.producer_id, frame.command.send.sequence_id, 22, "no"))
        if next(first, False)
        else peer.answer(frame)
    )
    producer = await open_producer(session, batching_enabled=False, chunking_enabled=True)
    with pytest.raises(NotAllowed):
        await producer.send(OutgoingMessage(bytes(12 * 1024 * 1024)))
    await producer.close()


def test_chunking_together_with_batching_is_refused() -> None:
    with pytest.raises(ValueError, match="batching"):
        ProducerConfig(chunking_enabled=True)

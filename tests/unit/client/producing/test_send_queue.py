"""The unconfirmed entries of a producer: order, receipts, and lost connections."""

import asyncio
from typing import Any

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.producing.send_queue import ProducerRequest, SendQueue
from interpulse.client.producing.unconfirmed import Outgoing, Receipt
from interpulse.client.session import Session
from interpulse.client.transport.backoff import Backoff
from interpulse.model.errors import (
    AlreadyClosed,
    ChecksumError,
    NotAllowed,
    OperationTimeout,
    PersistenceError,
    ProducerBusy,
    ProducerFenced,
    PulsarError,
    QuotaExceededException,
    TopicTerminated,
)
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.support.waiting import eventually

TOPIC = TopicName.parse("t")
ENTRY = b"\x00" * 20


async def open_queue(session: Session, *, send_timeout_ms: int = 0, **request: object) -> SendQueue:
    queue = SendQueue(session, TOPIC, ProducerRequest(**request), send_timeout_ms=send_timeout_ms)  # type: ignore[arg-type]
    await queue.open()
    return queue


def answer_once(broker: ScriptedBroker, kind: int, first: object) -> None:
    """The first command of a type gets the answer given, later ones the usual one."""
    done: list[Any] = []

    def script(peer: Peer, frame: Frame) -> None:
        if done:
            peer.answer(frame)
        else:
            done.append(True)
            first(peer, frame)  # type: ignore[operator]

    broker.scripts[kind] = script


def refuse_send(code: int) -> object:
    return lambda peer, frame: peer.say(
        commands.send_error(frame.command.send.producer_id, frame.command.send.sequence_id, code, "no")
    )


def run_of(*numbers: int) -> Outgoing:
    return Outgoing([ENTRY] * len(numbers), list(numbers), [1] * len(numbers))


async def test_entries_when_sent_then_receipts_come_with_their_positions(
    broker: ScriptedBroker, session: Session
) -> None:
    queue = await open_queue(session)
    futures = [queue.send(run_of(number)) for number in range(3)]
    receipts = await asyncio.gather(*futures)
    assert [(receipt.sequence_id, receipt.position.entry) for receipt in receipts] == [(0, 0), (1, 1), (2, 2)]
    assert (queue.pending_count, queue._unconfirmed.bytes, queue.name) == (0, 0, "made-up")
    assert not receipts[0].is_duplicate
    await queue.close()
    assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 1


async def test_entry_when_the_broker_knew_it_then_its_receipt_says_duplicate(
    broker: ScriptedBroker, session: Session
) -> None:
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.say(
        commands.send_receipt(frame.command.send.producer_id, frame.command.send.sequence_id, 0, -1, -1)
    )
    queue = await open_queue(session)
    assert (await queue.send(run_of(4))).is_duplicate
    await queue.close()


async def test_unconfirmed_when_the_connection_breaks_then_sent_again_in_order_under_the_same_name(
    broker: ScriptedBroker, session: Session
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, lambda peer, frame: peer.drop())
    queue = await open_queue(session)
    futures = [queue.send(run_of(number)) for number in range(5)]
    await asyncio.gather(*futures)
    assert broker.stored == [0, 1, 2, 3, 4]
    first, second = [command.producer for command in broker.all_of(pb.BaseCommand.PRODUCER)]
    assert (first.producer_name, first.epoch, first.user_provided_producer_name) == ("", 0, False)
    assert (second.producer_name, second.epoch, second.user_provided_producer_name) == ("made-up", 1, False)
    await queue.close()


async def test_unconfirmed_when_redirected_then_sent_again_at_the_other_cluster_under_the_same_name(
    broker: ScriptedBroker, session: Session
) -> None:
    async with ScriptedBroker() as west:

        def redirect(peer: Peer, frame: Frame) -> None:
            moved = pb.CommandTopicMigrated(
                resource_id=frame.command.send.producer_id,
                resource_type=pb.CommandTopicMigrated.Producer,
                brokerServiceUrl=west.url,
            )
            peer.say(commands.encode(moved))

        broker.scripts[pb.BaseCommand.SEND] = redirect
        queue = await open_queue(session)
        assert queue.cluster is None
        await asyncio.gather(*[queue.send(run_of(number)) for number in range(3)])
        assert (west.stored, west.count(pb.BaseCommand.LOOKUP), queue.cluster) == ([0, 1, 2], 1, west.url)
        (opened,) = west.all_of(pb.BaseCommand.PRODUCER)
        assert (opened.producer.producer_name, opened.producer.epoch) == ("made-up", 1)
        await queue.close()


async def test_marker_when_the_connection_breaks_then_is_not_sent_again(
    broker: ScriptedBroker, session: Session
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, lambda peer, frame: peer.drop())
    queue = await open_queue(session)
    marker = Outgoing([ENTRY], [1], [1], is_marker=True)
    futures = [queue.send(each) for each in (run_of(0), marker, run_of(2))]
    receipts = await asyncio.gather(*futures)
    assert broker.stored == [0, 2]
    assert [len(receipt.positions) for receipt in receipts] == [1, 0, 1]
    await queue.close()


def receipts_for(queue_id: int, *numbers: int) -> bytes:
    return b"".join(commands.send_receipt(queue_id, number, 0, 1, number) for number in numbers)


async def test_run_when_sent_then_its_receipts_come_together(broker: ScriptedBroker, session: Session) -> None:
    queue = await open_queue(session)
    first, between, last = (
        queue.send(run_of(0, 1, 2)),
        queue.send(run_of(3)),
        queue.send(run_of(4)),
    )
    assert (queue.pending_count, queue._unconfirmed.bytes) == (5, 5 * len(ENTRY))
    await queue.confirmed()
    places = [Position(1, 0), Position(1, 1), Position(1, 2)]
    assert await first == Receipt([0, 1, 2], places)
    assert ((await first).duplicates, (await first).last_position) == ([], Position(1, 2))
    assert (await between).sequence_id == 3
    assert (await last).sequence_ids == [4]
    assert broker.stored == [0, 1, 2, 3, 4]
    assert (queue.pending_count, queue._unconfirmed.bytes) == (0, 0)
    await queue.close()


async def test_run_when_the_connection_breaks_in_it_then_its_rest_is_sent_again(
    broker: ScriptedBroker, session: Session
) -> None:
    def receipts_then_gone(peer: Peer, frame: Frame) -> None:
        if frame.command.send.sequence_id == 3 and broker.count(pb.BaseCommand.PRODUCER) == 1:
            peer.say(receipts_for(frame.command.send.producer_id, 0, 1))
            peer.drop()
        elif broker.count(pb.BaseCommand.PRODUCER) == 2:
            peer.answer(frame)

    broker.scripts[pb.BaseCommand.SEND] = receipts_then_gone
    queue = await open_queue(session)
    receipt = await queue.send(run_of(0, 1, 2, 3))
    assert receipt.sequence_ids == [0, 1, 2, 3]
    assert [command.send.sequence_id for command in broker.all_of(pb.BaseCommand.SEND)] == [0, 1, 2, 3, 2, 3]
    assert (queue.pending_count, queue._unconfirmed.bytes) == (0, 0)
    await queue.close()


async def test_run_when_the_broker_knew_some_then_they_are_named(broker: ScriptedBroker, session: Session) -> None:
    def answer(peer: Peer, frame: Frame) -> None:
        send = frame.command.send
        stored = -1 if send.sequence_id in (1, 2) else send.sequence_id
        peer.say(commands.send_receipt(send.producer_id, send.sequence_id, 0, 1 if stored >= 0 else -1, stored))

    broker.scripts[pb.BaseCommand.SEND] = answer
    queue = await open_queue(session)
    receipt = await queue.send(run_of(0, 1))
    assert (receipt.duplicates, receipt.last_position) == ([1], Position(1, 0))
    receipt = await queue.send(run_of(2))
    assert (receipt.duplicates, receipt.last_position) == ([2], None)
    await queue.close()


async def test_run_when_receipts_are_out_of_order_then_its_rest_is_sent_again(
    broker: ScriptedBroker, session: Session
) -> None:
    def skip_one(peer: Peer, frame: Frame) -> None:
        if frame.command.send.sequence_id == 2:
            peer.say(receipts_for(frame.command.send.producer_id, 0, 2))

    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: (
        skip_one(peer, frame) if broker.count(pb.BaseCommand.PRODUCER) == 1 else peer.answer(frame)
    )
    queue = await open_queue(session)
    receipt = await queue.send(run_of(0, 1, 2))
    assert receipt.duplicates == []
    assert [command.send.sequence_id for command in broker.all_of(pb.BaseCommand.SEND)] == [0, 1, 2, 1, 2]
    await queue.close()


async def test_run_when_the_producer_fails_then_it_fails_as_a_whole(broker: ScriptedBroker, session: Session) -> None:
    answer_once(broker, pb.BaseCommand.SEND, refuse_send(pb.TopicTerminatedError))
    queue = await open_queue(session)
    with pytest.raises(TopicTerminated):
        await queue.send(run_of(0, 1))
    with pytest.raises(TopicTerminated):
        queue.send(run_of(2))
    assert (queue.pending_count, queue._unconfirmed.bytes) == (0, 0)
    await queue.close()


async def test_entries_when_sent_without_connection_then_leave_when_it_is_back(
    broker: ScriptedBroker, session: Session
) -> None:
    queue = await open_queue(session)
    connection = await session.connect(TOPIC)
    broker.peers[0].drop()
    await connection.closed()
    assert not queue.is_connected
    await queue.send(run_of(9))
    assert broker.stored == [9]
    await queue.close()


async def test_producer_when_the_broker_closes_it_then_opens_again_where_it_is_told(
    broker: ScriptedBroker, session: Session
) -> None:
    async with ScriptedBroker() as other:
        queue = await open_queue(session)
        producer_id = broker.all_of(pb.BaseCommand.PRODUCER)[0].producer.producer_id
        broker.peers[0].say(commands.close_producer(producer_id, broker_url=other.url))
        await other.heard(pb.BaseCommand.PRODUCER)
        await queue.send(run_of(0))
        assert other.stored == [0]
        assert broker.count(pb.BaseCommand.LOOKUP) == 1
        await queue.close()


@pytest.mark.parametrize(("code", "failure"), [(9, ChecksumError), (22, NotAllowed)])
async def test_entry_when_refused_for_good_then_only_that_one_fails(
    broker: ScriptedBroker, session: Session, code: int, failure: type[PulsarError]
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, refuse_send(code))
    queue = await open_queue(session)
    first, second = queue.send(run_of(0)), queue.send(run_of(1))
    with pytest.raises(failure):
        await first
    assert (await second).sequence_id == 1
    await queue.close()


async def test_entry_when_it_could_not_be_stored_now_then_everything_is_sent_again_in_order(
    broker: ScriptedBroker, session: Session
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, refuse_send(2))
    queue = await open_queue(session)
    futures = [queue.send(run_of(number)) for number in range(3)]
    await asyncio.gather(*futures)
    assert broker.stored[-3:] == [0, 1, 2]
    await queue.close()


async def test_queue_when_it_may_not_resend_then_the_first_failure_ends_it(
    broker: ScriptedBroker, session: Session
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, refuse_send(2))
    queue = await open_queue(session, resend_after_error=False)
    futures = [queue.send(run_of(number)) for number in range(3)]
    for future in futures:
        with pytest.raises(PersistenceError):
            await future
    with pytest.raises(PersistenceError):
        queue.send(run_of(3))
    assert broker.count(pb.BaseCommand.PRODUCER) == 1
    await queue.close()


@pytest.mark.parametrize(("code", "failure"), [(15, TopicTerminated), (25, ProducerFenced)])
async def test_queue_when_the_topic_takes_nothing_more_then_everything_fails(
    broker: ScriptedBroker, session: Session, code: int, failure: type[PulsarError]
) -> None:
    answer_once(broker, pb.BaseCommand.SEND, refuse_send(code))
    queue = await open_queue(session)
    futures = [queue.send(run_of(number)) for number in range(2)]
    for future in futures:
        with pytest.raises(failure):
            await future
    await queue.close()


async def test_receipt_when_out_of_order_then_connection_is_dropped_and_entries_sent_again(
    broker: ScriptedBroker, session: Session
) -> None:
    answer_once(
        broker,
        pb.BaseCommand.SEND,
        lambda peer, frame: peer.say(commands.send_receipt(frame.command.send.producer_id, 99, 0, 1, 1)),
    )
    queue = await open_queue(session)
    receipt = await queue.send(run_of(5))
    assert receipt.sequence_id == 5
    assert broker.count(pb.BaseCommand.PRODUCER) == 2
    await queue.close()


async def test_receipt_when_stale_then_is_ignored(broker: ScriptedBroker, session: Session) -> None:
    def twice(peer: Peer, frame: Frame) -> None:
        send = frame.command.send
        for _ in range(2):
            peer.say(commands.send_receipt(send.producer_id, send.sequence_id, 0, 1, send.sequence_id))

    broker.scripts[pb.BaseCommand.SEND] = twice
    queue = await open_queue(session)
    receipts = await asyncio.gather(*[queue.send(run_of(number)) for number in range(3)])
    assert [receipt.position.entry for receipt in receipts] == [0, 1, 2]
    await queue.close()


async def test_entry_when_no_receipt_comes_in_time_then_operation_timeout(
    broker: ScriptedBroker, session: Session
) -> None:
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: None
    queue = await open_queue(session, send_timeout_ms=30)
    with pytest.raises(OperationTimeout):
        await queue.send(run_of(0))
    assert queue.pending_count == 0
    await queue.close()


async def test_room_when_the_window_is_full_then_waits_for_a_receipt(broker: ScriptedBroker, session: Session) -> None:
    held: list[tuple[Peer, Frame]] = []
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: held.append((peer, frame))
    queue = await open_queue(session)
    queue.send(run_of(0))
    waiting = asyncio.create_task(queue.room(entries_max=1, bytes_max=1000))
    await broker.heard(pb.BaseCommand.SEND)
    assert not waiting.done()
    held[0][0].answer(held[0][1])
    await waiting
    await queue.close()


async def test_open_when_the_name_is_taken_then_waits_as_long_as_allowed(
    broker: ScriptedBroker, session: Session
) -> None:
    busy = lambda peer, frame: peer.say(commands.error(frame.command.producer.request_id, 16, "taken"))  # noqa: E731
    broker.scripts[pb.BaseCommand.PRODUCER] = busy
    with pytest.raises(ProducerBusy):
        await open_queue(session, name="n")
    assert broker.count(pb.BaseCommand.PRODUCER) == 1
    with pytest.raises(ProducerBusy):
        await open_queue(session, name="n", busy_timeout_ms=50)
    opening = asyncio.create_task(open_queue(session, name="n", busy_timeout_ms=60_000))
    await broker.heard(pb.BaseCommand.PRODUCER, broker.count(pb.BaseCommand.PRODUCER) + 3)
    del broker.scripts[pb.BaseCommand.PRODUCER]
    queue = await opening
    assert queue.name == "n"
    await queue.close()


async def test_queue_when_refused_on_its_way_back_then_everything_fails(
    broker: ScriptedBroker, session: Session
) -> None:
    queue = await open_queue(session)
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.error(frame.command.producer.request_id, 25, "fenced")
    )
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.drop()
    with pytest.raises(ProducerFenced):
        await queue.send(run_of(0))
    assert isinstance(queue.failure, ProducerFenced)
    await queue.close()


@pytest.mark.parametrize("resends", [True, False])
async def test_queue_when_there_is_no_room_on_its_way_back_then_later_entries_go_on_only_if_it_may_resend(
    broker: ScriptedBroker, session: Session, resends: bool
) -> None:
    """A later entry would make a broker that de-duplicates drop the failed one for good."""
    queue = await open_queue(session, resend_after_error=resends)
    full = pb.ProducerBlockedQuotaExceededException
    answer_once(
        broker,
        pb.BaseCommand.PRODUCER,
        lambda peer, frame: peer.say(commands.error(frame.command.producer.request_id, full, "no room")),
    )
    answer_once(broker, pb.BaseCommand.SEND, lambda peer, frame: peer.drop())
    with pytest.raises(QuotaExceededException, match="no room"):
        await queue.send(run_of(0))
    if resends:
        await queue.send(run_of(1))
    else:
        with pytest.raises(QuotaExceededException, match="no room"):
            queue.send(run_of(1))
    assert broker.stored == [1] * resends
    await queue.close()


async def test_queue_when_the_name_stays_taken_on_its_way_back_then_gives_up_in_time(
    broker: ScriptedBroker, session: Session
) -> None:
    queue = await open_queue(session, name="n", reconnect_timeout_ms=300)
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.error(frame.command.producer.request_id, 16, "taken")
    )
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.drop()
    with pytest.raises(ProducerBusy):
        await queue.send(run_of(0))
    await queue.close()


async def test_open_when_exclusivity_has_to_be_waited_for_then_the_second_answer_counts(
    broker: ScriptedBroker, session: Session
) -> None:
    def wait_a_little(peer: Peer, frame: Frame) -> None:
        request_id = frame.command.producer.request_id
        peer.say(commands.producer_success(request_id, name="n", ready=False))
        later = commands.producer_success(request_id, name="n", last_sequence_id=7, topic_epoch=3)
        asyncio.get_running_loop().call_later(0.5, peer.say, later)

    broker.scripts[pb.BaseCommand.PRODUCER] = wait_a_little
    patient = Session(ClientConfig(broker.url, operation_timeout_ms=300))
    queue = await open_queue(patient, access_mode=pb.WaitForExclusive)
    assert queue.last_sequence_id == 7
    await queue.close()
    await patient.close()
    await session.close()


async def test_close_when_entries_are_unconfirmed_then_they_fail(broker: ScriptedBroker, session: Session) -> None:
    broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: None
    queue = await open_queue(session)
    future = queue.send(run_of(0))
    await queue.close()
    with pytest.raises(AlreadyClosed):
        await future


async def test_queue_when_the_broker_keeps_failing_then_comes_back_ever_more_slowly(
    broker: ScriptedBroker, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    class Noted(Backoff):
        def pause_after(self, lasted: float) -> float:
            pauses.append(super().pause_after(min(lasted, 0.5)))  # a machine that stood still is no lasting connection
            return pauses[-1]

    monkeypatch.setattr(session, "backoff", lambda: Noted(1, 60_000))
    broker.scripts[pb.BaseCommand.SEND] = refuse_send(2)  # type: ignore[assignment]
    queue = await open_queue(session)
    sent = queue.send(run_of(0))
    await eventually(lambda: len(pauses) > 5)
    await queue.close()
    with pytest.raises(AlreadyClosed):
        await sent
    assert pauses == sorted(pauses)


async def test_queue_when_opening_is_cancelled_then_the_producer_is_closed_at_the_broker(
    broker: ScriptedBroker, session: Session
) -> None:
    held: list[tuple[Peer, Frame]] = []
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: held.append((peer, frame))
    opening = asyncio.create_task(open_queue(session))
    await broker.heard(pb.BaseCommand.PRODUCER)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    peer, frame = held[0]
    peer.answer(frame)
    await broker.heard(pb.BaseCommand.CLOSE_PRODUCER)
    (opened,), (closed,) = map(broker.all_of, (pb.BaseCommand.PRODUCER, pb.BaseCommand.CLOSE_PRODUCER))
    assert opened.producer.producer_id == closed.close_producer.producer_id


async def test_unconfirmed_when_its_permit_is_gone_at_the_reconnection_then_is_not_sent_again(
    broker: ScriptedBroker, session: Session
) -> None:
    asked: list[int] = []

    async def permit(sequence_id: int) -> None:
        asked.append(sequence_id)
        raise NotAllowed("it was skipped")

    answer_once(broker, pb.BaseCommand.SEND, lambda peer, frame: peer.drop())
    queue = SendQueue(session, TOPIC, ProducerRequest(), permit=permit)
    await queue.open()
    futures = [queue.send(run_of(number)) for number in (4, 5)]
    for future in futures:
        with pytest.raises(NotAllowed, match="it was skipped"):
            await future
    await broker.heard(pb.BaseCommand.CLOSE_PRODUCER)  # its name is free again
    assert (asked, broker.stored) == ([4], [])
    await queue.close()

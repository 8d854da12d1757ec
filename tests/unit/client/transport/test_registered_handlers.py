"""The producers and consumers registered on a connection: opening and closing, seen by the broker."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import NotConnected, OperationTimeout, TopicNotFound
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame, MessageRun, ReceiptRun
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker


class CountingListener:
    """A consumer that only counts how often it was disconnected."""

    def __init__(self) -> None:
        self.disconnected_count = 0

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None: ...

    def on_messages(self, run: MessageRun) -> None: ...

    def on_disconnected(self, assigned_url: str | None) -> None:
        self.disconnected_count += 1

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...

    def on_leaving(self) -> None: ...

    def on_redirected(self, service_url: str) -> None: ...


class SilentProducer:
    """A producer that sends nothing."""

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None: ...

    def on_receipts(self, run: ReceiptRun) -> None: ...

    def on_send_error(self, error: pb.CommandSendError) -> None: ...

    def on_redirected(self, service_url: str) -> None: ...

    def on_disconnected(self, assigned_url: str | None) -> None: ...


@pytest.fixture
async def connection(broker: ScriptedBroker, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """``request.param``: how many milliseconds it waits for an answer."""
    config = ClientConfig(broker.url, operation_timeout_ms=getattr(request, "param", 60_000))
    connection = await Connection.open(BrokerAddress.parse(broker.url), config)
    yield connection
    connection.close()
    await connection.closed()


async def subscribe(connection: Connection, listener: CountingListener) -> pb.BaseCommand:
    return await connection.consumers.open(
        7,
        listener,
        pb.CommandSubscribe(consumer_id=7, topic="t", subscription="s", subType=pb.CommandSubscribe.Exclusive),
    )


async def test_listener_when_open_then_is_registered_until_closed(
    broker: ScriptedBroker, connection: Connection
) -> None:
    listener = CountingListener()
    answer = await subscribe(connection, listener)
    assert answer.type == pb.BaseCommand.SUCCESS
    assert connection.consumers.get(7) is listener
    await connection.consumers.close(7)
    assert connection.consumers.get(7) is None
    assert broker.all_of(pb.BaseCommand.CLOSE_CONSUMER)[0].close_consumer.consumer_id == 7


def hold_back(broker: ScriptedBroker, kind: int) -> list[tuple[Peer, Frame]]:
    """Leave the first command of this type unanswered, and answer later ones; returns what is held."""
    held: list[tuple[Peer, Frame]] = []

    def script(peer: Peer, frame: Frame) -> None:
        if held:
            peer.answer(frame)
        else:
            held.append((peer, frame))

    broker.scripts[kind] = script
    return held


async def has_answered(connection: Connection) -> None:
    """Return when the broker has heard all that was written before, and its answers are here."""
    await connection.request(pb.CommandLookupTopic(topic="t"))


async def give_up(broker: ScriptedBroker, opening: asyncio.Task[pb.BaseCommand], ending: type[BaseException]) -> None:
    await broker.heard(pb.BaseCommand.SUBSCRIBE)
    if ending is asyncio.CancelledError:
        opening.cancel()
    with pytest.raises(ending):
        await opening


GIVEN_UP = pytest.mark.parametrize(
    ("connection", "ending"), [(500, OperationTimeout), (60_000, asyncio.CancelledError)], indirect=["connection"]
)


@GIVEN_UP
async def test_opening_when_given_up_then_is_closed_after_its_late_success(
    broker: ScriptedBroker, connection: Connection, ending: type[BaseException]
) -> None:
    """A broker of Apache Pulsar may keep the name of a producer that is closed while it opens it."""
    held = hold_back(broker, pb.BaseCommand.SUBSCRIBE)
    await give_up(broker, asyncio.create_task(subscribe(connection, CountingListener())), ending)
    await has_answered(connection)
    assert connection.consumers.get(7) is None
    assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 0
    peer, frame = held[0]
    peer.answer(frame)
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    assert broker.all_of(pb.BaseCommand.CLOSE_CONSUMER)[0].close_consumer.consumer_id == 7


@GIVEN_UP
async def test_opening_when_given_up_then_its_late_refusal_leaves_nothing_to_close(
    broker: ScriptedBroker, connection: Connection, ending: type[BaseException]
) -> None:
    held = hold_back(broker, pb.BaseCommand.SUBSCRIBE)
    await give_up(broker, asyncio.create_task(subscribe(connection, CountingListener())), ending)
    peer, frame = held[0]
    peer.say(commands.error(frame.command.subscribe.request_id, 11, "gone"))
    await has_answered(connection)
    await subscribe(connection, CountingListener())  # waits for what was given up under its id
    assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 0


@pytest.mark.parametrize("connection", [50], indirect=True)
async def test_opening_when_it_is_never_answered_then_is_closed_after_the_patience(
    broker: ScriptedBroker, connection: Connection
) -> None:
    hold_back(broker, pb.BaseCommand.SUBSCRIBE)
    with pytest.raises(OperationTimeout):
        await subscribe(connection, CountingListener())
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)


async def test_opening_when_given_up_and_the_connection_is_lost_then_ends_with_it(
    broker: ScriptedBroker, connection: Connection
) -> None:
    hold_back(broker, pb.BaseCommand.SUBSCRIBE)
    await give_up(broker, asyncio.create_task(subscribe(connection, CountingListener())), asyncio.CancelledError)
    broker.peers[0].drop()
    await connection.closed()
    with pytest.raises(NotConnected):
        await subscribe(connection, CountingListener())


async def test_opening_when_cancelled_as_its_answer_arrives_then_is_closed(
    broker: ScriptedBroker, connection: Connection
) -> None:
    """The answer is there, the caller has not run yet: nothing of it may stay open."""
    opening = asyncio.create_task(subscribe(connection, CountingListener()))
    await broker.heard(pb.BaseCommand.SUBSCRIBE)
    request = connection._on_answer

    def cancelled_at_once(command: pb.BaseCommand, request_id: int) -> None:
        request(command, request_id)
        opening.cancel()

    connection._on_answer = cancelled_at_once  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await opening
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)


async def test_opening_when_an_earlier_one_of_its_name_was_given_up_then_waits_until_that_is_closed(
    broker: ScriptedBroker, connection: Connection
) -> None:
    held = hold_back(broker, pb.BaseCommand.PRODUCER)

    def open_producer(number: int) -> asyncio.Task[pb.BaseCommand]:
        command = pb.CommandProducer(producer_id=number, topic="t", producer_name="p")
        return asyncio.create_task(connection.producers.open(number, SilentProducer(), command, holds=("t", "p")))

    first = open_producer(1)
    await broker.heard(pb.BaseCommand.PRODUCER)
    first.cancel()
    await asyncio.wait([first])
    second = open_producer(2)
    await has_answered(connection)
    assert broker.count(pb.BaseCommand.PRODUCER) == 1
    peer, frame = held[0]
    peer.answer(frame)
    await second
    said = [command.type for command in broker.peers[0].seen]
    assert said[said.index(pb.BaseCommand.CLOSE_PRODUCER) :] == [pb.BaseCommand.CLOSE_PRODUCER, pb.BaseCommand.PRODUCER]


async def test_opening_when_cancelled_while_it_waits_for_exclusivity_then_is_closed_at_once(
    broker: ScriptedBroker, connection: Connection
) -> None:
    """The broker has answered, and would answer again only with the producer's turn."""
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.producer_success(frame.command.producer.request_id, name="p", ready=False)
    )
    opening = asyncio.create_task(
        connection.producers.open(1, SilentProducer(), pb.CommandProducer(producer_id=1, topic="t"))
    )
    await broker.heard(pb.BaseCommand.PRODUCER)
    await has_answered(connection)
    opening.cancel()
    await broker.heard(pb.BaseCommand.CLOSE_PRODUCER)


async def test_listener_when_refused_then_there_is_nothing_to_close(
    broker: ScriptedBroker, connection: Connection
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 11, "gone")
    )
    with pytest.raises(TopicNotFound):
        await subscribe(connection, CountingListener())
    await connection.request(pb.CommandLookupTopic(topic="t"))
    assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 0


async def test_listener_when_closed_by_the_broker_while_it_opens_then_not_connected(
    broker: ScriptedBroker, connection: Connection
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.success(frame.command.subscribe.request_id) + commands.close_consumer(7)
    )
    with pytest.raises(NotConnected):
        await subscribe(connection, CountingListener())


async def test_listeners_when_the_connection_is_lost_then_all_are_disconnected_once(
    broker: ScriptedBroker, connection: Connection
) -> None:
    listener = CountingListener()
    await subscribe(connection, listener)
    broker.peers[0].drop()
    await connection.closed()
    assert listener.disconnected_count == 1
    assert connection.consumers.get(7) is None


async def test_entry_reader_when_its_opening_times_out_then_the_broker_is_told(broker: ScriptedBroker) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: None
    session = Session(ClientConfig(broker.url, operation_timeout_ms=500))
    with pytest.raises(OperationTimeout):
        await EntryReader(session, TopicName.parse("t"), after=EARLIEST).open()
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    await session.close()

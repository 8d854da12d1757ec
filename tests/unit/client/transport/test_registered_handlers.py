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
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import MessageRun
from tests.support.scripted_broker import ScriptedBroker


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


@pytest.fixture
async def connection(broker: ScriptedBroker, request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """``request.param``: how many milliseconds it waits for an answer."""
    config = ClientConfig(broker.url, operation_timeout_ms=getattr(request, "param", 60_000))
    connection = await Connection.open(BrokerAddress.parse(broker.url), config)
    yield connection
    connection.close()
    await connection.closed()


async def subscribe(connection: Connection, listener: CountingListener) -> pb.BaseCommand:
    return await connection.consumers.open(7, listener, lambda number: commands.subscribe(number, 7, "t", "s"))


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


@pytest.mark.parametrize(
    ("connection", "ending"), [(50, OperationTimeout), (60_000, asyncio.CancelledError)], indirect=["connection"]
)
async def test_listener_when_opening_is_given_up_then_the_broker_is_told(
    broker: ScriptedBroker, connection: Connection, ending: type[BaseException]
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: None
    opening = asyncio.create_task(subscribe(connection, CountingListener()))
    await broker.heard(pb.BaseCommand.SUBSCRIBE)
    if ending is asyncio.CancelledError:
        opening.cancel()
    with pytest.raises(ending):
        await opening
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    assert connection.consumers.get(7) is None


async def test_listener_when_refused_then_there_is_nothing_to_close(
    broker: ScriptedBroker, connection: Connection
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 11, "gone")
    )
    with pytest.raises(TopicNotFound):
        await subscribe(connection, CountingListener())
    await connection.request(lambda number: commands.lookup(number, "t"))
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

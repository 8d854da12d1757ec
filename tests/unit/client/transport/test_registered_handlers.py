"""What lives on a connection: opening and closing, seen by the broker."""

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
from tests.support.scripted_broker import ScriptedBroker


class Resident:
    """A consumer that only counts how often it was sent away."""

    def __init__(self) -> None:
        self.detached_count = 0

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None: ...

    def on_disconnected(self, assigned_url: str | None) -> None:
        self.detached_count += 1

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...


@pytest.fixture
async def connection(broker: ScriptedBroker) -> AsyncIterator[Connection]:
    config = ClientConfig(broker.url, operation_timeout_ms=50)
    connection = await Connection.open(BrokerAddress.parse(broker.url), config)
    yield connection
    connection.close()
    await connection.closed()


async def subscribe(connection: Connection, resident: Resident) -> pb.BaseCommand:
    return await connection.consumers.open(7, resident, lambda number: commands.subscribe(number, 7, "t", "s"))


async def test_resident_when_open_then_is_here_until_closed(broker: ScriptedBroker, connection: Connection) -> None:
    resident = Resident()
    answer = await subscribe(connection, resident)
    assert answer.type == pb.BaseCommand.SUCCESS
    assert connection.consumers.get(7) is resident
    await connection.consumers.close(7)
    assert connection.consumers.get(7) is None
    assert broker.all_of(pb.BaseCommand.CLOSE_CONSUMER)[0].close_consumer.consumer_id == 7


@pytest.mark.parametrize("ending", ["timeout", "cancelled"])
async def test_resident_when_opening_is_given_up_then_the_broker_is_told(
    broker: ScriptedBroker, connection: Connection, ending: str
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: None
    opening = asyncio.create_task(subscribe(connection, Resident()))
    await broker.heard(pb.BaseCommand.SUBSCRIBE)
    if ending == "cancelled":
        opening.cancel()
    with pytest.raises(OperationTimeout if ending == "timeout" else asyncio.CancelledError):
        await opening
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    assert connection.consumers.get(7) is None


async def test_resident_when_refused_then_there_is_nothing_to_close(
    broker: ScriptedBroker, connection: Connection
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 11, "gone")
    )
    with pytest.raises(TopicNotFound):
        await subscribe(connection, Resident())
    await connection.request(lambda number: commands.lookup(number, "t"))
    assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 0


async def test_resident_when_sent_away_while_it_opens_then_not_connected(
    broker: ScriptedBroker, connection: Connection
) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.success(frame.command.subscribe.request_id) + commands.close_consumer(7)
    )
    with pytest.raises(NotConnected):
        await subscribe(connection, Resident())


async def test_residents_when_the_connection_is_lost_then_all_are_detached_once(
    broker: ScriptedBroker, connection: Connection
) -> None:
    resident = Resident()
    await subscribe(connection, resident)
    broker.peers[0].drop()
    await connection.closed()
    assert resident.detached_count == 1
    assert connection.consumers.get(7) is None


async def test_entry_reader_when_its_opening_times_out_then_the_broker_is_told(broker: ScriptedBroker) -> None:
    broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: None
    session = Session(ClientConfig(broker.url, operation_timeout_ms=60))
    with pytest.raises(OperationTimeout):
        await EntryReader(session, TopicName.parse("t"), after=EARLIEST).open()
    await broker.heard(pb.BaseCommand.CLOSE_CONSUMER)
    await session.close()

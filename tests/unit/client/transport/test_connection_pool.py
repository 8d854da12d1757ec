"""Sharing connections."""

import asyncio
import logging

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import AlreadyClosed, NotConnected
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.scripted_broker import ScriptedBroker
from tests.support.waiting import eventually


async def test_callers_at_the_same_time_then_share_one_connection() -> None:
    async with ScriptedBroker() as broker:
        config = ClientConfig(broker.url)
        pool = ConnectionPool(config)
        connections = await asyncio.gather(*(pool.get(config.url.brokers[0]) for _ in range(5)))
        assert len(set(map(id, connections))) == 1
        assert len(broker.peers) == 1
        await pool.close()
        with pytest.raises(AlreadyClosed):
            await pool.get(config.url.brokers[0])


async def test_connection_when_lost_then_a_new_one_is_opened() -> None:
    async with ScriptedBroker() as broker:
        config = ClientConfig(broker.url)
        pool = ConnectionPool(config)
        first = await pool.get(config.url.brokers[0])
        broker.peers[0].drop()
        await first.closed()
        second = await pool.get(config.url.brokers[0])
        assert second is not first
        assert second.is_open
        await pool.close()


async def test_failure_to_connect_is_not_remembered() -> None:
    async with ScriptedBroker() as broker:
        pool = ConnectionPool(ClientConfig(broker.url))
        nobody = BrokerAddress("127.0.0.1", 1)
        for _ in range(2):
            with pytest.raises(NotConnected):
                await pool.get(nobody)
        await pool.close()


async def test_callers_when_one_gives_up_then_the_other_still_gets_the_connection() -> None:
    async with ScriptedBroker() as broker:
        config = ClientConfig(broker.url)
        pool = ConnectionPool(config)
        impatient = asyncio.create_task(pool.get(config.url.brokers[0]))
        patient = asyncio.create_task(pool.get(config.url.brokers[0]))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).is_open
        await pool.close()


async def test_port_of_the_web_service_then_is_told_once_until_a_broker_answers_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, frame: peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        config = ClientConfig(broker.url)
        pool, other = ConnectionPool(config), ConnectionPool(config)
        for each in (pool, pool, pool, other):
            with pytest.raises(NotConnected, match="looks like the port of the web service"):
                await each.get(config.url.brokers[0])
        assert len(told()) == 2
        del broker.scripts[pb.BaseCommand.CONNECT]
        answered = await pool.get(config.url.brokers[0])
        broker.peers[-1].say(b"\xff" * 20)
        async with asyncio.timeout(60):
            await answered.closed()
        assert len(told()) == 3
        await pool.close()
        await other.close()


async def test_connections_when_left_then_callers_may_try_elsewhere() -> None:
    async with ScriptedBroker() as broker, ScriptedBroker() as silent:
        silent.scripts[pb.BaseCommand.CONNECT] = lambda peer, frame: None
        address, slow = (BrokerAddress.parse(each.url) for each in (broker, silent))
        pool = ConnectionPool(ClientConfig(broker.url))
        connection = await pool.get(address)
        opening = asyncio.create_task(pool.get(slow))
        await eventually(lambda: silent.peers)
        pool.leave(NotConnected("the client has left"))
        assert not connection.is_open
        with pytest.raises(NotConnected, match="has left"):
            await opening
        with pytest.raises(NotConnected, match="has left"):
            await pool.get(address)
        await pool.close()


async def test_caller_when_cancelled_while_the_pool_is_left_then_ends() -> None:
    async with ScriptedBroker() as silent:
        silent.scripts[pb.BaseCommand.CONNECT] = lambda peer, frame: None
        pool = ConnectionPool(ClientConfig(silent.url))
        opening = asyncio.create_task(pool.get(BrokerAddress.parse(silent.url)))
        await eventually(lambda: silent.peers)
        pool.leave(NotConnected("the client has left"))
        opening.cancel()
        await asyncio.wait([opening])
        assert opening.cancelled()
        await pool.close()

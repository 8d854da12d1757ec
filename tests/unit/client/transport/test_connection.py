"""A connection against a broker that does what the test says."""

import asyncio
from pathlib import Path

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.credentials import Credentials
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import AuthenticationError, IncompatibleSchema, NotConnected, OperationTimeout
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker


async def open_connection(broker: ScriptedBroker, **options: object) -> Connection:
    config = ClientConfig(broker.url, **options)  # type: ignore[arg-type]
    return await Connection.open(config.url.brokers[0], config)


LOOKUP = pb.CommandLookupTopic(topic="t")


async def test_open_when_the_broker_accepts_then_says_who_we_are() -> None:
    async with ScriptedBroker() as broker:
        connection = await open_connection(broker, credentials=Credentials.token("token:jwt"))
        (peer,) = broker.peers
        assert peer.connect.client_version.startswith("Interpulse")
        assert (peer.connect.auth_method_name, peer.connect.auth_data) == ("token", b"jwt")
        assert connection.peer_flags.supports_get_partitioned_metadata_without_auto_creation
        assert connection.message_bytes_max == 5 * 1024 * 1024
        connection.close()
        await connection.closed()


async def test_open_when_refused_then_raises_the_reason() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, frame: peer.refuse(3, "Failed to authenticate")
        with pytest.raises(AuthenticationError, match="Failed to authenticate"):
            await open_connection(broker)


async def test_open_when_the_token_cannot_be_read_then_names_its_file(tmp_path: Path) -> None:
    async with ScriptedBroker() as broker:
        with pytest.raises(AuthenticationError, match=r"token file .*nowhere cannot be read: No such file"):
            await open_connection(broker, credentials=Credentials.token(f"file://{tmp_path}/nowhere"))


async def test_open_when_no_server_listens_then_not_connected_names_the_address() -> None:
    config = ClientConfig("pulsar://127.0.0.1:1")
    with pytest.raises(NotConnected, match=r"127\.0\.0\.1:1"):
        await Connection.open(config.url.brokers[0], config)


async def test_open_when_the_broker_is_silent_then_not_connected() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.CONNECT] = lambda peer, frame: None
        with pytest.raises(NotConnected, match="did not answer"):
            await open_connection(broker, connect_timeout_ms=50)


async def test_open_through_a_proxy_then_names_the_broker_meant() -> None:
    async with ScriptedBroker() as broker:
        config = ClientConfig(broker.url)
        address = config.url.brokers[0]
        behind = BrokerAddress(address.host, address.port, behind="broker:6650")
        connection = await Connection.open(behind, config)
        assert broker.peers[0].connect.proxy_to_broker_url == "broker:6650"
        connection.close()
        await connection.closed()


async def test_requests_when_many_are_under_way_then_each_gets_its_own_answer() -> None:
    async with ScriptedBroker() as broker:
        held: list[int] = []

        def answer_in_reverse(peer: object, frame: object) -> None:
            held.append(frame.command.lookupTopic.request_id)  # type: ignore[attr-defined]
            if len(held) == 5:
                for request_id in reversed(held):
                    peer.say(commands.lookup_response(request_id, broker_url=f"pulsar://b:{request_id}"))  # type: ignore[attr-defined]

        broker.scripts[pb.BaseCommand.LOOKUP] = answer_in_reverse
        connection = await open_connection(broker)
        answers = await asyncio.gather(*(connection.request(LOOKUP) for _ in range(5)))
        urls = [answer.lookupTopicResponse.brokerServiceUrl for answer in answers]
        assert urls == [f"pulsar://b:{number}" for number in range(5)]
        connection.close()
        await connection.closed()


async def test_request_when_answered_with_an_error_then_raises_its_class() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
            commands.error(frame.command.producer.request_id, 18, "does not fit")
        )
        connection = await open_connection(broker)
        with pytest.raises(IncompatibleSchema, match="does not fit"):
            await connection.request(pb.CommandProducer(producer_id=1, topic="t"))
        connection.close()
        await connection.closed()


async def test_request_when_unanswered_then_operation_timeout_and_the_connection_stays() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: None
        connection = await open_connection(broker)
        with pytest.raises(OperationTimeout):
            await connection.request(LOOKUP, timeout_ms=20)
        assert connection.is_open
        connection.close()
        await connection.closed()


async def test_requests_when_the_connection_breaks_then_fail_with_not_connected() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.drop()
        connection = await open_connection(broker)
        with pytest.raises(NotConnected):
            await connection.request(LOOKUP)
        assert not connection.is_open
        with pytest.raises(NotConnected):
            await connection.request(LOOKUP)
        await connection.closed()


async def test_connection_when_the_broker_speaks_garbage_then_is_closed() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(b"\xff" * 20)
        connection = await open_connection(broker)
        with pytest.raises(NotConnected, match="broke the protocol"):
            await connection.request(LOOKUP)


async def test_connection_when_the_broker_falls_silent_then_is_closed_by_keep_alive() -> None:
    async with ScriptedBroker() as broker:
        connection = await open_connection(broker, keep_alive_interval_ms=200)
        broker.peers[0].data_received = lambda data: None  # type: ignore[method-assign]
        async with asyncio.timeout(60):
            await connection.closed()
        assert not connection.is_open

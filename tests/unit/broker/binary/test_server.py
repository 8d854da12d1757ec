"""The listening socket: which clients are accepted, and how all of them are disconnected."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest

from interpulse.broker.binary.server import BinaryServer
from interpulse.broker.binary.transport.context import ConnectionLimits
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.serving.admission import ConnectionQuota
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder
from tests.support import commands
from tests.support.waiting import eventually


def bound_socket() -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


@pytest.mark.parametrize(
    ("limits", "watchers"),
    [({}, True), ({"topic_watchers_allowed": False}, False), ({"patterns_evaluated": False}, False)],
)
async def test_server_when_client_greets_then_announces_only_what_it_does(
    context: Any, limits: dict[str, bool], watchers: bool
) -> None:
    bound = bound_socket()
    port = bound.getsockname()[1]
    server = BinaryServer(context, ConnectionLimits(message_bytes_max=1234567, **limits))
    await server.start(bound)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(commands.connect(client_version="x", protocol_version=99, feature_flags=pb.FeatureFlags()))
    (frame,) = FrameDecoder().feed(await reader.read(65536))
    connected = frame.command.connected
    assert connected.server_version.startswith("Pulsar Server")
    assert (connected.protocol_version, connected.max_message_size) == (21, 1234567)
    flags = connected.feature_flags
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert flags.supports_repl_dedup_by_lid_and_eid
    assert flags.supports_topic_watchers == flags.supports_topic_watcher_reconcile == watchers
    assert not flags.supports_scalable_topics
    assert server.connections.active == 1
    await server.close()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_server_when_it_stops_accepting_then_those_inside_stay(context: Any) -> None:
    bound = bound_socket()
    address = bound.getsockname()
    server = BinaryServer(context, ConnectionLimits())
    await server.start(bound)
    reader, writer = await asyncio.open_connection(*address)
    writer.write(commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags()))
    await reader.read(65536)
    server.sockets.close()
    writer.write(commands.PING)
    assert await reader.read(65536) == commands.PONG
    await server.close()
    writer.close()
    await writer.wait_closed()


async def test_server_when_closed_then_clients_that_do_not_read_are_gone(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.broker.binary.server._CLOSING_SECONDS", 0.1)
    bound = bound_socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    address = bound.getsockname()
    server = BinaryServer(context, ConnectionLimits())
    await server.start(bound)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(address)
        client.setblocking(False)
        greeting = commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags())
        await asyncio.get_running_loop().sock_sendall(client, greeting + commands.PING * 20_000)
        await server.close()
        assert server.connections.active == 0


async def test_server_when_closed_then_clients_are_disconnected_in_the_order_in_which_they_came(
    context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bound = bound_socket()
    address = bound.getsockname()
    server = BinaryServer(context, ConnectionLimits())
    await server.start(bound)
    clients = [await _greeted(address) for _ in range(10)]
    with caplog.at_level(logging.DEBUG, "interpulse.broker.binary.transport.connection"):
        await server.close()
    ports = [writer.get_extra_info("sockname")[1] for _, writer in clients]
    closed = [message for message in caplog.messages if message.startswith("connection closed")]
    assert closed == [f"connection closed address=/127.0.0.1:{port} cause=None" for port in ports]
    for _, writer in clients:
        writer.close()


async def test_server_when_closed_then_who_came_in_that_moment_goes_too(context: Any) -> None:
    bound = bound_socket()
    address = bound.getsockname()
    server = BinaryServer(context, ConnectionLimits())
    await server.start(bound)
    opening = asyncio.create_task(asyncio.open_connection(*address))
    while not server.connections.created:  # noqa: ASYNC110  # the loop has no event for it
        await asyncio.sleep(0)
    assert server.connections.active == 0, "it comes in with the next turn of the loop"
    await server.close()
    reader, writer = await opening
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("supported", [True, False])
async def test_server_when_batch_lookup_is_switched_then_newcomers_are_told(context: Any, supported: bool) -> None:
    bound = bound_socket()
    port = bound.getsockname()[1]
    server = BinaryServer(context, ConnectionLimits())
    await server.start(bound)
    context.batch_limits = BrokerConfig(supports_batch_lookup=supported)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags()))
    (frame,) = FrameDecoder().feed(await reader.read(65536))
    flags = frame.command.connected.feature_flags
    assert flags.HasField("supports_batch_lookup") == flags.supports_batch_lookup == supported
    await server.close()
    writer.close()
    await writer.wait_closed()


REACHED = "Reached the maximum number of connections"


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (ConnectionQuota(2, 0), REACHED),
        (ConnectionQuota(0, 2), f"{REACHED} on address/127.0.0.1:"),
        (ConnectionQuota(within=ConnectionQuota(2)), REACHED),
    ],
    ids=["brokerMaxConnections", "brokerMaxConnectionsPerIp", "open files"],
)
async def test_connections_when_at_the_limit_then_one_above_is_told_so_and_disconnected(
    context: Any, quota: ConnectionQuota, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a real Pulsar does: ERROR for no request, code 22, in these words."""
    bound = bound_socket()
    address = bound.getsockname()
    server = BinaryServer(context, ConnectionLimits(), quota=quota)
    await server.start(bound)
    inside = [await _greeted(address) for _ in range(2)]
    reader, writer = await asyncio.open_connection(*address)
    (frame,) = FrameDecoder().feed(await reader.read())
    error = frame.command.error
    assert (error.request_id, error.error) == (2**64 - 1, pb.NotAllowedError)
    assert error.message.startswith(words)
    assert "connections refused" in caplog.text
    writer.close()
    inside.pop()[1].close()
    await eventually(lambda: server.connections.active == 1)
    inside.append(await _greeted(address))
    await server.close()
    for _, each in inside:
        each.close()


async def _greeted(address: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(commands.connect(client_version="x", protocol_version=21, feature_flags=pb.FeatureFlags()))
    (frame,) = FrameDecoder().feed(await reader.read(65536))
    assert frame.command.connected.server_version
    return reader, writer

"""The commands of servers, read off the network."""

from __future__ import annotations

import asyncio

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from tests.simulation.nodes import Node
from tests.simulation.wiretap import Wiretap
from tests.simulation.world import World
from tests.support.simulated import let_pass

PORT = 6650
SENT = [commands.success(1), commands.success(2)]


class _Cutting(asyncio.Protocol):
    """Sends two commands in two pieces."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        content = b"".join(SENT)
        transport.write(content[:5])
        transport.write(content[5:])


async def _serve(node: Node) -> None:
    for port in (PORT, PORT + 1):
        await asyncio.get_running_loop().create_server(_Cutting, node.name, port)
    await asyncio.get_running_loop().create_future()


async def _connect(node: Node) -> None:
    for port in (PORT, PORT + 1):
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, "server", port)


def test_commands_when_written_in_pieces_then_each_is_reported_once_for_its_port(world: World) -> None:
    server, client = Node(world, "server"), Node(world, "client")
    seen: list[tuple[Node, pb.BaseCommand]] = []
    Wiretap(world.network, [server], PORT, lambda node, command: seen.append((node, command)))
    server.start(_serve)
    let_pass(world, 1)
    client.start(_connect)
    let_pass(world, 1)
    assert [(node, command.success.request_id) for node, command in seen] == [(server, 1), (server, 2)]

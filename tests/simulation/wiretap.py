"""The commands that servers write to their connections, read off the simulated network at that moment."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator

from interpulse.wire import pulsar_api_pb2 as pb
from tests.simulation.network import Network, SimulatedTransport
from tests.simulation.nodes import Node

_SIZES = struct.Struct(">II")  # of what follows, of the command


class Wiretap:
    """Reports each command that these nodes write to clients of one port."""

    def __init__(
        self,
        network: Network,
        nodes: Collection[Node],
        port: int,
        on_command: Callable[[Node, pb.BaseCommand], None],
    ) -> None:
        self._nodes = nodes
        self._port = port
        self._on_command = on_command
        self._rests: dict[SimulatedTransport, bytearray] = {}
        network.on_write = self._written

    def _written(self, transport: SimulatedTransport, content: bytes) -> None:
        if transport.node in self._nodes and transport.get_extra_info("sockname")[1] == self._port:
            rest = self._rests.setdefault(transport, bytearray())
            rest += content
            for command in _cut(rest):
                self._on_command(transport.node, command)


def _cut(rest: bytearray) -> Iterator[pb.BaseCommand]:
    """Yield the commands of all complete frames, and remove these."""
    while len(rest) >= _SIZES.size:
        total, size = _SIZES.unpack_from(rest)
        if len(rest) < 4 + total:
            return
        command = bytes(rest[_SIZES.size : _SIZES.size + size])
        del rest[: 4 + total]
        yield pb.BaseCommand.FromString(command)

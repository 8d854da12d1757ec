"""Connections of a simulated world: links with delays, cut chunks, back pressure, resets and silence.

Bytes of one connection keep their order. Everything else may happen: a chunk is cut anywhere and joined with the next
one, takes its time, waits while a link is blocked, or never arrives because a machine lost its power.
"""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.nodes import Node

_WINDOW_BYTES: Final = 256 * 1024
"""Bytes that the two systems hold for a receiver; a transport buffers what exceeds them."""
_CONNECT_SECONDS_MAX: Final = 120.0
_HIGH_BYTES, _LOW_BYTES = 64 * 1024, 16 * 1024


class Network:
    """All links, servers and connections."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.stream("network")
        self.servers: dict[tuple[str, int], Server] = {}
        self.connections: list[SimulatedTransport] = []
        self.slowness = 1.0
        self.on_write: Callable[[SimulatedTransport, bytes], None] = lambda transport, content: None
        """Called with everything that a program writes to an open connection."""
        self.unwilling: dict[str, tuple[float, bool]] = {}
        """Nodes that accept no connection until a moment: they refuse it, or close it at once."""
        self._blocked: dict[tuple[str, str], float] = {}
        self._ports = 40_000

    def delay(self) -> float:
        """Draw the time that a chunk takes."""
        chance = self.chance
        seconds = chance.uniform(1e-3, 40e-3) if chance.random() < 0.05 else chance.uniform(50e-6, 400e-6)
        return seconds * self.slowness

    # links

    def block(self, source: str, target: str, seconds: float) -> None:
        """Hold back everything from one node to another for a while, as TCP does that sends again."""
        key = (source, target)
        self._blocked[key] = max(self._blocked.get(key, 0.0), self.world.now + seconds)

    def heal(self) -> None:
        """End all blocks."""
        self._blocked.clear()
        self.unwilling.clear()

    def arrival(self, source: Node, target: Node) -> float:
        """Return the moment at which something sent now arrives."""
        return max(self.world.now, self._blocked.get((source.name, target.name), 0.0)) + self.delay()

    def held_until(self, source: Node, target: Node) -> float:
        """Return the moment at which the link is open again; in the past if it is open."""
        return self._blocked.get((source.name, target.name), 0.0)

    # connections

    def listen(self, node: Node, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> Server:
        """Accept connections to this address, for as long as the node lives."""
        if (host, port) in self.servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = self.servers[host, port] = Server(self, node, factory, host, port)
        return server

    async def connect(
        self, node: Node, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        """Connect from a node. Raise OSError as a socket does."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Server, SimulatedTransport] | None] = loop.create_future()
        self._ports += 1
        attempt = _Attempt(self, node, node.life, self._ports, host, port, answer)
        attempt.send()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS_MAX):
                accepted = await answer
        except BaseException:
            attempt.given_up()
            raise
        if accepted is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ({host!r}, {port})")
        transport = attempt.transport
        assert transport is not None
        if transport.gone:
            raise _reset()
        protocol = factory()
        transport.start(protocol)
        return transport, protocol

    def cut(self, transport: SimulatedTransport, *, one_side: bool = False) -> None:
        """Reset a connection. With ``one_side`` the peer learns nothing of it until it sends."""
        peer = transport.peer
        transport.lose(_reset())
        if not one_side:
            peer.lose_later(_reset())

    def end_of(self, node: Node, *, power: bool) -> None:
        """End the connections and servers of a node that dies; its kernel says so, unless it has no power."""
        for address in [address for address, server in self.servers.items() if server.node is node]:
            del self.servers[address]
        for transport in [each for each in self.connections if each.node is node]:
            self.forget(transport)
            transport.gone = True
            transport.left_behind(power=power, reset=self.chance.random() < 0.5)

    def forget(self, transport: SimulatedTransport) -> None:
        if transport in self.connections:
            self.connections.remove(transport)


class Server:
    """A listening address; the part of `asyncio.Server` that programs use."""

    def __init__(self, network: Network, node: Node, factory: Any, host: str, port: int) -> None:
        self.node = node
        self.factory = factory
        self.address = (host, port)
        self._network = network
        self.sockets = (BoundAddress(host, port),)

    def close(self) -> None:
        if self._network.servers.get(self.address) is self:
            del self._network.servers[self.address]

    def is_serving(self) -> bool:
        return self._network.servers.get(self.address) is self

    async def wait_closed(self) -> None:
        """Return: nothing is left to do after `close`."""


class BoundAddress:
    """A bound socket, as `ServiceAddress.bind` returns one: the server on it begins to listen later."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> BoundAddress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Attempt:
    """One attempt to connect: the request to the server, and its answer."""

    def __init__(
        self,
        network: Network,
        node: Node,
        life: int,
        own_port: int,
        host: str,
        port: int,
        answer: asyncio.Future[tuple[Server, SimulatedTransport] | None],
    ) -> None:
        self.network, self.node, self.life = network, node, life
        self.host, self.port, self.own_port = host, port, own_port
        self.answer = answer
        self.transport: SimulatedTransport | None = None
        self.abandoned = False

    def send(self) -> None:
        target = self.network.world.node(self.host)
        if target is None:
            raise OSError(errno.EHOSTUNREACH, f"no such host: {self.host}")
        self.network.world.at(self.network.arrival(self.node, target), lambda: self._arrive(target))

    def given_up(self) -> None:
        self.abandoned = True
        if self.transport is not None:
            self.transport.abort()

    def _arrive(self, target: Node) -> None:
        if target.powerless or self.abandoned:
            return
        server = self.network.servers.get((target.name, self.port))
        back = self.network.arrival(target, self.node)
        until, refusing = self.network.unwilling.get(self.host, (0.0, False))
        unwilling = until > self.network.world.now
        if server is None or (unwilling and refusing):
            self.network.world.at(back, lambda: self._answer(None))
            return
        client, listening = (self.node.address, self.own_port), (target.address, self.port)
        accepted = SimulatedTransport(self.network, server.node, client, listening)
        own = self.transport = SimulatedTransport(self.network, self.node, listening, client)
        accepted.peer, own.peer = own, accepted
        if self._is_over:  # its system no longer knows the attempt
            self.network.forget(own)
            own.gone = True
        if unwilling:
            self.network.forget(accepted)
            accepted.gone = True
            accepted.closing_by_kernel(None)
        else:
            accepted.call(lambda: accepted.start(server.factory()))
        self.network.world.at(back, lambda: self._answer((server, accepted)))

    @property
    def _is_over(self) -> bool:
        """True if the program gave it up, or no longer lives."""
        return self.abandoned or self.node.life != self.life or not self.node.alive

    def _answer(self, accepted: tuple[Server, SimulatedTransport] | None) -> None:
        if self._is_over:
            return
        answer = self.answer
        self.node.loop.call_soon(lambda: None if answer.done() else answer.set_result(accepted))


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    peer: SimulatedTransport

    def __init__(self, network: Network, node: Node, peer: tuple[str, int], own: tuple[str, int]) -> None:
        super().__init__({"peername": peer, "sockname": own})
        self.network, self.node = network, node
        self.gone = False
        """True once the system no longer knows the connection: what arrives is answered with a reset."""
        self.chunks_left: int | None = None
        """The chunks after which nothing of this end arrives any more; None = no limit."""
        self._loop = node.loop
        self._protocol: Any = None
        self._out = bytearray()
        self._out_ends: list[Exception | None] = []  # how the outgoing direction ends, behind the bytes
        self._delivery = False  # the next delivery is due
        self._error: Exception | None = None
        self._settled = self._closing = self._lost = self._paused = self._peer_full = self._ended = False
        self._high, self._low = _HIGH_BYTES, _LOW_BYTES
        network.connections.append(self)

    # asyncio.Transport

    def write(self, data: Any) -> None:
        if self._closing or not data:
            return
        self.network.on_write(self, data)
        self._out += data
        self._deliver_later()
        self._check_high()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._closing and not self._out_ends:
            self._out_ends.append(None)
            self._deliver_later()

    def get_write_buffer_size(self) -> int:
        return max(0, len(self._out) - _WINDOW_BYTES)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low
        self._check_high()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            if not self.peer.gone:
                self.peer._deliver_later()

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.closing_by_kernel(None)
            if not self.get_write_buffer_size():
                self._lose_soon(None)

    def abort(self) -> None:
        self._closing = True
        self.closing_by_kernel(_reset(), at_once=True)
        self._lose_soon(None)

    # the side of the network

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Begin with a protocol, in a turn of the node. What arrives shows in a later turn, as with sockets."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._loop.call_soon(self._settle)

    def call(self, action: Callable[[], None]) -> None:
        """Run something in the next turn of the node, if it still lives this life."""
        if not self.gone and self.node.loop is self._loop:
            self._loop.call_soon(action)

    def lose(self, error: Exception | None) -> None:
        """Let the program know that the connection is lost."""
        self._closing = True
        self.network.forget(self)
        self._out.clear()
        self._lose_soon(error)
        self.gone = True

    def lose_later(self, error: Exception | None) -> None:
        """Lose the connection once the news has arrived."""
        self.network.world.at(
            self.network.arrival(self.peer.node, self.node), lambda: None if self.gone else self.lose(error)
        )

    def closing_by_kernel(self, error: Exception | None, *, at_once: bool = False) -> None:
        """End the outgoing direction: behind what was written, or with a reset that overtakes it."""
        if at_once or error is not None:
            self._out.clear()
        if not self._out_ends:
            self._out_ends.append(error)
        elif error is not None:
            self._out_ends[0] = error
        self._deliver_later()

    def left_behind(self, *, power: bool, reset: bool) -> None:
        """End as the connection of a dead process, or vanish with the machine's power."""
        if power:
            self._out.clear()
            self._out_ends.clear()
        else:
            del self._out[_WINDOW_BYTES:]
            self.closing_by_kernel(_reset() if reset else None)

    def _lose_soon(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost, self._error = True, error
        if self._settled:
            self.call(self._report_loss)
        elif self._protocol is None:  # an attempt that was given up
            self.network.forget(self)

    def _settle(self) -> None:
        self._settled = True
        if self._lost:
            self._loop.call_soon(self._report_loss)
        else:
            self.peer._deliver_later()

    def _report_loss(self) -> None:
        self.network.forget(self)
        self.gone = True
        self._protocol.connection_lost(self._error)

    def _check_high(self) -> None:
        if not self._peer_full and self.get_write_buffer_size() > self._high:
            self._peer_full = True
            self._protocol.pause_writing()

    def _check_low(self) -> None:
        if self._peer_full and self.get_write_buffer_size() <= self._low:
            self._peer_full = False
            self.call(lambda: None if self._lost else self._protocol.resume_writing())
        if self._closing and not self.gone and not self.get_write_buffer_size():
            self._lose_soon(None)

    def _deliver_later(self) -> None:
        if not self._delivery and (self._out or self._out_ends):
            self._delivery = True
            self.network.world.at(self.network.arrival(self.node, self.peer.node), self._deliver)

    def _deliver(self) -> None:
        """Hand what arrives to the peer: a part of the bytes, or the end."""
        self._delivery = False
        peer, network = self.peer, self.network
        held = network.held_until(self.node, peer.node)
        if held > network.world.now:
            self._delivery = True
            network.world.at(held + network.delay(), self._deliver)
            return
        if peer.node.powerless or self.chunks_left == 0:
            self._out.clear()
            return
        if peer.gone:
            self._out.clear()
            if not self.gone:
                self.lose_later(_reset())
            return
        reset = bool(self._out_ends) and self._out_ends[0] is not None
        if (peer._paused or not peer._settled) and not reset:
            return  # resume_reading and _settle go on
        if self._out:
            self._hand_over(peer)
        elif self._out_ends and not self._ended:
            self._ended = True
            self._end(peer, self._out_ends[0])
            return
        self._deliver_later()

    def _hand_over(self, peer: SimulatedTransport) -> None:
        if self.chunks_left is not None:
            self.chunks_left -= 1
        chance, size = self.network.chance, len(self._out)
        taken = min(size, _WINDOW_BYTES) if chance.random() < 0.7 else chance.randint(1, min(size, _WINDOW_BYTES))
        content = bytes(self._out[:taken])
        del self._out[:taken]
        self._check_low()
        self.network.world.note("deliver", self.node.name, peer.node.name, taken, zlib.crc32(content))
        peer.call(lambda: peer._receive(content))

    def _receive(self, content: bytes) -> None:
        if not self._closing and not self._lost:
            self._protocol.data_received(content)

    def _end(self, peer: SimulatedTransport, error: Exception | None) -> None:
        self.network.world.note("end", self.node.name, peer.node.name, type(error).__name__)
        if error is not None:
            peer.lose(error)
        else:
            peer.call(peer._receive_eof)

    def _receive_eof(self) -> None:
        if self._closing or self._lost:
            return
        if not self._protocol.eof_received():
            self.close()


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

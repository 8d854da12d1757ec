"""Connections: order, delays, back pressure, ends, and every way in which they break."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.simulation.network import SimulatedTransport
from tests.simulation.nodes import Node
from tests.simulation.world import World
from tests.support.simulated import let_pass

PORT = 6650
MEBIBYTE = 1024 * 1024


@dataclass
class Recorder(asyncio.Protocol):
    """Notes everything that a transport reports."""

    world: World
    received: bytearray = field(default_factory=bytearray)
    events: list[str] = field(default_factory=list)
    lost_at: float = 0.0
    error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimulatedTransport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> bool:
        self.events.append("eof")
        return False

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.error = exc
        self.lost_at = self.world.seconds


class Pair:
    """A client and a server with one connection."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.near, self.far = Recorder(world), Recorder(world)
        self.client, self.server = Node(world, "client"), Node(world, "server")
        self.server.start(self._serve)
        let_pass(world, 0.1)
        self.client.start(self._connect)
        let_pass(world, 1)
        assert self.near.events == self.far.events == ["made"]

    async def _serve(self, node: Node) -> None:
        await node.loop.create_server(lambda: self.far, "server", PORT)
        await node.loop.create_future()

    async def _connect(self, node: Node) -> None:
        await node.loop.create_connection(lambda: self.near, "server", PORT)
        await node.loop.create_future()

    def write(self, content: bytes) -> None:
        """Write from the client to the server, in a turn of the client."""
        self.do(lambda: self.near.transport.write(content))

    def do(self, action) -> None:
        self.client.loop.call_soon(action)


@pytest.fixture
def pair(world: World) -> Pair:
    return Pair(world)


def test_bytes_when_written_in_many_chunks_then_they_arrive_in_order(pair: Pair) -> None:
    content = bytes(range(256)) * 400
    for begin in range(0, len(content), 1000):
        pair.write(content[begin : begin + 1000])
        let_pass(pair.world, 0.0003)
    let_pass(pair.world, 10)
    assert pair.far.received == content


def test_bytes_when_written_then_they_take_time(pair: Pair) -> None:
    pair.write(b"hello")
    let_pass(pair.world, 40e-6)
    assert not pair.far.received
    let_pass(pair.world, 1)
    assert pair.far.received == b"hello"


def test_cut_when_reported_then_both_sides_lose_the_connection(pair: Pair) -> None:
    pair.world.network.cut(pair.near.transport)
    let_pass(pair.world, 1)
    assert isinstance(pair.near.error, ConnectionResetError)
    assert isinstance(pair.far.error, ConnectionResetError)


def test_half_open_when_the_other_side_sends_then_it_learns_of_it(pair: Pair) -> None:
    pair.world.network.cut(pair.far.transport, one_side=True)
    let_pass(pair.world, 600)
    assert pair.near.events == ["made"]
    pair.write(b"anyone?")
    let_pass(pair.world, 1)
    assert pair.near.events == ["made", "lost"]
    assert isinstance(pair.near.error, ConnectionResetError)
    assert not pair.far.received


def test_block_when_over_then_what_was_written_arrives(pair: Pair) -> None:
    pair.world.network.block("client", "server", 10)
    pair.write(b"patience")
    let_pass(pair.world, 9.9)
    assert not pair.far.received
    let_pass(pair.world, 1)
    assert pair.far.received == b"patience"


def test_block_when_one_direction_only_then_the_other_one_is_open(pair: Pair) -> None:
    pair.world.network.block("client", "server", 10)
    pair.server.loop.call_soon(pair.far.transport.write, b"hello")
    let_pass(pair.world, 1)
    assert pair.near.received == b"hello"


def test_heal_when_a_link_is_blocked_then_what_is_sent_next_arrives(pair: Pair) -> None:
    pair.world.network.block("client", "server", 1000)
    pair.world.network.heal()
    pair.write(b"hello")
    let_pass(pair.world, 1)
    assert pair.far.received == b"hello"


def test_connect_when_no_server_listens_then_it_is_refused(world: World) -> None:
    Node(world, "server").start(_forever)
    errors = _connect_errors(world)
    let_pass(world, 1)
    assert [type(error) for error in errors] == [ConnectionRefusedError]


def test_connect_when_the_machine_has_no_power_then_it_takes_its_time_out(world: World) -> None:
    server = Node(world, "server")
    server.start(_forever)
    server.power_off()
    errors = _connect_errors(world)
    let_pass(world, 100)
    assert errors == []
    let_pass(world, 100)
    assert [type(error) for error in errors] == [TimeoutError]


def test_writing_when_the_peer_reads_nothing_then_it_pauses_and_resumes_later(pair: Pair) -> None:
    pair.server.loop.call_soon(pair.far.transport.pause_reading)
    let_pass(pair.world, 1)
    pair.write(bytes(MEBIBYTE))
    let_pass(pair.world, 10)
    assert pair.near.events == ["made", "pause"]
    assert not pair.far.received
    pair.server.loop.call_soon(pair.far.transport.resume_reading)
    let_pass(pair.world, 10)
    assert pair.near.events == ["made", "pause", "resume"]
    assert len(pair.far.received) == MEBIBYTE


def test_close_when_bytes_wait_then_they_arrive_before_the_end(pair: Pair) -> None:
    content = bytes(range(256)) * 4096
    pair.write(content)
    pair.do(pair.near.transport.close)
    let_pass(pair.world, 30)
    assert pair.far.received == content
    assert pair.far.events == ["made", "eof", "lost"]
    assert pair.far.error is None
    assert pair.near.events[-1] == "lost"


def test_abort_when_bytes_wait_then_they_do_not_arrive(pair: Pair) -> None:
    pair.write(bytes(MEBIBYTE))
    pair.do(pair.near.transport.abort)
    let_pass(pair.world, 30)
    assert len(pair.far.received) < MEBIBYTE
    assert isinstance(pair.far.error, ConnectionResetError)
    assert pair.near.events[-1] == "lost"


def test_kill_when_a_connection_is_open_then_the_peer_is_informed(pair: Pair) -> None:
    pair.client.kill()
    let_pass(pair.world, 1)
    assert pair.far.events[-1] == "lost"


def test_power_off_when_a_connection_is_open_then_the_peer_learns_nothing_until_an_answer(pair: Pair) -> None:
    pair.server.power_off()
    pair.write(b"into the void")
    let_pass(pair.world, 100)
    assert pair.near.events == ["made"]
    pair.server.start(_forever)
    pair.write(b"again")
    let_pass(pair.world, 1)
    assert isinstance(pair.near.error, ConnectionResetError)


def test_connect_when_the_node_refuses_for_a_while_then_it_is_refused_so_long(pair: Pair) -> None:
    pair.world.network.unwilling["server"] = (pair.world.now + 5, True)
    errors = _connect_errors(pair.world, "second")
    let_pass(pair.world, 1)
    assert [type(error) for error in errors] == [ConnectionRefusedError]
    let_pass(pair.world, 5)
    assert _connect_errors(pair.world, "third") == []
    let_pass(pair.world, 1)
    assert pair.far.events == ["made", "made"]


def test_connect_when_the_node_accepts_and_closes_then_the_connection_ends(pair: Pair) -> None:
    pair.world.network.unwilling["server"] = (pair.world.now + 5, False)
    recorder = Recorder(pair.world)
    pair.client.loop.create_task(pair.client.loop.create_connection(lambda: recorder, "server", PORT))
    let_pass(pair.world, 1)
    assert recorder.events == ["made", "eof", "lost"]
    assert pair.far.events == ["made"]


def test_silence_when_one_chunk_is_left_then_nothing_behind_it_arrives(pair: Pair) -> None:
    pair.near.transport.chunks_left = 1
    pair.write(b"last")
    let_pass(pair.world, 1)
    pair.write(b"lost")
    pair.do(pair.near.transport.close)
    let_pass(pair.world, 600)
    assert b"last".startswith(pair.far.received)
    assert len(pair.far.received) > 0
    assert pair.far.events == ["made"]


def test_slowness_when_set_then_delays_grow_by_it(world: World) -> None:
    usual = max(world.network.delay() for _ in range(1000))
    world.network.slowness = 100
    assert max(world.network.delay() for _ in range(1000)) > 10 * usual


async def _forever(node: Node) -> None:
    await node.loop.create_future()


def _connect_errors(world: World, name: str = "client") -> list[Exception]:
    """Start a client that connects, and return the list of its errors."""
    errors: list[Exception] = []

    async def program(node: Node) -> None:
        try:
            await node.loop.create_connection(lambda: Recorder(world), "server", PORT)
        except OSError as error:
            errors.append(error)

    Node(world, name).start(program)
    return errors

"""The first frame of a client, and the hand-over of its socket to a relay."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from interpulse.proxy.binary_server import FirstFrame, Greeting, GreetingContext
from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.proxy_config import ProxyConfig
from interpulse.proxy.relay import RelayEnd
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from tests.support import commands
from tests.support.waiting import eventually

FRAME = commands.PING


@pytest.mark.parametrize("rest", [b"", b"x", commands.PONG])
def test_first_frame_when_it_comes_byte_by_byte_then_whole_with_what_is_behind_it(rest: bytes) -> None:
    cut = FirstFrame()
    *before, last = (FRAME[index : index + 1] for index in range(len(FRAME)))
    assert [cut.feed(octet) for octet in before] == [None] * len(before)
    assert cut.feed(last + rest) == (FRAME, rest)


def test_first_frame_when_it_is_too_large_then_refused_by_its_size() -> None:
    with pytest.raises(RemoteProtocolError, match="the limit is"):
        FirstFrame().feed((128 * 1024).to_bytes(4, "big"))


class Socket(asyncio.Transport):
    """One that says with every write that it is full, if it has a protocol to say it to."""

    def __init__(self, full: asyncio.BaseProtocol | None = None) -> None:
        super().__init__()
        self.written = bytearray()
        self.reading = True
        self._full = full

    def write(self, data: Any) -> None:
        self.written += data
        if isinstance(self._full, RelayEnd):
            self._full.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...


class DialerOfFullBrokers:
    def __init__(self) -> None:
        self.broker: Socket

    async def connect(self, place: str, protocol: RelayEnd) -> None:
        self.broker = Socket(full=protocol)
        protocol.connection_made(self.broker)


class DialerOfLostBrokers:
    """Brokers that hang up as soon as they are connected to."""

    def __init__(self) -> None:
        self.relay: Any = None

    async def connect(self, place: str, protocol: RelayEnd) -> None:
        self.relay = cast("Any", protocol)._relay
        protocol.connection_made(Socket())
        protocol.connection_lost(None)


def greeted(dialer: object) -> tuple[Socket, list[Greeting], Greeting]:
    """A client that has named a broker, the connections that were lost, and its own."""
    unused = cast("Any", None)
    context = GreetingContext(unused, unused, cast("Any", dialer), unused, ProxyMeter(), ProxyConfig(), None)
    client, lost = Socket(), list[Greeting]()
    greeting = Greeting(context, lambda connection: True, lost.append)
    greeting.connection_made(client)
    connect = pb.CommandConnect(client_version="raw", protocol_version=21, proxy_to_broker_url="broker:6650")
    greeting.data_received(commands.encode(connect) + b"rest")
    return client, lost, greeting


async def test_client_when_its_broker_is_full_from_the_first_frame_then_not_read() -> None:
    dialer = DialerOfFullBrokers()
    client, lost, greeting = greeted(dialer)
    await eventually(lambda: hasattr(dialer, "broker") and dialer.broker.written.endswith(b"rest"))
    await asyncio.sleep(0)
    assert not client.reading
    relay = cast("Any", greeting)._holder
    relay.broker.resume_writing()
    assert client.reading
    for end in (relay.client, relay.broker):
        end.connection_lost(None)
    assert lost == [greeting]


async def test_client_when_its_broker_hangs_up_then_gets_an_error_and_no_timer_is_left() -> None:
    dialer = DialerOfLostBrokers()
    client, lost, greeting = greeted(dialer)
    await eventually(lambda: b"Target broker isn't available." in client.written)
    assert dialer.relay._timer.cancelled()
    greeting.connection_lost(None)
    assert lost == [greeting]


def test_connection_to_a_broker_is_pinged_as_often_as_those_of_clients() -> None:
    """Otherwise lookups wait for a broker that is gone without a word."""
    unused = cast("Any", None)
    config = ProxyConfig(keep_alive_interval_seconds=2)
    context = GreetingContext(unused, unused, unused, unused, ProxyMeter(), config, None)
    assert context.client_config(None).keep_alive_interval_ms == 2000

"""Two sockets joined by a relay, seen from both ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from interpulse.proxy.meter import ProxyMeter
from interpulse.proxy.relay import Relay
from tests.support.waiting import eventually

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Joined:
    """The client's and the broker's end, and what the relay says of itself."""

    client: Stream
    broker: Stream
    relay: Relay
    meter: ProxyMeter
    lost: list[bool] = field(default_factory=list)


@asynccontextmanager
async def joined(idle_seconds: float = 60) -> AsyncIterator[Joined]:
    loop = asyncio.get_running_loop()
    meter, lost = ProxyMeter(), list[bool]()
    relay = Relay(meter, idle_seconds, lambda: lost.append(True))
    accepted: asyncio.Queue[Stream] = asyncio.Queue()
    broker_server = await asyncio.start_server(lambda *ends: accepted.put_nowait(ends), "127.0.0.1", 0)
    await loop.create_connection(lambda: relay.broker, *broker_server.sockets[0].getsockname())
    proxy_server = await loop.create_server(lambda: relay.client, "127.0.0.1", 0)
    client = await asyncio.open_connection(*proxy_server.sockets[0].getsockname())
    await eventually(lambda: relay.client.transport)
    broker = await accepted.get()
    try:
        yield Joined(client, broker, relay, meter, lost)
    finally:
        for _, writer in (client, broker):
            writer.close()
        relay.close(0)
        await eventually(lambda: lost)
        broker_server.close()
        proxy_server.close()


async def test_bytes_when_they_come_then_go_both_ways_and_are_counted() -> None:
    async with joined() as ends:
        ends.client[1].write(b"question")
        assert await ends.broker[0].readexactly(8) == b"question"
        ends.broker[1].write(b"answer")
        assert await ends.client[0].readexactly(6) == b"answer"
        assert ends.meter.binary_bytes == 14


@pytest.mark.parametrize("deaf", ["client", "broker"])
async def test_reader_when_it_stops_then_the_other_side_is_not_read_any_further(deaf: str) -> None:
    async with joined() as ends:
        (reader, _), (_, writer) = (ends.client, ends.broker) if deaf == "client" else (ends.broker, ends.client)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        total = 64 * 1024 * 1024
        writer.write(bytes(total))
        source = ends.relay.broker if deaf == "client" else ends.relay.client
        await eventually(lambda: source.transport and not source.transport.is_reading())
        assert ends.meter.binary_bytes < total // 2
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await reader.readexactly(total)) == total


async def test_half_when_it_is_closed_then_the_other_half_goes_on() -> None:
    async with joined() as ends:
        ends.client[1].write(b"last question")
        ends.client[1].write_eof()
        assert await ends.broker[0].read() == b"last question"
        ends.broker[1].write(b"answer")
        assert await ends.client[0].readexactly(6) == b"answer"
        ends.broker[1].close()
        assert await ends.client[0].read() == b""
        await eventually(lambda: ends.lost)


async def test_end_when_it_is_gone_then_the_other_gets_what_was_read_and_is_closed() -> None:
    async with joined() as ends:
        ends.broker[1].write(bytes(1_000_000))
        await ends.broker[1].drain()
        ends.broker[1].close()
        assert len(await ends.client[0].read()) == 1_000_000
        ends.client[1].close()
        await eventually(lambda: ends.lost)


@pytest.mark.parametrize("deadlines", [(0.05, 3600), (3600, 0.05)])
async def test_end_when_it_is_closed_twice_then_the_sooner_deadline_holds(deadlines: tuple[float, float]) -> None:
    async with joined() as ends:
        ends.client[0]._transport.pause_reading()  # type: ignore[attr-defined]
        ends.broker[1].write(bytes(64 * 1024 * 1024))
        await eventually(lambda: ends.relay.broker.transport and not ends.relay.broker.transport.is_reading())
        for seconds in deadlines:
            ends.relay.client.close(seconds)
        await eventually(lambda: ends.relay.client.transport is None)


async def test_relay_when_nothing_moves_then_closed() -> None:
    async with joined(idle_seconds=0.05) as ends:
        assert await ends.client[0].read() == b""
        assert await ends.broker[0].read() == b""
        await eventually(lambda: ends.lost)
    assert ends.lost == [True]

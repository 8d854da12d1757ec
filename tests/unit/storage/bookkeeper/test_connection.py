"""One connection to a bookie, on the event loops that brokers run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from interpulse.storage.bookkeeper.bookie_addresses import Address
from interpulse.storage.bookkeeper.connection import BookieConnection, ConnectionConfig
from interpulse.storage.bookkeeper.errors import Code
from interpulse.storage.bookkeeper.packets import Digest, DigestType
from interpulse.storage.bookkeeper.protocol import add_frame
from tests.support.scripted_bookie import ScriptedBookie

DIGEST = Digest(DigestType.CRC32C)
FRAME = add_frame(DIGEST.master_key, DIGEST.seal(7, 0, -1, 5, b"hello"))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_connection_when_on_any_event_loop_then_adds_and_reads(
    run: Callable[[Coroutine[object, object, None]], None],
) -> None:
    async def talk() -> None:
        bookie = ScriptedBookie("b")
        await bookie.start()
        connection = await BookieConnection.open(Address("127.0.0.1", bookie.port), ConnectionConfig())
        assert await connection.add_until_taken(7, 0, FRAME) == Code.OK
        (packet,) = (await connection.read(7, 0)).packets
        assert DIGEST.open(packet, 7, 0).payload == b"hello"
        assert (await connection.read(7, 1)).code == Code.NO_ENTRY
        await bookie.kill()
        await connection.lost
        assert (await connection.read(7, 0)).code == Code.CONNECTION_LOST
        assert await connection.add_until_taken(7, 1, FRAME) == Code.CONNECTION_LOST

    run(talk())


async def test_connection_when_it_ends_then_everything_unanswered_is_told_once() -> None:
    bookie = ScriptedBookie("b")
    await bookie.start()
    bookie.silent = True
    config = ConnectionConfig(window_entries=3)
    connection = await BookieConnection.open(Address("127.0.0.1", bookie.port), config)
    told: list[tuple[int, int]] = []
    for entry_id in range(6):  # three are sent, three wait
        connection.add(7, entry_id, FRAME, lambda entry_id, code: told.append((entry_id, code)))
    reading = asyncio.create_task(connection.read(7, 0))
    await asyncio.sleep(0)
    connection.end("enough")
    connection.end("again")
    assert (await reading).code == Code.CONNECTION_LOST
    assert told == [(entry_id, Code.CONNECTION_LOST) for entry_id in range(6)]
    await bookie.kill()


async def test_connection_when_what_comes_is_no_answer_then_ended_with_the_reason() -> None:
    async def talk_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk_http, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await BookieConnection.open(Address("127.0.0.1", port), ConnectionConfig())
    assert (await connection.read(7, 0)).code == Code.CONNECTION_LOST
    assert "is this a bookie?" in await connection.lost
    server.close()
    await server.wait_closed()

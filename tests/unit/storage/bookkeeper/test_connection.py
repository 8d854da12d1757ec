"""One connection to a bookie, on the event loops that brokers run on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import pytest
import uvloop

from interpulse.storage.bookkeeper.connection import BookieConnection, ConnectionConfig
from interpulse.storage.bookkeeper.errors import Code
from interpulse.storage.bookkeeper.packets import Digest, DigestType
from interpulse.storage.bookkeeper.protocol import add_frame
from interpulse.storage.bookkeeper.records import Address
from tests.support.scripted_bookie import ScriptedBookie
from tests.support.waiting import eventually

DIGEST = Digest(DigestType.CRC32C)
FRAME = add_frame(DIGEST.master_key, DIGEST.seal(7, 0, -1, 5, b"hello"))


def frames(ledger_id: int, entry_ids: Sequence[int]) -> list[bytes]:
    return [add_frame(DIGEST.master_key, DIGEST.seal(ledger_id, each, -1, 5, b"hello")) for each in entry_ids]


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


async def test_connection_when_it_ends_then_every_open_request_fails_once() -> None:
    bookie = ScriptedBookie("b")
    await bookie.start()
    bookie.silent = True
    config = ConnectionConfig(window_entries=3)
    connection = await BookieConnection.open(Address("127.0.0.1", bookie.port), config)
    told: list[tuple[int, int, int]] = []
    connection.add(7, range(2), [FRAME] * 2, lambda *what: told.append(what))
    connection.add(7, range(2, 6), [FRAME] * 4, lambda *what: told.append(what))  # one is sent, three wait
    reading = asyncio.create_task(connection.read(7, 0))
    await asyncio.sleep(0)
    connection.end("enough")
    connection.end("again")
    assert (await reading).code == Code.CONNECTION_LOST
    assert told == [(entry_id, 1, Code.CONNECTION_LOST) for entry_id in range(6)]
    connection.add(7, [6, 8], [FRAME] * 2, lambda *what: told.append(what))
    await asyncio.sleep(0)
    assert told[6:] == [(6, 1, Code.CONNECTION_LOST), (8, 1, Code.CONNECTION_LOST)]
    await bookie.kill()


async def test_connection_when_it_ends_during_a_callback_then_requests_fail_once() -> None:
    bookie = ScriptedBookie("b")
    await bookie.start()
    bookie.refuse = lambda request: Code.OK if request.entry_id < 2 else Code.READ_ONLY
    connection = await BookieConnection.open(Address("127.0.0.1", bookie.port), ConnectionConfig())
    told: list[int] = []

    def end(first: int, count: int, code: int) -> None:
        told.extend(range(first, first + count))
        connection.end("enough")

    connection.add(7, range(6), frames(7, range(6)), end)
    await connection.lost
    assert sorted(told) == list(range(6))
    await bookie.kill()


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (ConnectionConfig(window_entries=7), 7),
        (ConnectionConfig(window_bytes=5 * len(FRAME)), 5),
        (ConnectionConfig(window_bytes=1), 1),
    ],
    ids=["entries", "bytes", "one is larger than all"],
)
async def test_run_when_larger_than_the_window_then_sent_in_parts_as_answers_come(
    config: ConnectionConfig, most: int
) -> None:
    bookie = ScriptedBookie("b")
    await bookie.start()
    bookie.mute = True
    connection = await BookieConnection.open(Address("127.0.0.1", bookie.port), config)
    stored: list[int] = []

    def hear(first: int, count: int, code: int) -> None:
        assert code == Code.OK
        stored.extend(range(first, first + count))

    connection.add(7, range(30), frames(7, range(30)), hear)
    connection.add(8, [30, 32], frames(8, [30, 32]), hear)
    await eventually(lambda: len(bookie.requests) == most)
    bookie.go_on()
    await eventually(lambda: len(stored) == 32)
    assert stored == [*range(30), 30, 32]
    assert [each.entry_id for each in bookie.requests[:30]] == list(range(30))
    await bookie.kill()


async def test_connection_when_bytes_are_no_answer_then_closed_with_the_reason() -> None:
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

"""Limits of the web service: each at the limit and one above, and clients that keep the broker waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall
from interpulse.broker.rest.http.call import Answer
from interpulse.broker.rest.server import RestServer
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.waiting import SECONDS_MAX, eventually

LINE = b"GET /admin/v2/clusters HTTP/1.1\r\n"
OVERVIEW = LINE + b"Host: localhost\r\n\r\n"
FIELDS_OF_ALL = len("Host") + len("localhost")
IDLE_MS = 200
BODY_MAX = 1024 * 1024


async def dial(broker: RestBroker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(broker.web_url)
    return await asyncio.open_connection(address.hostname, address.port)


async def status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    """Of the answer to one request."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    [size] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    await reader.readexactly(size)
    return int(head.split()[1])


async def asked(broker: RestBroker, request: bytes) -> int:
    reader, writer = await dial(broker)
    try:
        return await status(reader, writer, request)
    finally:
        writer.close()


def header_of(size: int) -> bytes:
    """A request whose header fields have so many bytes."""
    return LINE + b"Host: localhost\r\nX: " + b"x" * (size - FIELDS_OF_ALL - len("X")) + b"\r\n\r\n"


def path_of(size: int) -> bytes:
    return b"GET " + b"/admin/v2/clusters?a=".ljust(size, b"a") + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"


def body_of(size: int) -> bytes:
    head = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size
    return head + b"x" * size


def chunked_body_of(size: int) -> bytes:
    head = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"


NO_JSON = 400
SIZES: list[Any] = [
    pytest.param({}, header_of, 8192, 200, 431, id="header, as in Pulsar"),
    pytest.param({"http_max_request_header_size": 2000}, header_of, 2000, 200, 431, id="httpMaxRequestHeaderSize"),
    pytest.param({}, path_of, 8190, 200, 414, id="path, as in Pulsar"),
    pytest.param({"http_max_request_header_size": 2000}, path_of, 1998, 200, 414, id="path"),
    pytest.param({}, body_of, BODY_MAX, NO_JSON, 413, id="body"),
    pytest.param({"http_max_request_size": 5}, body_of, 5, NO_JSON, 413, id="httpMaxRequestSize"),
    pytest.param({"http_max_request_size": 5}, chunked_body_of, 5, NO_JSON, 413, id="body in chunks"),
]


@pytest.mark.parametrize(("settings", "request_of", "limit", "at", "above"), SIZES)
async def test_request_when_as_large_as_allowed_then_read_and_one_byte_above_refused(
    settings: dict[str, int], request_of: Any, limit: int, at: int, above: int
) -> None:
    async with rest_broker(BrokerConfig(**settings)) as broker:  # type: ignore[arg-type]
        assert await asked(broker, request_of(limit)) == at
        assert await asked(broker, request_of(limit + 1)) == above


async def test_connections_when_at_the_limit_then_one_above_is_disconnected_until_one_ends() -> None:
    async with rest_broker(BrokerConfig(max_http_server_connections=2)) as broker:
        inside = [await dial(broker) for _ in range(2)]
        assert [await status(*each, OVERVIEW) for each in inside] == [200, 200]
        assert await hung_up(broker)
        inside.pop()[1].close()
        await eventually(lambda: broker.app._sockets.open == 1)
        inside.append(await dial(broker))
        assert await status(*inside[-1], OVERVIEW) == 200
        for _, writer in inside:
            writer.close()


async def hung_up(broker: RestBroker) -> bool:
    """Whether a new connection is ended without an answer."""
    reader, writer = await dial(broker)
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True
    finally:
        writer.close()


async def test_requests_when_there_are_more_than_allowed_in_a_second_then_the_next_is_refused() -> None:
    config = BrokerConfig(http_requests_limit_enabled=True, http_requests_max_per_second=3.0)
    async with rest_broker(config) as broker:
        reader, writer = await dial(broker)
        statuses = [await status(reader, writer, OVERVIEW) for _ in range(20)]
        writer.close()
    assert statuses[:3] == [200] * 3
    assert 429 in statuses


async def test_requests_when_they_are_not_limited_then_the_rate_does_nothing() -> None:
    async with rest_broker(BrokerConfig(http_requests_max_per_second=1.0)) as broker:
        reader, writer = await dial(broker)
        assert {await status(reader, writer, OVERVIEW) for _ in range(5)} == {200}
        writer.close()


class Held:
    """Calls that do not end before they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrived = self.under_way = 0
        self.go = asyncio.Event()
        answer, serve = AdminCalls.answer, RestServer._serve

        async def arrived(server: RestServer, request: web.BaseRequest) -> web.StreamResponse:
            self.arrived += 1
            return await serve(server, request)

        async def held(calls: AdminCalls, call: SentCall) -> Answer:
            self.under_way += 1
            await self.go.wait()
            self.under_way -= 1
            return await answer(calls, call)

        monkeypatch.setattr(AdminCalls, "answer", held)
        monkeypatch.setattr(RestServer, "_serve", arrived)


async def test_calls_when_as_many_are_under_way_as_allowed_then_one_more_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Held(monkeypatch)
    async with rest_broker(BrokerConfig(max_concurrent_http_requests=2)) as broker:
        inside = [asyncio.create_task(asked(broker, OVERVIEW)) for _ in range(2)]
        await eventually(lambda: held.under_way == 2)
        above = asyncio.create_task(asked(broker, OVERVIEW))
        await eventually(lambda: held.arrived == 3)
        assert held.under_way == 2
        held.go.set()
        assert await asyncio.gather(*inside, above) == [200] * 3


async def test_calls_when_turns_are_free_then_no_timer_is_set_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rest_broker(BrokerConfig()) as broker:
        reader, writer = await dial(broker)
        assert await status(reader, writer, OVERVIEW) == 200
        asked_for = Mock(wraps=asyncio.timeout)
        monkeypatch.setattr(asyncio, "timeout", asked_for)
        assert {await status(reader, writer, OVERVIEW) for _ in range(20)} == {200}
        assert asked_for.call_count == 0
        writer.close()


async def test_calls_when_none_under_way_ends_in_time_then_one_more_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = Held(monkeypatch)
    config = BrokerConfig(max_concurrent_http_requests=2, http_server_idle_timeout=IDLE_MS)
    async with rest_broker(config) as broker:
        inside = [asyncio.create_task(asked(broker, OVERVIEW)) for _ in range(2)]
        await eventually(lambda: held.under_way == 2)
        assert await asked(broker, OVERVIEW) == 503
        held.go.set()
        assert await asyncio.gather(*inside) == [200] * 2
        assert await asked(broker, OVERVIEW) == 200


@pytest.fixture
async def impatient() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(http_server_idle_timeout=IDLE_MS)) as broker:
        yield broker


HALF = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345"


@pytest.mark.parametrize("said", [b"", b"GET /admin", OVERVIEW[:-2]], ids=["nothing", "half a line", "half a header"])
async def test_client_when_no_request_comes_then_hung_up_on(impatient: RestBroker, said: bytes) -> None:
    reader, writer = await dial(impatient)
    writer.write(said)
    assert await ended(reader)
    writer.close()


async def test_client_when_it_sends_a_byte_now_and_then_then_hung_up_on(impatient: RestBroker) -> None:
    reader, writer = await dial(impatient)
    dripping = asyncio.create_task(drip(writer))
    assert await ended(reader)
    dripping.cancel()
    writer.close()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(LINE + b"X: ")
    while True:
        writer.write(b"x")
        await asyncio.sleep(IDLE_MS / 10_000)


async def test_client_when_its_body_does_not_come_then_is_told_and_nothing_is_done(impatient: RestBroker) -> None:
    assert await asked(impatient, HALF) == 408
    assert sorted(await impatient.app.context.tenants.list()) == ["public", "pulsar"]


async def test_client_when_it_is_silent_after_an_answer_then_hung_up_on(impatient: RestBroker) -> None:
    reader, writer = await dial(impatient)
    assert await status(reader, writer, OVERVIEW) == 200
    assert await ended(reader)
    writer.close()


async def test_client_when_it_reads_no_answer_then_hung_up_on(impatient: RestBroker) -> None:
    _, writer = await dial(impatient)
    metrics = b"GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(2000):
        writer.write(metrics)
    await eventually(lambda: impatient.app._sockets.open == 0)
    writer.transport.abort()


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), SECONDS_MAX) == b""
    except ConnectionResetError:
        return True

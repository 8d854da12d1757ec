"""The smallest HTTP client for tests of the REST front end: paths go out exactly as they are written."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import SECONDS_MAX


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return str(self.json["reason"])


async def call(web_url: str, method: str, path: str, body: Any = None) -> Reply:
    """One call; ``body`` is sent as JSON, bytes as they are. Paths are below ``/admin/v2/`` or begin with a slash."""
    return await asyncio.to_thread(_call, web_url, method, path, body)


async def call_real(web_url: str, method: str, path: str, body: Any = None, *, expected: Collection[int]) -> Reply:
    """As `call`; again while a real Pulsar says 5xx unexpectedly, as it may while a bundle is on its way."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS_MAX
    while True:
        reply = await call(web_url, method, path, body)
        if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in expected or loop.time() > deadline:
            return reply
        await asyncio.sleep(0.2)


def _call(web_url: str, method: str, path: str, body: Any) -> Reply:
    address = urlsplit(web_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    try:
        sent = body if isinstance(body, bytes | None) else json.dumps(body)
        headers = {"Content-Type": "application/json"} if sent is not None else {}
        connection.request(method, path if path.startswith("/") else f"/admin/v2/{path}", body=sent, headers=headers)
        answer = connection.getresponse()
        return Reply(answer.status, answer.read(), dict(answer.getheaders()))
    finally:
        connection.close()

"""HTTP of clients over the simulated network."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from interpulse.client.transport.http_session import HttpSession
from interpulse.proxy.web_server import WebServer


class SimulatedConnector(aiohttp.BaseConnector):
    """Opens the connections of aiohttp's client with the event loop of its node."""

    async def _create_connection(
        self,
        req: Any,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the signature is aiohttp's
    ) -> ResponseHandler:
        try:
            async with asyncio.timeout(timeout.sock_connect):
                _, protocol = await self._loop.create_connection(self._factory, req.url.host, req.url.port)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {req.url}") from error
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol


def use_simulated_network() -> None:
    """Let every HTTP session of this process use it, and every proxy."""
    HttpSession.new_connector = lambda self: SimulatedConnector()  # type: ignore[method-assign]
    WebServer.new_connector = lambda self: SimulatedConnector()  # type: ignore[method-assign]

"""HTTP clients of a simulated world: aiohttp over the connections of its network."""

from __future__ import annotations

from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from interpulse.client.transport.http_session import HttpSession


class SimulatedConnector(aiohttp.BaseConnector):
    """The part of aiohttp that opens connections; they come from the running loop."""

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:  # noqa: ASYNC109 - aiohttp passes it
        try:
            _, protocol = await self._loop.create_connection(self._factory, req.url.host, req.url.port)
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol


def install() -> None:
    """Let every HTTP session of this process use the simulated network."""
    HttpSession.new_connector = lambda self: SimulatedConnector()  # type: ignore[method-assign]

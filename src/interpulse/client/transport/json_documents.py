"""JSON documents of servers that are not brokers, such as token issuers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from interpulse.client.tls import KeptContext, TlsOptions
from interpulse.model.errors import NotConnected, UnknownError

_BYTES_MAX: Final = 1024 * 1024


class JsonDocuments:
    """Client for JSON documents. It keeps no connection open between requests and follows no redirects."""

    def __init__(
        self, *, tls: TlsOptions | None = None, connect_timeout_ms: int = 10_000, timeout_ms: int = 30_000
    ) -> None:
        self._context = KeptContext(tls or TlsOptions())
        self._timeout = aiohttp.ClientTimeout(total=timeout_ms / 1000, sock_connect=connect_timeout_ms / 1000)

    async def get(self, url: str) -> dict[str, Any]:
        """Return a document. Raise NotConnected, or UnknownError for an answer that is not a JSON document."""
        status, document = await self._ask("GET", url, None)
        if status != 200:
            raise UnknownError(f"{url} answers {status}")
        return document

    async def post(self, url: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Send a form. Return status and document, which a refusal may have too. Raise NotConnected or UnknownError."""
        return await self._ask("POST", url, form)

    async def _ask(self, method: str, url: str, form: Mapping[str, str] | None) -> tuple[int, dict[str, Any]]:
        context = self._context.current() if url.startswith("https:") else True
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout) as session,
                session.request(
                    method, url, data=form, headers={"Accept": "application/json"}, allow_redirects=False, ssl=context
                ) as answer,
            ):
                content = await answer.content.read(_BYTES_MAX + 1)
                while len(content) <= _BYTES_MAX and (more := await answer.content.read(_BYTES_MAX + 1)):
                    content += more
        except TimeoutError as error:
            raise NotConnected(f"{url} did not answer within {self._timeout.total:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotConnected(f"{url} cannot be reached: {error}") from error
        if len(content) > _BYTES_MAX:
            raise UnknownError(f"{url} answers with more than {_BYTES_MAX} bytes")
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise UnknownError(f"{url} answers {answer.status} with something other than a JSON object")
        return answer.status, document

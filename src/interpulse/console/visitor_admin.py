"""The admin client of the project, whose calls are made in the name of a visitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.client.transport.http_session import HttpSession

__all__ = ["VisitorAdmin"]

_HERE: Final = "http://localhost"


Send = Callable[[str, str, bytes | None, str], Awaitable[HttpAnswer]]
"""Takes method, target, body and content type."""


class _VisitorSession(HttpSession):
    """A session without connections."""

    def __init__(self, send: Send) -> None:
        super().__init__(_HERE)
        self._send_call = send

    async def exchange(self, method: str, target: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        return await self._send_call(method, target, payload, content_type)


class VisitorAdmin(AdminClient):
    """An admin client that makes its calls through ``send``. It needs no closing."""

    def __init__(self, send: Send) -> None:
        self._send_call = send
        super().__init__(_HERE)

    def _new_session(self, web_url: str, **settings: Any) -> HttpSession:
        return _VisitorSession(self._send_call)

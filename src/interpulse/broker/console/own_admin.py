"""The admin client of the project over calls that stay in the process: what it knows of answers, pages need not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from interpulse.broker.rest.http.call import Answer
from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.client.transport.http_session import HttpSession

__all__ = ["OwnAdmin"]

Send = Callable[[str, str, bytes | None, str], Awaitable[Answer]]
"""Method, path with its query, body, content type of the body."""

_HERE: Final = "http://localhost"


class _OwnSession(HttpSession):
    """Opens nothing: refusals are raised as the broker raises them."""

    def __init__(self, send: Send) -> None:
        super().__init__(_HERE)
        self._own_send = send

    async def exchange(self, method: str, target: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        answer = await self._own_send(method, target, payload, content_type)
        text = answer.body.decode(errors="replace")
        return HttpAnswer(answer.status, "", answer.content_type, None, text, answer.body, _one_each(answer.headers))


class OwnAdmin(AdminClient):
    """An admin client whose calls go where ``send`` sends them. It needs no closing."""

    def __init__(self, send: Send) -> None:
        self._own_send = send
        super().__init__(_HERE)

    def _new_session(self, web_url: str, **settings: Any) -> HttpSession:
        return _OwnSession(self._own_send)


def _one_each(headers: Mapping[str, str | tuple[str, ...]]) -> dict[str, str]:
    """Of a header that came several times the first."""
    first = {name: value if isinstance(value, str) else next(iter(value), None) for name, value in headers.items()}
    return {name: value for name, value in first.items() if value is not None}

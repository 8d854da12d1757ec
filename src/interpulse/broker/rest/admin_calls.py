"""Calls of the admin API, whoever brings them: the HTTP server, or the console in the name of its visitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from interpulse.broker.rest.http.authorization_filter import AuthorizationFilter
from interpulse.broker.rest.http.call import Answer, Call, Route
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.http.routing import Router
from interpulse.serving.web_pages import KnownHosts

__all__ = ["AdminCalls", "SentCall", "known_hosts"]


async def _no_body() -> bytes:
    return b""


@dataclass(frozen=True, slots=True)
class SentCall:
    """One call as it was sent."""

    method: str
    raw_path: str
    """With what stands behind the question mark, all of it still encoded."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in any case find their header."""

    common_name: str = ""
    """Of the certificate that the caller showed."""

    tls: bool = False
    content_type: str = ""
    read_body: Callable[[], Awaitable[bytes]] = _no_body
    """Asked only after the call was let through."""

    @property
    def path(self) -> str:
        return self.raw_path.partition("?")[0]


class AdminCalls:
    """Finds the handler of a call, lets it through or not, and asks the handler."""

    def __init__(self, context: RestContext, routes: Iterable[Route]) -> None:
        self._context: Final = context
        self._router: Final = Router(routes)
        self._filter: Final = AuthorizationFilter(context.access, known_hosts(context))

    async def answer(self, sent: SentCall) -> Answer:
        """The handler's answer. Raises PulsarError, MethodNotAllowed, and whatever the handler raises."""
        call = await self._let_through(sent)
        call.body = await sent.read_body()
        return await call.route.handler(call)

    async def check(self, sent: SentCall) -> None:
        """Raise what keeps the call from its handler; the handler is not asked."""
        await self._let_through(sent)

    async def _let_through(self, sent: SentCall) -> Call:
        path, _, query = sent.raw_path.partition("?")
        route, params = self._filter.find(self._router, sent.method, path, sent.headers, sent.common_name)
        call = Call(
            self._context,
            route,
            params,
            dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            content_type=sent.content_type,
            request_headers=sent.headers,
            path=path,
            tls=sent.tls,
            common_name=sent.common_name,
        )
        await self._filter.check(call)
        return call


def known_hosts(context: RestContext) -> KnownHosts | None:
    """The names by which callers may call this broker; None where callers without credentials are refused."""
    config = context.dynamic.config
    anybody_let_in = context.access is None or bool(config.anonymous_user_role)
    return KnownHosts.of(config) if anybody_let_in else None

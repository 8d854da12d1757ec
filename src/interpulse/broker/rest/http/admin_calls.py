"""Calls of the admin API, from the HTTP server, or from the console for its visitor."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote

from interpulse.authentication.authentication import PeerCertificate
from interpulse.broker.access.change_log import note_change
from interpulse.broker.rest.http.authorization_filter import AuthorizationFilter
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_of
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.http.routing import Router
from interpulse.rules.listeners import plan_listeners
from interpulse.serving.web_pages import KnownHosts

logger = logging.getLogger(__name__)

_READING: Final = ("GET", "HEAD", "OPTIONS")
_REFUSED: Final = 400
_UNFORESEEN: Final = 500
_NAMES_SHOWN_MAX: Final = 20
_NAME_SHOWN_MAX: Final = 100

IGNORED_FIELDS_HEADER: Final = "X-Interpulse-Ignored-Fields"
"""The response header that lists the fields of the request body which this broker does not know and ignored."""


def _listed(names: Sequence[str]) -> str:
    """Return names from a client in the form of a header: percent-encoded, and limited in number and length."""
    shown = [quote(name[:_NAME_SHOWN_MAX], safe="") for name in names[:_NAMES_SHOWN_MAX]]
    rest = len(names) - len(shown)
    return ", ".join([*shown, *([f"and {rest} more"] if rest else [])])


async def no_body() -> bytes:
    return b""


class SentCall(NamedTuple):
    """One call as it was sent."""

    method: str
    raw_path: str
    """The path with its query, still encoded."""

    headers: Mapping[str, str] = MappingProxyType({})
    """Names in any case find their header."""

    certificate: PeerCertificate | None = None
    """The one that the caller showed."""

    tls: bool = False
    read_body: Callable[[], Awaitable[bytes]] = no_body
    """Asked only after the call was let through."""

    address: str = ""
    """The address of the caller."""

    @property
    def path(self) -> str:
        return self.raw_path.partition("?")[0]


class AdminCalls:
    """Finds the handler of a call, lets it through or not, and asks the handler. Changes go to the audit log."""

    def __init__(self, context: RestContext, routes: Iterable[Route]) -> None:
        self._context: Final = context
        self._router: Final = Router(routes)
        self._filter: Final = AuthorizationFilter(context.access, known_hosts(context))

    async def answer(self, sent: SentCall) -> Answer:
        """Return the answer of the handler. Raises PulsarError, MethodNotAllowed, and errors of the handler."""
        if sent.method in _READING:
            return await self._answer(await self._call(sent), sent)
        call, status, reason = None, _UNFORESEEN, ""
        try:
            call = await self._call(sent)
            answer = await self._answer(call, sent)
            status, reason = answer.status, answer.body.decode() if answer.status >= _REFUSED else ""
        except Exception as error:
            status, reason = getattr(error, "http_status", _UNFORESEEN), str(error)
            raise
        finally:
            note_change(None if call is None else call.principal, sent.address, sent.method, sent.path, status, reason)
        return answer

    async def check(self, sent: SentCall) -> None:
        """Raise the refusal of the call without calling its handler."""
        await self._filter.check(await self._call(sent))

    async def _answer(self, call: Call, sent: SentCall) -> Answer:
        await self._filter.check(call)
        call.body = await sent.read_body()
        try:
            answer = answer_of(await call.route.handler(call))
        finally:
            if call.ignored_fields:
                logger.warning(
                    "fields of a request ignored method=%s path=%s fields=%s",
                    sent.method,
                    sent.path,
                    _listed(call.ignored_fields),
                )
        if not call.ignored_fields:
            return answer
        return replace(answer, headers={**answer.headers, IGNORED_FIELDS_HEADER: _listed(call.ignored_fields)})

    async def _call(self, sent: SentCall) -> Call:
        """Return the call with its route. Raise NotFound or MethodNotAllowed."""
        path, _, query = sent.raw_path.partition("?")
        route, params = await self._filter.find(self._router, sent.method, path, sent.headers, sent.certificate)
        return Call(
            self._context,
            route,
            params,
            dict(parse_qsl(query, keep_blank_values=True)) if query else {},
            request_headers=sent.headers,
            path=path,
            tls=sent.tls,
            certificate=sent.certificate,
        )


def known_hosts(context: RestContext) -> KnownHosts | None:
    """Return the host names of this broker that callers may use; None if callers without credentials are refused."""
    config = context.dynamic.config
    if context.access is not None and not config.anonymous_user_role:
        return None
    return KnownHosts.of(config, also=plan_listeners(config.advertised_listeners, config.internal_listener_name).hosts)

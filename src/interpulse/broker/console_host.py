"""The console of a broker: its settings, its calls of the admin API, and the facts for its pages."""

from __future__ import annotations

import logging
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http import routing
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall, known_hosts
from interpulse.broker.rest.http.call import Answer
from interpulse.broker.rest.http.context import RestContext
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.console.front_end import ConsoleFrontEnd
from interpulse.console.host import (
    MISSING_EXTRA,
    TURNED_OFF,
    Availability,
    Host,
    MethodNotAllowed,
    VisitorCall,
    extra_installed,
)
from interpulse.serving.listening import is_loopback

if TYPE_CHECKING:
    from interpulse.console.broker_facts import BrokerFacts

_logger = logging.getLogger(__name__)

_PUBLIC: Final = (
    "the console is off: this broker listens for other machines and lets in callers without credentials; set "
    "authenticationEnabled=true and no anonymousUserRole, or consoleEnabled=true to show it to everyone"
)


def console_of_broker(context: RestContext, calls: AdminCalls) -> ConsoleFrontEnd:
    """Return the console of this broker, on or off by its settings."""
    dynamic = context.dynamic
    available = availability(dynamic.config, installed=extra_installed())
    if available.reason == MISSING_EXTRA and dynamic.config.console_enabled == "true":
        _logger.warning("no console reason=%s", MISSING_EXTRA)
    elif available.reason == MISSING_EXTRA:
        _logger.info("no console reason=%s", MISSING_EXTRA)
    host = Host(
        _BrokerApi(calls),
        context.namespaces.local_cluster,
        known_hosts(context),
        lambda: dynamic.config.console_read_only,
        lambda: dynamic.config.console_messages_enabled,
        context.access,
        cache(partial(_facts, context)),
        context.failed_authentications,
    )
    return ConsoleFrontEnd(host, available)


def availability(config: BrokerConfig, *, installed: bool) -> Availability:
    """Return the availability of the console by its settings; ``installed`` is True if its extra is."""
    asks_everybody = config.authentication_enabled and not config.anonymous_user_role
    if config.console_enabled == "false":
        return Availability(False, TURNED_OFF)
    if config.console_enabled == "auto" and not (is_loopback(config.bind_address) or asks_everybody):
        return Availability(False, _PUBLIC)
    return Availability(True) if installed else Availability(False, MISSING_EXTRA)


def _facts(context: RestContext) -> BrokerFacts:
    from interpulse.broker.console_facts import ConsoleFacts  # loaded with the first visit, like all modules of pages

    return ConsoleFacts(context)


class _BrokerApi:
    """Calls of the admin API inside the process, through the filter of all calls."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def answer(self, call: VisitorCall) -> HttpAnswer:
        try:
            answer = await self._calls.answer(_sent(call))
        except routing.MethodNotAllowed as error:
            raise MethodNotAllowed(str(error)) from None
        content = answer.body if answer.parts is None else b"".join([part async for part in answer.parts])
        headers = _first_values(answer)
        text = content.decode(errors="replace")
        return HttpAnswer(answer.status, "", answer.content_type, headers.get("Location"), text, content, headers)

    async def check(self, call: VisitorCall) -> None:
        try:
            await self._calls.check(_sent(call))
        except routing.MethodNotAllowed as error:
            raise MethodNotAllowed(str(error)) from None


def _sent(call: VisitorCall) -> SentCall:
    async def read_body() -> bytes:
        return call.body or b""

    visitor = call.visitor
    return SentCall(
        call.method,
        call.target,
        visitor.headers,
        visitor.certificate,
        visitor.tls,
        read_body,
        visitor.address,
    )


def _first_values(answer: Answer) -> dict[str, str]:
    headers = answer.headers.items()
    first = {name: value if isinstance(value, str) else next(iter(value), None) for name, value in headers}
    return {name: value for name, value in first.items() if value is not None}

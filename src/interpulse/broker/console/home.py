"""What a console shows: the broker it runs in, or another cluster that it asks over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from interpulse.broker.access.setup import Access
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall, known_hosts
from interpulse.broker.rest.http.call import Answer
from interpulse.broker.rest.http.context import RestContext
from interpulse.serving.failed_authentications import FailedAuthentications
from interpulse.serving.web_pages import KnownHosts

__all__ = ["Calls", "Home"]


class Calls(Protocol):
    """Makes calls of the admin API; see `AdminCalls`."""

    async def answer(self, sent: SentCall) -> Answer:
        """The answer; raises PulsarError."""
        ...

    async def check(self, sent: SentCall) -> None:
        """Raise what keeps the call from being made, as far as that can be known without making it."""
        ...


@dataclass(frozen=True, slots=True)
class Home:
    """See the module."""

    calls: Calls
    cluster: str
    hosts: KnownHosts | None
    """The names by which the console may be called; None: whoever calls has to bring credentials."""

    read_only: Callable[[], bool]
    messages_shown: Callable[[], bool]
    access: Access | None = None
    """None: visitors bring no credentials of their own."""

    broker: RestContext | None = None
    """The objects below the admin API; None where there is only that API."""

    failed_authentications: FailedAuthentications = field(default_factory=FailedAuthentications)

    @classmethod
    def of_broker(cls, context: RestContext, calls: AdminCalls) -> Home:
        """This broker."""
        dynamic = context.dynamic
        return cls(
            calls,
            context.namespaces.local_cluster,
            known_hosts(context),
            lambda: dynamic.config.console_read_only,
            lambda: dynamic.config.console_messages_enabled,
            context.access,
            context,
            context.failed_authentications,
        )

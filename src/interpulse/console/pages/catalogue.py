"""Every page of the console, in the order of the menu, and every stream of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from interpulse.console.pages import (
    admission,
    broker,
    differences,
    doctor,
    messages,
    overview,
    remote,
    replication,
    schemas,
    subscription,
    topic,
)
from interpulse.console.visit import Model, Visit
from interpulse.console.web.response import EventStream, Response


@dataclass(frozen=True, slots=True)
class Page:
    """A page at ``/console/NAME``, its model at ``/console/NAME.json``, shown by the template ``NAME.html``."""

    name: str
    title: str
    build: Callable[[Visit], Awaitable[Model]]
    """Returns the model. Raises refusals of the admin API."""

    in_menu: bool = True
    template: str = ""
    """Its template where that has another name."""

    takes_forms: bool = False
    """True if the page also reads its query from a form, which may be longer than an address. It changes nothing."""


HOME: Final = "overview"

_PAGES: Final = (
    Page("overview", "Overview", overview.build),
    Page("replication", "Replication", replication.build),
    Page("topic", "Topic", topic.build, in_menu=False),
    Page("messages", "Messages", messages.build, in_menu=False),
    Page("message", "Message", messages.build_message, in_menu=False),
    Page("subscription", "Subscription", subscription.build, in_menu=False),
    Page("schemas", "Schemas", schemas.build, in_menu=False, takes_forms=True),
    Page("door", "Admission", admission.build, template="admission"),
    Page("differences", "Differences", differences.build),
    Page("doctor", "Doctor", doctor.build),
    Page("broker", "Broker", broker.build),
)
PAGES: Final[dict[str, Page]] = {page.name: page for page in _PAGES}

_REMOTE: Final = (
    Page("overview", "Topics", remote.build_overview, template="remote_overview"),
    Page("topic", "Topic", remote.build_topic, in_menu=False, template="remote_topic"),
)
_SHARED: Final = ("messages", "message", "subscription", "schemas", "doctor")
REMOTE_PAGES: Final[dict[str, Page]] = {page.name: page for page in (*_REMOTE, *(PAGES[name] for name in _SHARED))}
"""Pages for a cluster of which there is only the admin API."""

STREAMS: Final[dict[str, Callable[[Visit], Awaitable[EventStream]]]] = {
    "topic-rates": topic.rates,
    "messages/tail": messages.tail,
}
"""Event streams by their path below ``/console``. They raise the errors of pages."""

DOWNLOADS: Final[dict[str, Callable[[Visit], Awaitable[Response]]]] = {
    "messages/export": messages.export,
    "message/content": messages.content,
}
"""Downloads by their path below ``/console``. They raise the errors of pages."""

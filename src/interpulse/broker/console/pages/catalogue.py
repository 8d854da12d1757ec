"""Every page of the console, in the order of the menu, and every stream of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from interpulse.broker.console.pages import door, overview, replication, topic
from interpulse.broker.console.pages.page import Page
from interpulse.broker.console.visit import Visit
from interpulse.broker.console.web.response import EventStream

__all__ = ["HOME", "PAGES", "STREAMS"]

HOME: Final = "overview"

_PAGES: Final = (
    Page("overview", "Overview", overview.build),
    Page("replication", "Replication", replication.build),
    Page("topic", "Topic", topic.build, in_menu=False),
    Page("door", "Door", door.build),
)
PAGES: Final[dict[str, Page]] = {page.name: page for page in _PAGES}

STREAMS: Final[dict[str, Callable[[Visit], Awaitable[EventStream]]]] = {"topic-rates": topic.rates}
"""By their place below ``/console``. Raises what a page would."""

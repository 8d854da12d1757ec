"""The registry, as its loaded topics see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from interpulse.broker.live.read_buffer_limiter import ReadBufferLimiter
from interpulse.broker.metadata.layout import Layout
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataStore
from interpulse.storage.cursors.cursor_store import CursorStore

__all__ = ["HostedTopic", "TopicHost"]


class HostedTopic(Protocol):
    """A topic, as its host sees it."""

    name: TopicName

    async def flush(self) -> None:
        """Store every cursor that changed."""

    async def close(self) -> None:
        """Send clients away, store the cursors, give the log back."""


class TopicHost(Protocol):
    """The registry, as topics see it."""

    @property
    def now_ms(self) -> Callable[[], int]: ...

    @property
    def metadata(self) -> MetadataStore: ...

    @property
    def cursor_store(self) -> CursorStore: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def cluster(self) -> str: ...

    @property
    def replicator_prefix(self) -> str: ...

    @property
    def compaction_permits(self) -> asyncio.Semaphore:
        """Of which every compaction under way holds one."""

    @property
    def read_buffer_limiter(self) -> ReadBufferLimiter: ...

    @property
    def broker_entry_fields(self) -> BrokerEntryFields | None:
        """The broker entry metadata in front of the entries of persistent topics."""

    @property
    def serving(self) -> Callable[[], bool] | None:
        """Whether topics without a log may take entries now; None: always, since the broker is alone."""

    def generate_producer_name(self) -> str: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def call_later(self, wait_ms: int, call: Callable[[], None]) -> None:
        """Call it in the event loop after that time."""

    def cursors_changed(self, topic: HostedTopic) -> None:
        """Call its `flush` soon."""

    def topic_failed(self, topic: HostedTopic) -> None:
        """Unload the topic."""

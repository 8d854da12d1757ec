"""The interface of the registry for its loaded topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from interpulse.broker.committer import Layout
from interpulse.broker.live.shared_reads import ReadBufferLimiter
from interpulse.model.broker_entry_metadata import BrokerEntryFields
from interpulse.model.names import TopicName
from interpulse.storage.api import MetadataStore
from interpulse.storage.cursors import CursorStore


class HostedTopic(Protocol):
    """The interface of a topic for its host."""

    name: TopicName

    async def flush(self) -> None:
        """Store every cursor that changed."""

    async def close(self) -> None:
        """Disconnect clients, store the cursors, close the log."""


class TopicHost(Protocol):
    """The interface of the registry for topics."""

    now_ms: Callable[[], int]
    metadata: MetadataStore
    cursor_store: CursorStore
    layout: Layout
    cluster: str
    replicator_prefix: str
    compaction_permits: asyncio.Semaphore
    """The semaphore of compaction: every run holds one permit."""

    read_buffer_limiter: ReadBufferLimiter
    broker_entry_fields: BrokerEntryFields | None
    """The broker entry metadata in front of the entries of persistent topics."""

    serving: Callable[[], bool] | None
    """Return True while topics without a log may take entries. None: always; the broker is standalone."""

    def generate_producer_name(self) -> str: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...

    def call_later(self, wait_ms: int, call: Callable[[], None]) -> None:
        """Call back in the event loop after this time."""

    def cursors_changed(self, topic: HostedTopic) -> None:
        """Schedule the topic's `flush`."""

    def topic_failed(self, topic: HostedTopic) -> None:
        """Unload the topic."""

"""Changes of the records that decide which topics exist and how they are replicated.

A tool that follows them, such as a replication job, reads everything again only when something has changed. Records of
cursors do not count, which change with every acknowledgement.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.model.errors import ServiceNotReady
from interpulse.storage.api import MetadataStore

_PREFIXES: Final = (
    keys.CLUSTERS,
    keys.CONFIGURATION,
    keys.POLICIES,
    keys.TOPIC_POLICIES,
    keys.PARTITIONED_TOPICS,
)


class MetadataChanges:
    """A count of changes in tokens, which are those of this broker and this run. Watching begins with a question."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._run = secrets.token_hex(4)
        self._number = 0
        self._news = asyncio.Event()
        self._stopping = False
        self._ends: list[Callable[[], None]] = []

    async def after(self, token: str, wait_seconds: float) -> str:
        """Return the present token: as soon as it is another one than ``token``, or after so many seconds.

        Raise ServiceNotReady when the broker stops.
        """
        if not self._ends:
            self._watch()
        try:
            async with asyncio.timeout(wait_seconds):
                while token == self._token and not self._stopping:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # nothing has changed
        if self._stopping:
            raise ServiceNotReady("The broker is shutting down")
        return self._token

    @property
    def _token(self) -> str:
        return f"{self._run}.{self._number}"

    def _watch(self) -> None:
        self._ends = [self._store.watch(prefix, self._count) for prefix in _PREFIXES]
        self._ends.append(self._store.watch(keys.TOPIC_RECORDS, self._count_topic))

    def _count(self, key: str) -> None:
        self._number += 1
        self._news.set()

    def _count_topic(self, key: str) -> None:
        if keys.is_topic_record(key) or key == keys.TOPIC_RECORDS:
            self._count(key)

    def stop_waiting(self) -> None:
        """End the questions that wait, because the broker stops."""
        self._stopping = True
        self._news.set()
        for end in self._ends:
            end()

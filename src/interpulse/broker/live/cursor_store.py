"""The stored cursors of one topic: records below its own in the metadata store.

Writes and deletions of one topic follow each other. After `close` nothing is written any more, so that no cursor of a
deleted topic comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from interpulse.model.names import TopicName, decode_local_name, encode_local_name
from interpulse.storage.api import Delete, MetadataStore, Put

__all__ = ["CursorStore"]


class CursorStore:
    """See the module. All methods raise MetadataError if the store fails."""

    def __init__(self, metadata: MetadataStore, topic: TopicName) -> None:
        self._metadata = metadata
        self._prefix = f"/managed-ledgers/{topic.log_name}"
        self._writing = asyncio.Lock()
        self._closed = False

    async def read_all(self) -> dict[str, bytes]:
        """Every stored record by cursor name."""
        names = await self._metadata.children(self._prefix)
        found = await self._metadata.get_many([f"{self._prefix}/{name}" for name in names])
        start = len(self._prefix) + 1
        return {decode_local_name(key[start:]): stored.value for key, stored in found.items()}

    async def write(self, records: Mapping[str, bytes]) -> None:
        """Store these records together; durable on return."""
        async with self._writing:
            if records and not self._closed:
                await self._metadata.commit([Put(self._key(name), record) for name, record in records.items()])

    async def delete(self, name: str) -> None:
        """Forget one record."""
        async with self._writing:
            if not self._closed:
                await self._metadata.commit([Delete(self._key(name))])

    async def close(self) -> None:
        """Wait for the write under way; later ones do nothing."""
        async with self._writing:
            self._closed = True

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{encode_local_name(name)}"

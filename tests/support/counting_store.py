"""A metadata store in memory that counts its reads."""

from __future__ import annotations

from collections.abc import Sequence

from interpulse.storage.api import Versioned
from tests.support.memory_storage import MemoryMetadataStore


class CountingStore(MemoryMetadataStore):
    """A store that records each read and the number of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.gets: list[str] = []
        self.batches: list[int] = []
        self.lists: list[int] = []

    @property
    def reads(self) -> int:
        """Number of reads of one key or several; lists do not count."""
        return len(self.gets) + len(self.batches)

    @property
    def keys_read(self) -> int:
        """Number of keys in batches and lists."""
        return sum(self.batches) + sum(self.lists)

    def forget(self) -> None:
        """Begin to count at zero again."""
        self.gets.clear()
        self.batches.clear()
        self.lists.clear()

    async def get(self, key: str) -> Versioned | None:
        self.gets.append(key)
        return await super().get(key)

    async def get_many(self, keys: Sequence[str]) -> dict[str, Versioned]:
        self.batches.append(len(keys))
        return await super().get_many(keys)

    async def scan(self, prefix: str, *, after: str = "", limit: int) -> list[tuple[str, Versioned]]:
        found = await super().scan(prefix, after=after, limit=limit)
        self.lists.append(len(found))
        return found

    async def children(self, key: str) -> list[str]:
        names = await super().children(key)
        self.lists.append(len(names))
        return names

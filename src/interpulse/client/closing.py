"""Context managers that close an object at the end of its ``with`` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class AsyncCloses(ABC):
    """Base of objects for ``async with``."""

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Closes(ABC):
    """Base of objects for ``with``."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

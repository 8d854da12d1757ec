"""The names of partitions, and opening all of them or none, for producers and consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from interpulse.model.names import TopicName

__all__ = ["open_all", "partition_names"]


def partition_names(topic: TopicName, partitions: int, first: int = 0) -> list[TopicName]:
    """The topics that hold the messages: the partitions from ``first`` on, or the topic itself."""
    return [topic.partition(index) for index in range(first, partitions)] if partitions else [topic]


class _OfOnePartition(Protocol):
    """A producer or consumer of one partition."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


async def open_all(several: Sequence[_OfOnePartition]) -> None:
    """Open them side by side. If one cannot be opened, or the caller is cancelled, all are closed again."""
    try:
        for outcome in await asyncio.gather(*(each.open() for each in several), return_exceptions=True):
            if outcome is not None:
                raise outcome
    except BaseException:
        await asyncio.gather(*(each.close() for each in several), return_exceptions=True)
        raise

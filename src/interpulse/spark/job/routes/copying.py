"""Copying of a route's entries, as its pipeline sees it: by a streaming query, or without Spark in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CopyFailure(NamedTuple):
    """Reason why nothing is copied, and the monotonic time of the next attempt; None means never."""

    reason: str
    remedy: str
    since_ms: int
    retry_at: float | None


class Copying(Protocol):
    """Copying of one route, which goes on by itself and starts again after a failure."""

    @property
    def failure(self) -> CopyFailure | None:
        """Failure that stops all of it at present."""

    @property
    def was_heard_of(self) -> bool:
        """True once something was copied, or there was nothing to copy."""

    @property
    def has_started(self) -> bool: ...

    async def keep(self, spark: SparkSession, *, is_away: bool = False) -> None:
        """Start it unless it runs. ``is_away``: the target answers for no topic."""

    def note_progress(self) -> None:
        """Record that entries were copied, or that there are none."""

    async def stop(self) -> None: ...

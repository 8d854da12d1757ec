"""Copies that another job or replicator stores on the source: those of entries that were published on the target."""

from __future__ import annotations

from collections.abc import Callable

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.copied_entries import CopiedEntry, first_copy, last_before
from interpulse.client.session import Session
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.writing.broker_target import last_position


class ReverseCopies:
    """Search in one topic-partition of the source. It is needed for resets only."""

    def __init__(self, topic: TopicName, cluster: str, admin: AdminClient, session: Callable[[], Session]) -> None:
        """``cluster`` is the target; ``admin`` and ``session`` are clients of the source."""
        self._topic = topic
        self._cluster = cluster
        self._admin = admin
        self._session = session

    async def first_behind(self, position: Position) -> CopiedEntry | None:
        """Return the first copy behind a position of the source."""
        if not await self._is_copied_back():
            return None
        return await self._first(position, await last_position(self._session(), self._topic))

    async def first_of_those_behind(self, position: Position) -> CopiedEntry | None:
        """Return the first copy of the entries behind a position of the target."""
        if not await self._is_copied_back():
            return None
        end = await last_position(self._session(), self._topic)
        if end.entry < 0:
            return None
        last = await last_before(end, self._probe, lambda copy: copy.source <= position)
        return await self._first(EARLIEST if last is None else last[0], end)

    async def _is_copied_back(self) -> bool:
        shown = (await self._admin.topics.stats(self._topic)).get("replication", {}).get(self._cluster, {})
        return shown.get("inboundConnection") is not None

    async def _probe(self, behind: Position, upto: Position) -> tuple[Position, CopiedEntry] | None:
        copy = await self._first(behind, upto)
        return None if copy is None else (copy.there, copy)

    async def _first(self, behind: Position, upto: Position) -> CopiedEntry | None:
        cluster = self._cluster
        return await first_copy(self._session(), self._topic, behind, upto, lambda copy: copy.origin == cluster)

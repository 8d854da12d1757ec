"""Counterparts of the entries of one topic-partition: which entry of the target is the copy of which of the source."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.copied_entries import CopiedEntry, first_copy
from interpulse.client.session import Session
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import Span, Translation, after, before
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.job.copied_entries import LogPlaces, last_copy_upto
from interpulse.spark.job.rebuilt_runs import rebuild_runs
from interpulse.spark.writing.broker_target import last_position

log = logging.getLogger(__name__)

_PROBE_BYTES: Final = 16 * 1024


class Place(NamedTuple):
    """A position on the source, and one on the target."""

    source: Position
    target: Position


class CopiedTopic(NamedTuple):
    """The counterpart of a topic-partition, and how copies of its entries are recognized there."""

    topic: TopicName
    lane: str
    origin: str

    def has(self, copy: CopiedEntry) -> bool:
        """Return True for a copy by this pipeline, or by another replicator of the same source."""
        return copy.producer == self.lane or copy.origin == self.origin


class CopyMap:
    """Runs of copies, complete behind a place. What is before it is not needed, or has to be read from the target."""

    def __init__(self, copied: CopiedTopic, admin: AdminClient, session: Session, *, bytes_per_second: int) -> None:
        self.runs = PositionRuns()
        self._copied = copied
        self._admin = admin
        self._session = session
        self._bytes_per_second = bytes_per_second
        self._complete_behind: Place | None = None
        self._cleared_count = 0

    def add(self, runs: Iterable[Run]) -> None:
        """Add runs of entries that were just copied. If they contradict others, all have to be read again."""
        try:
            for run in runs:
                self.runs.add(run)
        except ValueError as contradiction:
            log.warning("copies are read again topic=%s reason=%s", self._copied.topic, contradiction)
            self.clear()

    def clear(self) -> None:
        """Forget everything. It is read from the target when it is needed."""
        self.runs = PositionRuns()
        self._complete_behind = None
        self._cleared_count += 1

    def covers(self, lowest: Place) -> bool:
        """Return True if the counterparts of everything behind this place are known."""
        known = self._complete_behind
        return known is not None and known.source <= lowest.source and known.target <= lowest.target

    async def rebuild(self, lowest: Place) -> None:
        """Read from the target what is missing behind a place. Raise refusals of the target."""
        copy = await self._last_copy_upto(lowest.source)
        start = min(lowest.target, EARLIEST if copy is None else copy)
        end = await last_position(self._session, self._copied.topic)
        known = self._complete_behind
        upto = EARLIEST if end.entry < 0 else end if known is None else min(end, known.target)
        recent, cleared_count = self.runs, self._cleared_count
        self.runs = await self._read(start, upto)
        self.add(recent)
        if cleared_count != self._cleared_count:
            return  # what was cleared meanwhile may be missing
        first = next(iter(self.to_source.spans(Span(after(start), LATEST))), None)
        source = lowest.source if first is None else min(lowest.source, before(first.first))
        self._complete_behind = Place(source, start)

    async def _read(self, behind: Position, upto: Position) -> PositionRuns:
        if upto <= behind:
            return PositionRuns()
        session, (topic, *_) = self._session, self._copied
        return await rebuild_runs(
            session, topic, self._copied.has, behind, upto, bytes_per_second=self._bytes_per_second
        )

    def forget(self, lowest: Place) -> None:
        """Forget what is not needed behind a place."""
        if self.covers(lowest):
            self.runs.drop(lowest.source, lowest.target)
            self._complete_behind = lowest

    @property
    def last_source(self) -> Position:
        """Last source entry with a known copy, or the place behind which all are known; EARLIEST if none is."""
        last = self.runs.last
        known = EARLIEST if self._complete_behind is None else self._complete_behind.source
        return known if last is None else max(known, last.source_end)

    @property
    def to_target(self) -> Translation:
        """Translation of positions of the source."""
        return Translation(self.runs.to_target, self.runs.target_of)

    @property
    def to_source(self) -> Translation:
        """Translation of positions of the target."""
        return Translation(self.runs.to_source, self.runs.source_of)

    async def _last_copy_upto(self, source: Position) -> Position | None:
        """Return the position on the target of the last copy of the entries up to ``source``."""
        if source <= EARLIEST:
            return None
        log = LogPlaces.of(await self._admin.topics.internal_stats(self._copied.topic))
        return (await last_copy_upto(log, source, self._first_copy)).there

    async def _first_copy(self, behind: Position, upto: Position) -> CopiedEntry | None:
        session, (topic, *_) = self._session, self._copied
        return await first_copy(session, topic, behind, upto, self._copied.has, buffer_bytes=_PROBE_BYTES)

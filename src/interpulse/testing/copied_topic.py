"""One topic-partition on its way to the other cluster, copied by the code of the replication job without Spark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.model.errors import NotAllowed, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.routes.route_query import sink_options, source_options
from interpulse.spark.lanes import LaneReport
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.source_cursor import SourceCursor
from interpulse.spark.writing.broker_target import BrokerTarget
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.write_options import parse_write_options

log = logging.getLogger(__name__)

_AGAIN_S: Final = 0.1
"""Pause after a failure. What failed may need some time."""


class Clusters(NamedTuple):
    """Sessions with both clusters of a route."""

    source: Session
    target: Session


class Held(NotAllowed):
    """A topic-partition of which the target refuses an entry."""


class CopiedTopic:
    """Copy of one topic-partition in progress. :meth:`run` copies what arrives until it is cancelled."""

    def __init__(self, route: Route, name: str, clusters: Clusters, number: int) -> None:
        """Prepare the copy of a topic-partition that is ready on the target. ``number`` is unique in its route."""
        self.problem = ""
        """Reason why nothing is copied at present; "" if there is none."""
        self._route = route
        self._name = name
        self._clusters = clusters
        self._number = number
        self._reading = parse_read_options(source_options(route), Purpose.STREAM_READ)
        self._writing = parse_write_options(sink_options(route), Purpose.STREAM_WRITE)

    async def run(self) -> None:
        """Copy, and begin again at the cursor of the source after a failure of either cluster."""
        while True:
            try:
                await self._copy()
            except PulsarError as problem:
                if str(problem) != self.problem:
                    log.info("topic is not copied topic=%s reason=%s", self._name, problem)
                self.problem = str(problem)
            await asyncio.sleep(_AGAIN_S)

    async def _copy(self) -> None:
        async with self._source_cursor() as cursor, self._lanes() as writer:
            after = (await cursor.end()).acknowledged or EARLIEST
            reader = EntryReader(
                self._clusters.source,
                TopicName.parse(self._name),
                after=after,
                subscription_prefix=self._reading.subscription_prefix,
                replication_cursor=self._route.cursor,
                reconnect_timeout_ms=None,
            )
            async with reader:
                await reader.open()
                self.problem = ""
                while runs := await reader.read_runs():
                    await writer.copy(self._name, runs)
                    await self._confirm(await writer.finish(), runs[-1].positions[-1], cursor)

    @asynccontextmanager
    async def _source_cursor(self) -> AsyncGenerator[SourceCursor]:
        cursor = SourceCursor(self._clusters.source, TopicName.parse(self._name), self._reading, earliest=True)
        try:
            yield cursor
        finally:
            await cursor.close()

    @asynccontextmanager
    async def _lanes(self) -> AsyncGenerator[LaneWriter]:
        source, target = self._clusters
        states = await asyncio.to_thread(self._route.files.anchors)
        writer = LaneWriter(BrokerTarget(target, self._writing, source=source), self._writing, states, "pair")
        writer.collect_runs()
        try:
            yield writer
        finally:
            await writer.close()

    async def _confirm(self, reports: list[LaneReport], upto: Position, cursor: SourceCursor) -> None:
        """Record what the target holds, first for the exchange of acknowledgements, and then on the source."""
        (report,) = reports
        if report.held is not None:
            raise Held(f"{self._name}: {report.held}")
        await asyncio.to_thread(self._record, report, upto)
        cursor.acknowledge(upto)
        if cursor.acknowledged != upto:  # its connection was lost
            await cursor.end()
            cursor.acknowledge(upto)

    def _record(self, report: LaneReport, upto: Position) -> None:
        files = self._route.files
        if report.runs:
            files.positions.write({self._name: report.runs}, writer=str(self._number))
        copied = upto, report.entries, report.messages, report.bytes
        files.write_live(0, self._number, {self._name: copied})

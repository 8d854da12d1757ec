"""Copying on executors: the ranges of one task, lane by lane, in one event loop."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from interpulse.client.consuming.entry_reader import EntryReader, EntryRun
from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.lanes import LaneReport, LaneState, StreamTask, unpack_sequence
from interpulse.spark.offsets import TopicRange
from interpulse.spark.processes.process_client import in_portal, patiently
from interpulse.spark.reading.fetch import read_ranges, reading_session
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.writing.sink import open_lanes
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire.cursor_promise import REPLICATION_CURSORS, VALID_S


async def copy_in_loop(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
    passed: Mapping[str, Position],
) -> list[LaneReport]:
    """Copy the ranges; return a report of each topic-partition once all receipts are there. Raises the first failure.

    ``passed`` has the positions of the source cursor beyond the beginnings of ranges, as the driver received them.
    Everything happens in the running event loop; `copy_ranges` does the same in the portal's and blocks.
    """
    marks = await _source_marks(source, passed)
    writer = await open_lanes(target, lanes, task, permit=marks.permit)

    async def take(item: TopicRange, arrived: Sequence[EntryRun]) -> None:
        await writer.copy(item.topic, arrived)

    async def refuse(item: TopicRange, reason: str) -> None:
        writer.refuse(item.topic, item.after, item.upto, reason)

    async def admit(item: TopicRange, reader: EntryReader) -> TopicRange:
        mark = min(await marks.of(item.topic, reader.promised_position), item.upto)
        if mark <= item.after:
            return item
        writer.pass_over(item.topic, item.after, mark)
        return item._replace(after=mark)

    try:
        await read_ranges(source, ranges, take, refuse, begin=lambda item: writer.expect(item.topic), admit=admit)
        return await writer.finish()
    finally:
        await writer.close()


copy_ranges = in_portal(copy_in_loop)


async def _source_marks(options: ReadOptions, passed: Mapping[str, Position]) -> SourceMarks:
    """Return the marks of the source. Brokers that keep replication cursors for us promise their positions."""
    cursor = options.predefined_subscription
    if cursor is None or not cursor.startswith(REPLICATION_CURSORS):
        return SourceMarks(passed, None)
    session = await reading_session(options)

    async def ask(topic: str) -> Position:
        async with EntryReader(
            session,
            TopicName.parse(topic),
            after=LATEST,
            subscription_prefix=options.subscription_prefix,
            replication_cursor=cursor,
        ) as reader:
            await reader.open()
            return await reader.promised_position()

    return SourceMarks(passed, lambda topic: patiently(session, lambda: ask(topic)))


class CursorMoved(NotAllowed):
    """A cursor that was moved past entries that wait to be sent."""


class SourceMarks:
    """The marks of all topic-partitions of one task."""

    def __init__(
        self,
        positions: Mapping[str, Position],
        ask: Callable[[str], Awaitable[Position]] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with the driver's positions. ``ask`` returns a position with the broker's promise, if there are any."""
        self._marks = dict(positions)
        self._ask = ask
        self._valid_until: dict[str, float] = {}
        self._now = clock

    async def of(self, topic: str, ask: Callable[[], Awaitable[Position]] | None = None) -> Position:
        """Return the position up to which nothing may be sent. All behind it may be, before the next turn of the loop.

        ``ask`` is the request of an open reader. Raises the source's refusals.
        """
        if self._ask is not None and self._now() >= self._valid_until.get(topic, 0.0):
            asked_at = self._now()
            position = await (ask() if ask is not None else self._ask(topic))
            self._marks[topic] = max(position, self._marks.get(topic, EARLIEST))
            self._valid_until[topic] = asked_at + VALID_S
        return self._marks.get(topic, EARLIEST)

    async def permit(self, topic: str, sequence_id: int) -> None:
        """Check the cursor before the entry with this sequence id is sent. Raises CursorMoved."""
        mark, position = await self.of(topic), unpack_sequence(sequence_id)
        if position <= mark:
            raise CursorMoved(
                f"{topic}: the cursor was moved to {mark} while {position} waited to be sent; what lies behind the "
                f"cursor is copied next"
            )

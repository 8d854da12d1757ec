"""Copying on executors: the ranges of one task, lane by lane, in one event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interpulse.client.consuming.entry_reader import EntryReader, EntryRun
from interpulse.model.ids import LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.copying.source_marks import SourceMarks
from interpulse.spark.lanes import LaneState, StreamTask
from interpulse.spark.offsets import TopicRange
from interpulse.spark.processes.process_client import patiently, process_portal, relaxed_collector
from interpulse.spark.reading.fetch import read_ranges, reading_session
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.writing.lane_report import LaneReport
from interpulse.spark.writing.sink import open_lanes
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire.cursor_promise import REPLICATION_CURSORS


def copy_ranges(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
    passed: Mapping[str, Position],
) -> list[LaneReport]:
    """Copy the ranges; return a report of each topic-partition once all receipts are there. Raises the first failure.

    ``passed`` has the positions of the source cursor beyond the beginnings of ranges, as the driver received them.
    """
    with relaxed_collector():
        return process_portal().call(lambda: _copy(source, target, ranges, lanes, task, passed))


async def _copy(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
    passed: Mapping[str, Position],
) -> list[LaneReport]:
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
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        await writer.close()


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

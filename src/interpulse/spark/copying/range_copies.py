"""Executors: read the ranges of one task and write them, lane by lane, in one event loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interpulse.client.consuming.entry_reader import Entry, EntryRun
from interpulse.spark.lanes import LaneState, StreamTask
from interpulse.spark.offsets import TopicRange
from interpulse.spark.process_client import process_portal, relaxed_collector
from interpulse.spark.reading.fetch import read_ranges
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.writing.lane_report import LaneReport
from interpulse.spark.writing.sink import open_lanes
from interpulse.spark.writing.write_options import WriteOptions

__all__ = ["copy_ranges"]


def copy_ranges(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
) -> list[LaneReport]:
    """Copy the ranges; what became of each topic-partition, when every receipt is there. Raises the first failure."""
    with relaxed_collector():
        return process_portal().call(lambda: _copy(source, target, ranges, lanes, task))


async def _copy(
    source: ReadOptions,
    target: WriteOptions,
    ranges: Sequence[TopicRange],
    lanes: Mapping[str, LaneState],
    task: StreamTask,
) -> list[LaneReport]:
    writer = await open_lanes(target, lanes, task)

    async def take(item: TopicRange, arrived: Sequence[Entry | EntryRun]) -> None:
        await writer.copy(item.topic, arrived)

    async def refuse(item: TopicRange, reason: str) -> None:
        writer.refuse(item.topic, item.after, reason)

    try:
        await read_ranges(source, ranges, take, refuse, begin=lambda item: writer.expect(item.topic))
        return await writer.finish()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    finally:
        await writer.close()

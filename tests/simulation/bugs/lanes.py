"""Bugs of lanes, which S6 must find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from interpulse.spark.copying import range_copies
from interpulse.spark.copying.copy_reader import CopyReader, ReportCommit
from interpulse.spark.lanes import LaneState, StreamTask
from interpulse.spark.state_disk import StateDisk
from interpulse.spark.writing.lane import Lane
from interpulse.spark.writing.lane_writer import LaneWriter
from interpulse.spark.writing.write_options import WriteOptions
from tests.simulation.lanes.disk import NodeDisk


def lane_reopened_with_another_epoch() -> None:
    """21: each further attempt of a task opens its lanes under the name of another epoch."""
    open_lanes = range_copies.open_lanes  # type: ignore[attr-defined]
    attempts: Counter[tuple[str | None, StreamTask]] = Counter()

    async def reopened(
        options: WriteOptions, states: Mapping[str, LaneState], task: StreamTask, *arguments: Any, **named: Any
    ) -> LaneWriter:
        key = (options.producer_name, task)
        epoch = attempts[key]
        attempts[key] += 1
        return await open_lanes(replace(options, lane_epoch=epoch), states, task, *arguments, **named)

    range_copies.open_lanes = reopened  # type: ignore[attr-defined]


def holes_skipped() -> None:
    """22: a lane takes every id up to the broker's last one for stored."""

    def trusting(self: Lane, sequence_id: int) -> None:
        self.report.replays += 1

    Lane.settle = trusting  # type: ignore[method-assign]


def lane_file_behind_the_mark() -> None:
    """23: the lane file of a batch is written behind Spark's mark, before the next batch is planned."""
    take, partitions = ReportCommit.take, CopyReader.partitions
    waiting: dict[StateDisk, Callable[[], None]] = {}

    def late(self: ReportCommit, rows: Sequence[bytes], batch: int) -> None:
        waiting[self._files._disk] = lambda: take(self, rows, batch)

    def planned(self: CopyReader, *offsets: Any) -> Any:
        waiting.pop(self._files._disk, lambda: None)()
        return partitions(self, *offsets)

    ReportCommit.take = late  # type: ignore[method-assign]
    CopyReader.partitions = planned  # type: ignore[assignment, method-assign]


def lane_directory_not_synced() -> None:
    """231: the name of a lane file is not brought to disk."""
    NodeDisk.sync_directory = lambda self, directory: None  # type: ignore[method-assign]

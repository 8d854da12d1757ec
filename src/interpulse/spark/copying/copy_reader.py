"""The stream whose rows are reports. It is planned as any stream, and its tasks copy what they read.

Model: docs/models/lane_settlement.tla.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from interpulse.client.outages import ResolvedOutage
from interpulse.clock import now_ms
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.copying.run_ahead import RunAhead, plan_run_ahead
from interpulse.spark.lanes import LaneReport
from interpulse.spark.offsets import StreamOffset, TopicRange
from interpulse.spark.processes.workers import strip_traceback, strip_traceback_while_reading
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.reading.reader import OpenView, PlannedStream, RangesPartition, broker_view
from interpulse.spark.state_disk import LOCAL_DISK, StateDisk
from interpulse.spark.state_files import LaneFiles, LaneStates, read_lane_states
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.spark.writing.writer import WrittenMessage, commit_batch, stream_task, with_healed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


class CopyPartition(RangesPartition):
    """The work of one task, and the starting states of its lanes."""

    def __init__(
        self,
        ranges: Sequence[TopicRange],
        lanes: LaneStates,
        *,
        passed: Mapping[str, Position],
        recalled: Mapping[str, Position],
        ahead: RunAhead | None,
    ) -> None:
        """Set the work; ranges are empty where entries are only expected.

        ``passed`` has the positions of the source cursor for ranges that it was moved into or past, and ``recalled``
        the beginnings of ranges that an earlier attempt of the batch has copied up to.
        """
        super().__init__(ranges)
        self.lanes = lanes
        self.passed = passed
        self.recalled = recalled
        self.ahead = ahead


class CopyReader(PlannedStream):
    """Copies as a stream. A row is a pickled LaneReport."""

    def __init__(
        self,
        options: ReadOptions,
        target: WriteOptions,
        *,
        run_ahead_ms: int = 0,
        cursor_follows: bool = False,
        position_runs: bool = False,
        disk: StateDisk = LOCAL_DISK,
        open_view: OpenView = broker_view,
    ) -> None:
        """``disk`` holds the lane files; ``open_view`` opens the source for the planner.

        Each task goes on copying what arrives for ``run_ahead_ms``. With ``cursor_follows`` the cursor on the source
        moves meanwhile; Spark must not repeat a task then, but the whole batch. With ``position_runs`` the positions of
        copies are written to `PositionFiles`.
        """
        super().__init__(options, open_view)
        assert target.state_path
        self._target = target
        self._run_ahead_ms = run_ahead_ms
        self._cursor_follows = cursor_follows
        self._position_runs = position_runs
        self._files = LaneFiles(target.state_path, disk)

    @strip_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[CopyPartition]:
        lanes, now = read_lane_states(self._files), time.monotonic()
        positions = StreamOffset.from_json(end).positions
        ahead = self._plan_run_ahead(positions)
        is_followed = ahead is not None and self._cursor_follows
        attempt, kept = self._files.begin_attempt() if is_followed or self._files.has_attempts() else (0, {})
        if ahead is not None and is_followed:
            ahead = ahead._replace(attempt=attempt)
        recalled = {topic: upto for topic, upto in kept.items() if topic in positions}
        copies = []
        further = {topic for topic, upto in recalled.items() if upto > positions[topic]}
        for planned in self._tasks(start, end, followed=further.union(ahead.topics if ahead else ())):
            ranges = [_behind(item, recalled.get(item.topic, EARLIEST)) for item in planned]
            begins = {item.topic: item.after for item in ranges}
            # A batch that is planned again may begin before the cursor.
            passed = self.planner.passed(begins, now)
            copies.append(
                CopyPartition(
                    ranges,
                    lanes.of(begins.keys()),
                    passed=passed,
                    recalled={topic: recalled[topic] for topic in begins if topic in recalled},
                    ahead=ahead,
                )
            )
        return copies

    def _plan_run_ahead(self, topics: Mapping[str, Position]) -> RunAhead | None:
        if not self._run_ahead_ms or self.planner.is_bounded:
            return None
        watched = self._files.run_ahead_watch()  # before the list is read, so that later changes show
        self.view.discover()
        activity = self.view.activity()
        ahead = plan_run_ahead(
            {topic: is_active for topic, is_active in activity.items() if topic in topics},
            held=self._files.held(),
            rates=self.view.rates(),
            now_ms=now_ms(),
            length_ms=self._run_ahead_ms,
        )
        if ahead is None:
            return None
        self.view.note_followed(ahead.topics)
        return ahead._replace(watched=watched)

    @strip_traceback_while_reading
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from interpulse.spark.copying.range_copies import copy_ranges
        from interpulse.spark.processes.process_client import relaxed_collector

        # Spark turns an empty plan into one partition without a value.
        if isinstance(partition, CopyPartition) and partition.ranges:
            task = stream_task()
            lanes = partition.lanes.below(task.batch)
            with relaxed_collector():
                reports = copy_ranges(
                    *(self._options, self._target, partition.ranges, lanes, task, partition.passed),
                    ahead=partition.ahead,
                    recalled=partition.recalled,
                    position_runs=self._position_runs,
                )
            yield report_batch(with_healed(reports))


def _behind(item: TopicRange, position: Position) -> TopicRange:
    """Return the part of a range behind a position, which is empty at the position if there is none."""
    if position <= item.after:
        return item
    first = item.first if item.first is not None and item.first > position else None
    return item._replace(after=position, upto=max(item.upto, position), first=first)


def report_batch(reports: Sequence[LaneReport | ResolvedOutage]) -> pa.RecordBatch:
    """Return a row for each report, and for each kind of failure that healed."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(report) for report in reports], pa.binary())})


class ReportCommit:
    """The ``foreachBatch`` function of a stream of reports. ``state_path`` is the directory of its lane files.

    A replayed batch may be committed a second time, with the lanes of the first.
    """

    def __init__(self, state_path: str, disk: StateDisk = LOCAL_DISK) -> None:
        self._files = LaneFiles(state_path, disk)

    def __call__(self, reports: DataFrame, batch: int) -> None:
        """Copy the batch by collecting its reports, and commit it. Raises the error that ended a task for good."""
        self.take([row.report for row in reports.collect()], batch)

    def take(self, rows: Sequence[bytes], batch: int) -> None:
        """Commit the reports of a batch's tasks. Rows must come from our own tasks: they are unpickled."""
        commit_batch(batch, [WrittenMessage([pickle.loads(row) for row in rows])], self._files)

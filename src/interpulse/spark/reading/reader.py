"""Batch and stream readers: the driver plans, executors fetch.

Spark pickles these objects, so they hold options and plain values only. Connections are made inside the methods,
lazily, in the process that runs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from interpulse.model.numbers import LONG_MAX
from interpulse.spark.offsets import StreamOffset, TopicRange, pack_ranges, ranges_between
from interpulse.spark.options.option import Purpose
from interpulse.spark.processes.workers import settle_memory, strip_traceback, strip_traceback_while_reading
from interpulse.spark.reading.batch_plan import plan_batch, split_ranges
from interpulse.spark.reading.narrowing import Narrowing, narrowed_by
from interpulse.spark.reading.planner import SourceView, StreamPlanner
from interpulse.spark.reading.read_columns import ReadColumns, columns_of_query, schema_of_query
from interpulse.spark.reading.read_options import ReadOptions, parse_read_options
from interpulse.spark.reading.source_searches import schemas_of_topics

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

OpenView = Callable[[ReadOptions], SourceView]

_WARMED_MAX = 4
_NO_LIMIT = LONG_MAX
"""Read limit of a stream without limits. It is never ReadAllAvailable, which Spark passes with Trigger.Once only."""


class RangesPartition(InputPartition):
    """Work of one task: ranges of one or several topic-partitions."""

    def __init__(self, ranges: Sequence[TopicRange]) -> None:
        super().__init__(tuple(ranges))

    @property
    def ranges(self) -> tuple[TopicRange, ...]:
        return tuple(self.value)


def schema_of_read(mapping: Mapping[str, str]) -> StructType:
    """Return the columns of a read, batch or stream, that names none."""
    options = parse_read_options(mapping)
    return schema_of_query(options, schemas_of_topics(options))


def batch_reader(mapping: Mapping[str, str], schema: StructType) -> PulsarBatchReader:
    """Return the reader of a batch query that wants these columns. Raises OptionError and TopicNotFound."""
    options = parse_read_options(mapping, Purpose.BATCH_READ)
    kind = NarrowingBatchReader if options.filter_pushdown else PulsarBatchReader
    return kind(options, columns_of_query(options, schema, schemas_of_topics(options)))


def stream_reader(mapping: Mapping[str, str], schema: StructType) -> PulsarStreamReader:
    """Return the reader of a stream that wants these columns. Raises OptionError and TopicNotFound."""
    options = parse_read_options(mapping, Purpose.STREAM_READ)
    return PulsarStreamReader(options, columns_of_query(options, schema, schemas_of_topics(options)))


def broker_view(options: ReadOptions) -> SourceView:
    """Return the view of a source over the binary protocol."""
    from interpulse.spark.reading.source_view import BrokerSourceView

    return BrokerSourceView(options)


def _read(options: ReadOptions, columns: ReadColumns, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    from interpulse.spark.reading.fetch import fetch_batches

    # Spark makes one partition with no value out of an empty plan.
    ranges = partition.ranges if isinstance(partition, RangesPartition) else ()
    return fetch_batches(options, columns, ranges)


class PulsarBatchReader(DataSourceReader):
    """Reader from fixed starts to fixed ends."""

    def __init__(self, options: ReadOptions, columns: ReadColumns) -> None:
        self._options = options
        self._columns = columns
        self._narrowing = Narrowing()

    @strip_traceback
    def partitions(self) -> Sequence[InputPartition]:
        """Resolve start and end once and pack the ranges into tasks."""
        view = broker_view(self._options)
        try:
            tasks = [RangesPartition(task) for task in plan_batch(self._options, view, self._narrowing)]
        finally:
            view.close()
        settle_memory()  # one worker plans all queries
        return tasks

    @strip_traceback_while_reading
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._columns, partition)


class NarrowingBatchReader(PulsarBatchReader):
    """Batch reader that reads no more than the filters of the query need.

    It is a class of its own because Spark refuses a reader with filters unless the session pushes them.
    """

    @strip_traceback
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Shorten the ranges by the filters and return all of them to Spark, which decides about rows."""
        self._narrowing = narrowed_by(filters, self._options.column_style)
        return filters


class PlannedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Driver side of a stream. Its planner lives in the driver's source process for as long as the query."""

    def __init__(self, options: ReadOptions, open_view: OpenView = broker_view) -> None:
        """``open_view`` opens the source for the planner."""
        self._options = options
        self._open_view = open_view
        self._planner: StreamPlanner | None = None
        self._view: SourceView | None = None
        self._idle_at: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None, "_view": None, "_idle_at": None}

    @property
    def view(self) -> SourceView:
        if self._view is None:
            self._view = self._open_view(self._options)
        return self._view

    @property
    def planner(self) -> StreamPlanner:
        if self._planner is None:
            self._planner = StreamPlanner(self._options, self.view)
        return self._planner

    @strip_traceback
    def initialOffset(self) -> dict[str, Any]:
        return self.planner.initial_offset(time.monotonic()).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadMaxRows(self._options.max_entries_per_trigger or _NO_LIMIT)

    @strip_traceback
    def prepareForTriggerAvailableNow(self) -> None:
        self.planner.fix_target(time.monotonic())

    @strip_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch. Entries are Spark's rows here; the entry limit carries a byte limit.

        Spark asks about a hundred times a second while there is nothing to do. With many topics an answer takes long,
        and the replication job is to cost nothing meanwhile, so the answer waits while there can be no news.
        """
        if start == self._idle_at:
            self.planner.await_news(time.monotonic())
            if self.planner.is_idle(time.monotonic()):
                return start
        entries_max = limit.max_rows if isinstance(limit, ReadMaxRows) and limit.max_rows < _NO_LIMIT else None
        bytes_max = None
        if isinstance(limit, ReadMaxBytes):
            bytes_max, entries_max = limit.max_bytes, self._options.max_entries_per_trigger
        begin = StreamOffset.from_json(start)
        if begin.initial and isinstance(limit, ReadAllAvailable):
            return self.planner.only_batch(begin, time.monotonic()).to_json()
        end = self.planner.latest_offset(begin, time.monotonic(), entries_max=entries_max, bytes_max=bytes_max)
        self._idle_at = start if end is begin else None
        return start if end is begin else end.to_json()

    @strip_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[RangesPartition]:
        return [RangesPartition(ranges) for ranges in self._tasks(start, end)]

    def _tasks(
        self, start: dict[str, Any], end: dict[str, Any], *, followed: Collection[str] = ()
    ) -> Sequence[Sequence[TopicRange]]:
        """Return the ranges of each task. Topic-partitions that are ``followed`` have one that may be empty."""
        upto = StreamOffset.from_json(end)
        if StreamOffset.from_json(start).initial and not upto.begins:
            # The anchor batch reads nothing; its empty tasks start the Python workers before the first entry is there.
            return [()] * min(upto.tasks, _WARMED_MAX)
        # Of messages every plan of a batch is the same: sinks that write exactly once know rows by their task.
        sizes = self.planner.sizes if self._options.mode == "entry" else {}
        ranges = ranges_between(StreamOffset.from_json(start), upto, sizes)
        if self._options.preserve_order is False:
            ranges = split_ranges(ranges, self._options, {})
        behind = set(followed).difference(item.topic for item in ranges)
        ranges += [TopicRange(topic, upto.positions[topic], upto.positions[topic]) for topic in sorted(behind)]
        return pack_ranges(ranges, upto.tasks, self._options.plan_mode)

    @strip_traceback
    def commit(self, end: dict[str, Any]) -> None:
        self.planner.acknowledge(StreamOffset.from_json(end).positions, time.monotonic())

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self.planner.report(time.monotonic())

    def stop(self) -> None:
        """Close the view.

        Spark does not always call this; brokers drop non-durable readers when the connection ends.
        """
        if self._view is not None:
            self._view.close()
            self._view = self._planner = None


class PulsarStreamReader(PlannedStream):
    """Reader of a stream."""

    def __init__(self, options: ReadOptions, columns: ReadColumns) -> None:
        super().__init__(options)
        self._columns = columns

    @strip_traceback_while_reading
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._columns, partition)

"""Runs a stream of the data source without a JVM, and does to it what Spark does.

Everything is pickled between steps, ``initialOffset`` is asked twice, offsets are written down before a batch is read
and commits after it; a driver made on the same log replays the batch that was not committed.
"""

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import CaseInsensitiveDict, DataSource, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from interpulse.spark.data_source import PulsarDataSource


class Killed(Exception):
    """The driver was killed at a step."""


@dataclass
class CheckpointLog:
    """What Spark keeps: offsets before, commits after a batch."""

    offsets: dict[int, str] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)


class StreamDriver:
    """One run of a query; ``sink(batch_id, tasks)`` takes the rows of a batch, task by task."""

    def __init__(
        self,
        options: dict[str, str],
        log: CheckpointLog,
        sink: Callable[[int, list[list[pa.RecordBatch]]], None],
        *,
        kind: type[DataSource] = PulsarDataSource,
        kill_at: str = "",
        once: bool = False,
    ) -> None:
        """``once``: as with Trigger.Once, which takes limits away; call :meth:`run_batch` once."""
        source = _pickled(kind(CaseInsensitiveDict({key.lower(): value for key, value in options.items()})))
        self.schema = source.schema()
        self.reader = source.streamReader(schema=self.schema)
        self.executor_reader = _pickled(source.streamReader(schema=self.schema))
        self.log = log
        self.sink = sink
        self.kill_at = kill_at
        self.once = once

    def run_batch(self) -> bool:
        """One micro-batch; False if there was nothing to do."""
        last = max(self.log.offsets, default=None)
        if last is not None and last not in self.log.commits:
            self._execute(last)
            return True
        if last is None:
            self.reader.initialOffset()
            self._step("initial")
            start: dict[str, Any] = self.reader.initialOffset()
        else:
            start = json.loads(self.log.offsets[last])
            self.reader.commit(start)
        limit = ReadAllAvailable() if self.once else self.reader.getDefaultReadLimit()
        end = json.loads(json.dumps(self.reader.latestOffset(start, limit)))
        if end == start and last is not None:
            return False
        batch = 0 if last is None else last + 1
        self.log.offsets[batch] = json.dumps(end)
        self._step("planned")
        self._execute(batch, start)
        return True

    def _execute(self, batch: int, start: dict[str, Any] | None = None) -> None:
        if start is None:
            start = json.loads(self.log.offsets[batch - 1]) if batch else self.reader.initialOffset()
        end = json.loads(self.log.offsets[batch])
        tasks = [
            self._read(batch, index, partition) for index, partition in enumerate(self.reader.partitions(start, end))
        ]
        self._step("read")
        self.sink(batch, tasks)
        self._step("written")
        self.log.commits.add(batch)

    def _read(self, batch: int, index: int, partition: Any) -> list[pa.RecordBatch]:
        with _task("", batch, index):
            return list(self.executor_reader.read(_pickled(partition)))

    def _step(self, name: str) -> None:
        if name == self.kill_at:
            raise Killed(name)


class StreamSink:
    """The sink of a query, as Spark uses it: a writer anew for every batch, pickled for every task, commits elsewhere.

    ``change`` is what the query does to rows. ``kill_at``: ``midst``, inside the first task;
    ``uncommitted``, before the sink's commit; once each.
    """

    def __init__(
        self,
        options: dict[str, str],
        schema: StructType,
        *,
        query_id: str,
        kind: type[DataSource] = PulsarDataSource,
        change: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda rows: rows,
        kill_at: str = "",
    ) -> None:
        self._options = CaseInsensitiveDict({key.lower(): value for key, value in options.items()})
        self._schema = schema
        self._kind = kind
        self._query_id = query_id
        self._change = change
        self.kill_at = kill_at

    def __call__(self, batch: int, tasks: list[list[pa.RecordBatch]]) -> None:
        source = _pickled(self._kind(self._options))
        writer = _pickled(source.streamWriter(schema=self._schema, overwrite=False))
        written = [self._write(writer, batch, index, rows) for index, rows in enumerate(tasks)]
        if any(tasks):
            self._kill("uncommitted")
        _pickled(writer).commit(_pickled(written), batch)

    def _write(self, writer: Any, batch: int, index: int, rows: list[pa.RecordBatch]) -> WriterCommitMessage:
        with _task(self._query_id, batch, index):
            return _pickled(writer).write(self._given_out(rows))

    def _given_out(self, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in rows:
            half = chunk.num_rows // 2
            yield self._change(chunk.slice(0, half))
            if half:
                self._kill("midst")
            yield self._change(chunk.slice(half))

    def _kill(self, name: str) -> None:
        if name == self.kill_at:
            self.kill_at = ""
            raise Killed(name)


@contextmanager
def _task(query_id: str, batch: int, index: int) -> Iterator[None]:
    """What a task sees of Spark."""
    context: Any = TaskContext._getOrCreate()
    context._partitionId = index
    context._localProperties = {"sql.streaming.queryId": query_id, "streaming.sql.batchId": str(batch)}
    try:
        yield
    finally:
        TaskContext._taskContext = None


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))

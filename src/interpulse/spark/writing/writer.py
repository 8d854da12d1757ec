"""Batch and stream writers, and their reports to the driver.

They are pickled like the readers: options and plain values only. The driver creates a stream writer for every batch,
and its ``commit`` runs in yet another process, so lane states are carried by the lane files.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from interpulse.client.outages import ResolvedOutage, remedy_for
from interpulse.clock import now_ms
from interpulse.model.clusters import shown_address
from interpulse.spark.lanes import LaneReport, LaneState, StreamTask
from interpulse.spark.options.option import OptionError, Purpose
from interpulse.spark.processes.workers import strip_traceback
from interpulse.spark.state_files import LaneFiles, LaneStates, read_lane_states
from interpulse.spark.writing.write_options import WriteOptions, parse_write_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

_HEALED_REMEDY: Final = "nothing, unless it comes again and again: then look at the log of the place"
_FAILED_ATTEMPT: Final = "an attempt of a task failed and Spark tried it again; the log of the executor says why"


class WrittenMessage(WriterCommitMessage):
    """The commit message of one task: its reports, and failures that healed meanwhile."""

    def __init__(self, outcomes: Sequence[LaneReport | ResolvedOutage]) -> None:
        self.reports = tuple(item for item in outcomes if isinstance(item, LaneReport))
        self.healed = tuple(item for item in outcomes if isinstance(item, ResolvedOutage))


def reports_of(messages: Sequence[WriterCommitMessage | None]) -> list[LaneReport]:
    """Return the reports of the tasks that ended."""
    return [report for message in messages if isinstance(message, WrittenMessage) for report in message.reports]


def _healed_of(messages: Sequence[WriterCommitMessage | None]) -> list[dict[str, Any]]:
    """Return the failures that healed within the tasks, by place and reason."""
    totals: dict[tuple[str, str], ResolvedOutage] = {}
    written = [message for message in messages if isinstance(message, WrittenMessage)]
    for failure in chain.from_iterable(message.healed for message in written):
        key = (failure.place, failure.reason)
        times, seconds = (totals[key].times, totals[key].seconds) if key in totals else (0, 0.0)
        totals[key] = failure._replace(times=times + failure.times, seconds=seconds + failure.seconds)
    return [
        {
            "place": shown_address(failure.place),
            "reason": failure.reason,
            "remedy": remedy_for(failure.reason) or _HEALED_REMEDY,
            "count": failure.times,
            "seconds": round(failure.seconds, 3),
        }
        for failure in totals.values()
    ]


def _summary(reports: Sequence[LaneReport]) -> dict[str, Any]:
    skipped: Counter[str] = Counter()
    for report in reports:
        skipped.update(report.skipped)
    counts = ("entries", "messages", "bytes", "replays")
    return {name: sum(getattr(report, name) for report in reports) for name in counts} | {"skipped": dict(skipped)}


def batch_writer(mapping: Mapping[str, str], schema: StructType, *, overwrite: bool) -> PulsarBatchWriter:
    """Return the writer of a batch query. Raises OptionError."""
    if overwrite:
        raise OptionError('a topic cannot be overwritten; use mode("append")')
    return PulsarBatchWriter(parse_write_options(mapping, Purpose.BATCH_WRITE), schema)


def stream_writer(mapping: Mapping[str, str], schema: StructType, *, overwrite: bool) -> PulsarStreamWriter:
    """Return the writer of one micro-batch. Raises OptionError."""
    if overwrite:
        raise OptionError('a topic cannot be overwritten; use outputMode("append")')
    options = parse_write_options(mapping, Purpose.STREAM_WRITE)
    return PulsarStreamWriter(options, schema, checkpoint=mapping.get("checkpointlocation"))


class PulsarBatchWriter(DataSourceArrowWriter):
    """Appends rows to topics, at least once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._record = _checked_record(options, schema)

    @strip_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from interpulse.spark.writing.sink import write_rows

        return WrittenMessage(with_healed(write_rows(self._options, iterator, {}, self._record)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        log.info("written summary=%s", _summary(reports_of(messages)))
        _log_healed(_healed_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        log_abort(messages)


class PulsarStreamWriter(DataSourceStreamArrowWriter):
    """Appends micro-batches to topics, exactly once with ``dedup``."""

    def __init__(self, options: WriteOptions, schema: StructType, *, checkpoint: str | None) -> None:
        self._options = options
        self._record = _checked_record(options, schema)
        state_path = _state_path(options, checkpoint)
        self._files = None if state_path is None else LaneFiles(state_path)
        self._lanes = LaneStates({}, {}) if self._files is None else read_lane_states(self._files)

    @strip_traceback
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send everything. Return after the last receipt."""
        from interpulse.spark.writing.sink import write_rows

        task = stream_task()
        states = self._lanes.below(task.batch)
        return WrittenMessage(with_healed(write_rows(self._options, iterator, states, self._record, task)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        commit_batch(batchId, messages, self._files)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        log_abort(messages)


def commit_batch(batch: int, messages: Sequence[WriterCommitMessage | None], files: LaneFiles | None) -> None:
    """Record the reports of a batch's tasks; with lanes, in their files."""
    reports, healed = reports_of(messages), _healed_of(messages)
    if files is not None:
        runs = {report.topic: report.runs for report in reports if report.runs}
        files.positions.write(runs, writer=f"commit-{batch}")  # first: once recorded, copies are not read back again
        files.commit(batch, _states_of(reports))
        held = {report.topic: (report.after, report.held) for report in reports if report.held is not None}
        released = [report.topic for report in reports if report.held is None]
        files.hold(held, released=released, now_ms=now_ms())
        summary = {"batchId": batch, **_summary(reports), "healed": healed, "topics": _written_by_topic(reports)}
        files.write_summary(summary)
    log.info("written batch=%d summary=%s", batch, _summary(reports))
    _log_healed(healed)


def _log_healed(healed: Sequence[Mapping[str, Any]]) -> None:
    for failure in healed:
        log.warning(
            "failed and healed within a task place=%s count=%d seconds=%.1f reason=%s remedy=%s",
            *(failure["place"], failure["count"], failure["seconds"], failure["reason"], failure["remedy"]),
        )


def _states_of(reports: Sequence[LaneReport]) -> dict[str, LaneState]:
    """Return the states of lanes by key. Several tasks may have used a lane of user ids in turn."""
    states: dict[str, LaneState] = {}
    for report in reports:
        key = report.key or report.topic
        if report.is_recorded:
            states[key] = max(states.get(key, report.state), report.state)
    return states


def _written_by_topic(reports: Sequence[LaneReport]) -> dict[str, tuple[int, int, int]]:
    """Return entries, messages and bytes by topic."""
    written: dict[str, tuple[int, int, int]] = {}
    for report in reports:
        if report.entries:
            entries, messages, size = written.get(report.topic, (0, 0, 0))
            written[report.topic] = (entries + report.entries, messages + report.messages, size + report.bytes)
    return written


def _state_path(options: WriteOptions, checkpoint: str | None) -> str | None:
    if not options.exactly_once:
        return None
    if options.state_path is not None:
        return options.state_path
    if checkpoint is None:
        raise OptionError(
            'exactly-once goes on from a checkpoint: add .option("checkpointLocation", "/a/directory/that/stays")'
        )
    elsewhere = re.match(r"(?!file:)[a-z][a-z0-9+.-]*:", checkpoint)
    if elsewhere is not None:
        raise OptionError(
            f"exactly-once keeps the state of its lanes on a disk of the driver, which {checkpoint} is not: "
            f'add .option("statePath", "/a/directory/that/stays")'
        )
    path = re.sub("^file:/*", "/", checkpoint)
    return f"{path.rstrip('/')}/interpulse"


def stream_task() -> StreamTask:
    """Return the part of the micro-batch that this task writes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "streams run in tasks"
    query, batch = (context.getLocalProperty(key) for key in ("sql.streaming.queryId", "streaming.sql.batchId"))
    assert batch is not None, "tasks of a stream know their micro-batch: lanes begin where it says"
    return StreamTask(query or "", int(batch), context.partitionId())


def with_healed(reports: Sequence[LaneReport]) -> list[LaneReport | ResolvedOutage]:
    """Return the reports of this task with the failures that healed meanwhile, also in its earlier attempts."""
    from pyspark import TaskContext

    from interpulse.spark.processes.process_client import healed_here

    context = TaskContext.get()
    failed = context.attemptNumber() if context is not None else 0
    earlier = [ResolvedOutage("Spark", _FAILED_ATTEMPT, failed, 0.0)] if failed else []
    return [*reports, *healed_here(), *earlier]


def _checked_record(options: WriteOptions, schema: StructType) -> StructType | None:
    from interpulse.spark.writing.sink_rows import check_write_schema, record_columns

    check_write_schema(options, schema)
    return record_columns(options, schema)


def log_abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Log the failure of a batch in some of its tasks."""
    reports = reports_of(messages)
    if reports:
        positions = ", ".join(f"{report.topic} up to {report.state.target}" for report in reports)
        log.warning("write aborted, written entries stay written=%s", positions)

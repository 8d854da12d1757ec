"""The sink of a copying stream: takes the reports of the tasks and commits them on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from interpulse.spark.copying.reports import reports_in
from interpulse.spark.workers import settle_memory
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.spark.writing.writer import WrittenMessage, commit_batch, log_abort

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ReportWriter"]


class ReportWriter(DataSourceStreamArrowWriter):
    """Everything is written when a report arrives here; what counts is that the lanes are recorded."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        written = WrittenMessage(reports_in(iterator))
        settle_memory()
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        commit_batch(batchId, messages, self._options.state_path)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        log_abort(messages)

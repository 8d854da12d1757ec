"""The end of a micro-batch that copies: the job itself collects and commits the reports of its tasks.

Everything is written when a report arrives here; the commit records the lanes before Spark marks the batch. A sink in
Python would start three more Python processes in turn for each batch: to plan the write, to take the reports from Java,
and to commit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interpulse.spark.copying.reports import reports_in
from interpulse.spark.writing.writer import WrittenMessage, commit_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ReportCommit"]


class ReportCommit:
    """The ``foreachBatch`` function of a stream of reports. ``state_path`` is the directory of its lane files.

    A replayed batch may be committed a second time, with the lanes of the first.
    """

    def __init__(self, state_path: str) -> None:
        self._state_path = state_path

    def __call__(self, reports: DataFrame, batch: int) -> None:
        """Copy the batch by collecting its reports, and commit it. Raises the error that ended a task for good."""
        self.take([row.report for row in reports.collect()], batch)

    def take(self, rows: Sequence[bytes], batch: int) -> None:
        """Commit the reports of a batch's tasks."""
        commit_batch(batch, [WrittenMessage(reports_in(rows))], self._state_path)

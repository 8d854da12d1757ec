"""The end of a micro-batch that copies: what its tasks report is collected and committed by the job itself.

Everything is written when a report arrives here; what counts is that the lanes are recorded before Spark marks the
batch. A sink in Python would start three more Python processes one after the other in each batch: to plan the write, to
take the reports from Java, and to commit them.
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
    """For ``foreachBatch`` of a stream of reports; ``state_path``: the directory of its lane files.

    A batch that is replayed may be committed a second time: its lanes are those of before.
    """

    def __init__(self, state_path: str) -> None:
        self._state_path = state_path

    def __call__(self, reports: DataFrame, batch: int) -> None:
        """Copy the batch, by asking for its reports, and commit it. Raises what ended a task for good."""
        self.take([row.report for row in reports.collect()], batch)

    def take(self, rows: Sequence[bytes], batch: int) -> None:
        """Commit what the tasks of a batch have reported."""
        commit_batch(batch, [WrittenMessage(reports_in(rows))], self._state_path)

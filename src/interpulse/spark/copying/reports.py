"""Reports of tasks that copy: as rows that carry them to the driver, and their commit at the end of a micro-batch.

Everything is written when a report arrives here; the commit records the lanes before Spark marks the batch. A sink in
Python would start three more Python processes in turn for each batch: to plan the write, to take the reports from Java,
and to commit them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from interpulse.client.outages import ResolvedOutage
from interpulse.spark.writing.lane_report import LaneReport
from interpulse.spark.writing.writer import WrittenMessage, commit_batch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def report_batch(reports: Sequence[LaneReport | ResolvedOutage]) -> pa.RecordBatch:
    """Return a row for each report, and for each kind of failure that healed."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(report) for report in reports], pa.binary())})


def reports_in(rows: Iterable[bytes]) -> list[LaneReport | ResolvedOutage]:
    """Return the reports in rows, the inverse of :func:`report_batch`.

    Rows must come from our own tasks: they are unpickled.
    """
    return [pickle.loads(row) for row in rows]


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

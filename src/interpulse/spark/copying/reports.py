"""Reports of tasks as rows: so they come from the tasks that copy to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from interpulse.client.outages import ResolvedOutage
from interpulse.spark.writing.lane_report import LaneReport

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["report_batch", "reports_in"]


def report_batch(reports: Sequence[LaneReport | ResolvedOutage]) -> pa.RecordBatch:
    """A row for each report, and for each kind of failure that healed meanwhile."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(report) for report in reports], pa.binary())})


def reports_in(rows: Iterable[bytes]) -> list[LaneReport | ResolvedOutage]:
    """The inverse of :func:`report_batch`; the rows come from our own tasks of the same query."""
    return [pickle.loads(row) for row in rows]

"""Reports of tasks as rows, which carry them to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from interpulse.client.outages import Healed
from interpulse.spark.writing.lane_report import LaneReport

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["report_batch", "reports_in"]


def report_batch(reports: Sequence[LaneReport | Healed]) -> pa.RecordBatch:
    """Return a row for each report, and for each kind of failure that healed."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(report) for report in reports], pa.binary())})


def reports_in(rows: Iterable[bytes]) -> list[LaneReport | Healed]:
    """Return the reports in rows, the inverse of :func:`report_batch`.

    Rows must come from our own tasks: they are unpickled.
    """
    return [pickle.loads(row) for row in rows]

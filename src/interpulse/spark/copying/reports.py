"""Reports of tasks as rows: they go from the tasks that copy to those of the sink, which hands them to the driver."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from interpulse.client.outages import Healed
from interpulse.spark.writing.lane_report import LaneReport

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["report_batch", "reports_in"]


def report_batch(reports: Sequence[LaneReport | Healed]) -> pa.RecordBatch:
    """A row for each report, and for each kind of failure that healed meanwhile."""
    import pyarrow as pa

    rows = [pickle.dumps(report) for report in reports]
    # From buffers: given Python objects, Arrow imports pandas where that is installed, in every worker for seconds.
    ends, content = array("i", accumulate(map(len, rows), initial=0)), b"".join(rows)
    column = pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(content)])
    return pa.RecordBatch.from_arrays([column], names=["report"])


def reports_in(batches: Iterable[pa.RecordBatch]) -> list[LaneReport | Healed]:
    """The inverse of :func:`report_batch`; the rows come from our own tasks of the same query."""
    return [pickle.loads(row) for batch in batches for row in batch.column("report").to_pylist()]

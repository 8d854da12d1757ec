"""The process that forks Spark's Python workers in a local session: Spark runs this module by ``python -m``.

It works as Spark's own daemon, but imports the modules of replication tasks once, instead of in each of the four or
more workers of a micro-batch. It creates no client, socket or loop, and no library may run a thread: locks held at a
fork would stay locked in the worker.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Final

from interpulse.spark.processes.no_pandas import exclude_pandas

_OF_TASKS: Final = "pyspark.worker"
"""Module that Spark passes to the daemon of tasks. Planning has daemons of its own, which fork once or twice."""
_NEEDED: Final = ("interpulse.spark.copying.copy_reader", "interpulse.spark.copying.range_copies")
_WITHOUT_THREADS: Final = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # Arrow's memory
    "OMP_NUM_THREADS": "1",  # NumPy's linear algebra, which Arrow imports
}
"""Settings that libraries read when they are loaded. Values set by the user stay."""


def main() -> None:
    """Fork workers until Spark closes standard input."""
    from pyspark.daemon import manager

    if _OF_TASKS in sys.argv[1:]:
        for variable, value in _WITHOUT_THREADS.items():
            os.environ.setdefault(variable, value)
        exclude_pandas()
        for name in _NEEDED:
            importlib.import_module(name)
        import pyarrow as pa

        pa.array([b""])  # with its first Python object Arrow looks for pandas
        gc.freeze()  # shared pages stay shared: no worker's collector touches them
    manager()


if __name__ == "__main__":
    main()

"""The process that forks Spark's Python workers in a local session of ours: ``python -m`` this module, by Spark.

As Spark's own daemon, but the modules that tasks of the replication job need are read once here, and not again in each
of the four workers or more that a micro-batch goes through. Nothing of a client is made: no socket or loop; and no
library runs a thread of its own: what it held locked at a fork would stay locked in the worker.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Final

__all__ = ["main"]

_OF_TASKS: Final = "pyspark.worker"
"""The module that Spark names to the daemon of tasks; planning has daemons of its own, which fork once or twice."""
_NEEDED: Final = (
    "interpulse.spark.copying.copy_reader",
    "interpulse.spark.copying.range_copies",
)
_WITHOUT_THREADS: Final = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # the memory of Arrow
    "OMP_NUM_THREADS": "1",  # the linear algebra of NumPy, which Arrow imports
}
"""Read when the libraries are loaded; what the user has set stays."""


def main() -> None:
    """Fork workers until Spark closes standard input."""
    from pyspark.daemon import manager

    if _OF_TASKS in sys.argv[1:]:
        for variable, value in _WITHOUT_THREADS.items():
            os.environ.setdefault(variable, value)
        for name in _NEEDED:
            importlib.import_module(name)
        import pyarrow as pa

        # With its first Python object Arrow imports pandas, where that is installed, which takes seconds.
        pa.array([b""])
        gc.freeze()  # what is shared stays shared: no worker looks for garbage in it
    manager()


if __name__ == "__main__":
    main()

"""The `pulsar` data source and the replication job. Only the modules below import pyspark, not this package.

`data_source` is the entry point of source (`reading/`) and sink (`writing/`), and `job/` the replication job over both.
`offsets` is the format of a stream's offsets in Spark's checkpoint, `rows/` the columns of rows, `schemas/` those that
a topic's schema makes. `lanes` has the rules of writing exactly once and the format of lane files, `state_files` the
files of a sink, `state_disk` the disk that holds them. `options/` declares options; `table_function` is `read_pulsar`
of SQL; `process_client` holds the clients of a Python worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpulse.spark.data_source import register
    from interpulse.spark.session import recommended_conf
    from interpulse.spark.table_function import register_functions

__all__ = ["recommended_conf", "register", "register_functions"]


_MODULES = {"recommended_conf": "session", "register": "data_source", "register_functions": "table_function"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""Functions over the Arrow batches of a data frame, without pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def arrow_schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of batches with these columns, in Spark's form ``name TYPE, ...``.

    Spark's own parser needs Java, which workers do not have.
    """
    import pyarrow as pa

    types = {
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "ARRAY<INT>": pa.list_(pa.int32()),
        "ARRAY<STRING>": pa.list_(pa.string()),
    }
    return pa.schema([(name, types[kind]) for name, kind in (column.split() for column in columns.split(", "))])


def map_in_arrow(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], columns: str
) -> DataFrame:
    """Apply a function to Arrow batches. Unlike ``frame.mapInArrow``, this does not require pandas."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    mapped: Any = UserDefinedFunction(function, columns, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = mapped(*(frame[name] for name in frame.columns))
    classic: Any = frame
    return ClassicFrame(classic._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)

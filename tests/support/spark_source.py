"""The data source without a JVM: what Spark does for one batch, with everything pickled between the steps."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from interpulse.spark.data_source import PulsarDataSource

__all__ = ["columns_of", "read_batch", "source_of", "write_batch"]


def columns_of(**types: DataType) -> StructType:
    """A schema of nullable columns."""
    return StructType([StructField(name, kind, True) for name, kind in types.items()])


def source_of(options: dict[str, str]) -> PulsarDataSource:
    """As Spark makes it: keys arrive in small letters."""
    return _pickled(PulsarDataSource(CaseInsensitiveDict({key.lower(): value for key, value in options.items()})))


def read_batch(options: dict[str, str], wanted: StructType | None = None) -> list[dict[str, Any]]:
    """The rows of a batch read, with the user's schema if there is one."""
    schema = source_of(options).schema() if wanted is None else wanted
    reader = _pickled(source_of(options).reader(schema=schema))
    batches = [batch for partition in reader.partitions() for batch in reader.read(_pickled(partition))]
    return [row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="strict")]


def write_batch(options: dict[str, str], schema: StructType, *rows: tuple[Any, ...]) -> None:
    """Write rows as one task."""
    writer = _pickled(source_of(options).writer(schema=schema, overwrite=False))
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    writer.write(iter([pa.RecordBatch.from_pylist(named, to_arrow_schema(schema, timezone="UTC"))]))


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))

"""The data source without a JVM: what Spark does for one batch, with everything pickled between the steps."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict, Filter
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from interpulse.spark.data_source import PulsarDataSource
from interpulse.spark.offsets import TopicRange
from interpulse.spark.reading.reader import RangesPartition


def columns_of(**types: DataType) -> StructType:
    """A schema of nullable columns."""
    return StructType([StructField(name, kind, True) for name, kind in types.items()])


def source_of(options: dict[str, str]) -> PulsarDataSource:
    """As Spark makes it: keys arrive in small letters."""
    return _pickled(PulsarDataSource(CaseInsensitiveDict({key.lower(): value for key, value in options.items()})))


def planned_reader(
    options: dict[str, str], wanted: StructType | None = None, *filters: Filter
) -> tuple[Any, list[tuple[TopicRange, ...]]]:
    """The reader of a batch, and the ranges of its tasks."""
    schema = source_of(options).schema() if wanted is None else wanted
    reader = _pickled(source_of(options).reader(schema=schema))
    if filters:
        assert list(reader.pushFilters(list(filters))) == list(filters)
    return reader, [partition.ranges for partition in reader.partitions()]


def read_batch(options: dict[str, str], wanted: StructType | None = None, *filters: Filter) -> list[dict[str, Any]]:
    """The rows of a batch read, with the user's schema if there is one; ``filters`` are pushed down, not applied."""
    return read_planned(*planned_reader(options, wanted, *filters))


def read_planned(reader: Any, tasks: Sequence[tuple[TopicRange, ...]]) -> list[dict[str, Any]]:
    """The rows of tasks that were planned."""
    batches = [batch for ranges in tasks for batch in reader.read(_pickled(RangesPartition(ranges)))]
    return [row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="strict")]


def write_batch(options: dict[str, str], schema: StructType, *rows: tuple[Any, ...]) -> None:
    """Write rows as one task."""
    write_batches(options, schema, rows)


def write_batches(options: dict[str, str], schema: StructType, *batches: Sequence[tuple[Any, ...]]) -> None:
    """Write rows as one task that gets them in several Arrow batches."""
    writer = _pickled(source_of(options).writer(schema=schema, overwrite=False))
    kinds = to_arrow_schema(schema, timezone="UTC")
    named = [[dict(zip(schema.names, row, strict=True)) for row in rows] for rows in batches]
    writer.write(iter([pa.RecordBatch.from_pylist(rows, kinds) for rows in named]))


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))

"""The data source without a JVM: what Spark does for one batch, with everything pickled between the steps."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from interpulse.spark.data_source import PulsarDataSource

__all__ = ["read_batch", "source_of"]


def source_of(options: dict[str, str]) -> PulsarDataSource:
    """As Spark makes it: keys arrive in small letters."""
    return _pickled(PulsarDataSource(CaseInsensitiveDict({key.lower(): value for key, value in options.items()})))


def read_batch(options: dict[str, str], wanted: StructType | None = None) -> list[dict[str, Any]]:
    """The rows of a batch read, with the user's schema if there is one."""
    schema = source_of(options).schema() if wanted is None else wanted
    reader = _pickled(source_of(options).reader(schema=schema))
    batches = [batch for partition in reader.partitions() for batch in reader.read(_pickled(partition))]
    return [row for batch in batches for row in pa.Table.from_batches([batch]).to_pylist(maps_as_pydicts="strict")]


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))

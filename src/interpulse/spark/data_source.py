"""``spark.read.format("pulsar")``: the data source class.

Spark imports this module in every session that has the package installed, and an import error here would break every
Python data source of that session. So nothing heavy is imported at the top: no pyarrow, no protobuf, no client.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from interpulse.spark.processes.workers import configure_worker, settle_memory, strip_traceback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_REGISTERING: Final = threading.Lock()

configure_worker()  # a worker imports this module before it uses the source


class PulsarDataSource(DataSource):
    """Reads and writes Pulsar topics, in batches and as streams."""

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    @strip_traceback
    def schema(self) -> StructType:
        """Return the columns: one row per message, or per broker entry with ``mode=entry``.

        See ``valueSchema`` and ``includeColumns``.
        """
        from interpulse.spark.reading.reader import schema_of_read

        schema = schema_of_read(self.options)
        settle_memory()  # one worker resolves the schemas of all queries
        return schema

    @strip_traceback
    def reader(self, schema: StructType) -> DataSourceReader:
        from interpulse.spark.reading.reader import batch_reader

        return batch_reader(self.options, schema)

    @strip_traceback
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from interpulse.spark.reading.reader import stream_reader

        return stream_reader(self.options, schema)

    @strip_traceback
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from interpulse.spark.writing.writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    @strip_traceback
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from interpulse.spark.writing.writer import stream_writer

        writer = stream_writer(self.options, schema, overwrite=overwrite)
        settle_memory()  # one worker calls this in every micro-batch, another one commits
        return writer


class InterpulseDataSource(PulsarDataSource):
    """The data source under a second name, for sessions where a JAR owns the name ``pulsar``."""

    @classmethod
    def name(cls) -> str:
        return "interpulse"


def register(spark: SparkSession) -> None:
    """Register ``pulsar`` and ``interpulse``, for a Spark that does not discover the package by itself.

    Threads may call this at the same time: Spark itself refuses a name that another thread registers just then.
    """
    registry: Any = spark.dataSource
    with _REGISTERING:
        registry.register(PulsarDataSource)
        registry.register(InterpulseDataSource)

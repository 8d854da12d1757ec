"""``spark.read.format("pulsar")``: the data source class.

Spark imports this module in every session that has the package installed, and an import error here would break every
Python data source of that session. So nothing heavy is imported at the top: no pyarrow, no protobuf, no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        from interpulse.spark.reading.read_columns import schema_of_query
        from interpulse.spark.reading.read_options import parse_read_options
        from interpulse.spark.reading.topic_selection import schemas_of_topics

        options = parse_read_options(self.options)
        schema = schema_of_query(options, schemas_of_topics(options))
        settle_memory()  # one worker resolves the schemas of all queries
        return schema

    @strip_traceback
    def reader(self, schema: StructType) -> DataSourceReader:
        from interpulse.spark.options.option import Purpose
        from interpulse.spark.reading.read_columns import columns_of_query
        from interpulse.spark.reading.read_options import parse_read_options
        from interpulse.spark.reading.reader import NarrowingBatchReader, PulsarBatchReader
        from interpulse.spark.reading.topic_selection import schemas_of_topics

        options = parse_read_options(self.options, Purpose.BATCH_READ)
        kind = NarrowingBatchReader if options.filter_pushdown else PulsarBatchReader
        return kind(options, columns_of_query(options, schema, schemas_of_topics(options)))

    @strip_traceback
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from interpulse.spark.options.option import Purpose
        from interpulse.spark.reading.read_columns import columns_of_query
        from interpulse.spark.reading.read_options import parse_read_options
        from interpulse.spark.reading.reader import PulsarStreamReader
        from interpulse.spark.reading.topic_selection import schemas_of_topics

        options = parse_read_options(self.options, Purpose.STREAM_READ)
        return PulsarStreamReader(options, columns_of_query(options, schema, schemas_of_topics(options)))

    @strip_traceback
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from interpulse.spark.options.option import OptionError, Purpose
        from interpulse.spark.writing.write_options import parse_write_options
        from interpulse.spark.writing.writer import PulsarBatchWriter

        if overwrite:
            raise OptionError('a topic cannot be overwritten; use mode("append")')
        return PulsarBatchWriter(parse_write_options(self.options, Purpose.BATCH_WRITE), schema)

    @strip_traceback
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from interpulse.spark.options.option import OptionError, Purpose
        from interpulse.spark.writing.write_options import parse_write_options
        from interpulse.spark.writing.writer import PulsarStreamWriter

        if overwrite:
            raise OptionError('a topic cannot be overwritten; use outputMode("append")')
        options = parse_write_options(self.options, Purpose.STREAM_WRITE)
        settle_memory()  # one worker calls this in every micro-batch, another one commits
        return PulsarStreamWriter(options, schema, checkpoint=self.options.get("checkpointlocation"))


class InterpulseDataSource(PulsarDataSource):
    """The data source under a second name, for sessions where a JAR owns the name ``pulsar``."""

    @classmethod
    def name(cls) -> str:
        return "interpulse"


def register(spark: SparkSession) -> None:
    """Register ``pulsar`` and ``interpulse``, for a Spark that does not discover the package by itself."""
    registry: Any = spark.dataSource
    registry.register(PulsarDataSource)
    registry.register(InterpulseDataSource)

"""Main file for spark-submit: runs the kinds of queries that jobs run, so that Java loads their classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS = 100


class Counting(DataSource):
    """A data source of numbers, as a table and as a stream, with a sink that discards rows."""

    @classmethod
    def name(cls) -> str:
        return "counting"

    def schema(self) -> str:
        return "id long, name string"

    def reader(self, schema: StructType) -> DataSourceReader:
        return Numbers()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return NumbersAgain()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return Nowhere()


class Numbers(DataSourceReader):
    """Two partitions of a table."""

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return ((number, str(number)) for number in range(ROWS))


class NumbersAgain(DataSourceStreamReader):
    """The rows of the table as a stream that ends."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def initialOffset(self) -> dict[str, int]:
        return {"offset": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"offset": ROWS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return ((number, str(number)) for number in range(ROWS))

    def commit(self, end: dict[str, int]) -> None:
        pass


class Nowhere(DataSourceStreamWriter):
    """A sink that discards rows."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def run_queries(spark: SparkSession, directory: str) -> None:
    """Run a stream between Python sources, a grouped and stored table, and SQL."""
    spark.dataSource.register(Counting)
    stream = spark.readStream.format("counting").load().writeStream.format("counting")
    stream.option("checkpointLocation", f"{directory}/stream").trigger(availableNow=True).start().awaitTermination()
    table = spark.read.format("counting").load()
    table.groupBy("name").count().write.parquet(f"{directory}/table")
    grouped = spark.read.parquet(f"{directory}/table")
    grouped.join(table, "name").createOrReplaceTempView("counted")
    spark.sql("SELECT name, sum(id) FROM counted WHERE id > 1 GROUP BY name ORDER BY name").collect()


if __name__ == "__main__":
    with SparkSession.builder.appName("classes").getOrCreate() as session:
        run_queries(session, sys.argv[1])

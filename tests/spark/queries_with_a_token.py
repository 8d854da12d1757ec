"""Queries of a user who gives a token; Spark's UI stays until standard input ends.

Its first line is JSON: a directory, Spark's settings, and a list of options that connect.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from interpulse.spark.session import start_session


def run(directory: Path, conf: dict[str, str], ways: list[dict[str, str]]) -> None:
    spark = start_session("secrets", master="local[2]", driver_memory="600m", directory=directory, conf=conf)
    for number, options in enumerate(ways):
        query(spark, options, directory / f"checkpoint-{number}")


def query(spark: SparkSession, options: dict[str, str], checkpoint: Path) -> None:
    rows = spark.read.format("pulsar").options(**options, topic="there").load()
    rows.createOrReplaceTempView("messages")
    rows.select("value").write.format("pulsar").options(**options, topic="there").mode("append").save()
    print(spark.sql("SELECT count(*) FROM messages").collect())  # noqa: T201
    spark.sql("EXPLAIN EXTENDED SELECT * FROM messages").show(truncate=False)
    stream = spark.readStream.format("pulsar").options(**options, topic="there", startingOffsets="earliest").load()
    writing = stream.select("value").writeStream.format("pulsar").options(**options, topic="there")
    running = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    running.awaitTermination()
    assert running.lastProgress is not None
    print(running.lastProgress.json)  # noqa: T201
    running.explain(True)
    for failing in ({"topic": "absent"}, {"topic": "there", "no.such.option": "1"}):
        try:
            spark.read.format("pulsar").options(**options | failing).load().collect()
        except Exception as error:  # noqa: BLE001 - what it says is looked at
            print(error)  # noqa: T201
        else:
            raise AssertionError(f"not refused: {failing}")


if __name__ == "__main__":
    given_directory, *given = json.loads(sys.stdin.readline())
    run(Path(given_directory), *given)
    print("done", flush=True)  # noqa: T201
    sys.stdin.read()
    os._exit(0)  # threads may wait for Java

"""One Spark session that reads and writes as it is told, in lines: the same cases for either connector.

A program of its own, because every Spark has an environment of its own: it imports nothing but PySpark. Its argument is
a file with what to do in JSON; then each line of standard input names a case, and a line of output tells its seconds.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DONE = "done "
"""What lines of ours begin with: Java prints to the same output."""
AVRO_COLUMNS = (
    "concat('d', cast(id % 1000 as string)) as device",
    "id as number",
    "cast(id as double) / 7 as celsius",
    "id % 2 = 0 as ok",
    "if(id % 3 = 0, null, concat('note ', cast(id as string))) as note",
    "lpad(cast(id as string), 60, 'x') as text",
)


def main() -> None:
    """Work until standard input ends."""
    given = json.loads(Path(sys.argv[1]).read_text())
    cases = cases_of(session_of(given), given)
    print(f"{DONE}0", flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        cases[line.strip()]()
        print(f"{DONE}{time.perf_counter() - started}", flush=True)


def session_of(given: dict[str, Any]) -> "SparkSession":
    """Of two cores. Ours is started as its users start it; a connector in Java needs nothing but its JARs."""
    if given["ours"]:
        from interpulse.spark.session import start_session

        directory = Path(given["directory"])
        return start_session("cases", master="local[2]", driver_memory="1g", directory=directory, conf={})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("cases").master("local[2]")
    for name, value in given["conf"].items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def cases_of(spark: "SparkSession", given: dict[str, Any]) -> dict[str, Callable[[], None]]:
    """What can be asked for, by name. Rows to write lie in Spark's memory; rows that were read are dropped."""

    def read(topic: str) -> Callable[[], None]:
        def run() -> None:
            frame = spark.read.format("pulsar").options(**given["options"], topic=topic).load()
            frame.write.format("noop").mode("overwrite").save()

        return run

    def count(topic: str, messages: int) -> Callable[[], None]:
        def run() -> None:
            found = spark.read.format("pulsar").options(**given["options"], topic=topic).load().count()
            assert found == messages, f"{topic} has {messages} messages, {found} were read"

        return run

    def write(topic: str, rows: int, *columns: str, **options: str) -> Callable[[], None]:
        kept: list[DataFrame] = []

        def run() -> None:
            if not kept:
                made = spark.range(rows, numPartitions=2).selectExpr(*columns, f"'{topic}' as __topic")
                kept.append(made.cache())
                kept[0].count()
            # The connector in Scala cannot take the topic as an option: Spark 3.1 refuses how it hands it on.
            writing = kept[0].write.format("pulsar").options(**given["options"], **given["writing"], **options)
            writing.mode("append").save()

        return run

    reads, writes, topics = given["reads"], given["writes"], given["topics"]
    raw = "cast(lpad(cast(id as string), {}, 'x') as binary) as value"
    filling = {"batchingMaxMessages": "100"}
    return {
        "fill raw": write(topics["raw"], reads, raw.format(1024), **filling),
        "fill Avro": write(topics["Avro"], reads, *AVRO_COLUMNS, **filling),
        "count raw": count(topics["raw"], reads),
        "count Avro": count(topics["Avro"], reads),
        "read raw": read(topics["raw"]),
        "read Avro": read(topics["Avro"]),
        "write raw": write(topics["raw copies"], writes, raw.format(100)),
        "write Avro": write(topics["Avro copies"], writes, *AVRO_COLUMNS),
    }


if __name__ == "__main__":
    main()

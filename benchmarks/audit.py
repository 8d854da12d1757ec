"""How long the comparison of two inventories takes: topics that no cluster ever had, a part of them different.

    .venv/bin/python -m benchmarks.audit [--topics 1000000] [--different 1000]

Both inventories are made by Spark itself; the time is that of the comparison alone, with its differences written.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from interpulse.spark.audit.comparing import compare_inventories
from interpulse.spark.audit.inventory_job import INVENTORY_COLUMNS
from interpulse.spark.session import start_session


def main() -> None:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1_000_000, help="on each side")
    parser.add_argument("--different", type=int, default=1_000, help="topics with fewer partitions on the target")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-audit-") as directory:
        root = Path(directory)
        conf = {"spark.sql.shuffle.partitions": "16"}
        spark = start_session("audit benchmark", master=given.master, driver_memory="1g", directory=root, conf=conf)
        names = [column.split()[0] for column in INVENTORY_COLUMNS.split(", ")]
        types = [column.split()[1] for column in INVENTORY_COLUMNS.split(", ")]
        for side in ("east", "west"):
            count = f"if(id % {max(given.topics // max(given.different, 1), 1)} = 7 and '{side}' = 'west', 2, 4)"
            values = {
                "cluster": f"'{side}'",
                "tenant": "'t'",
                "namespace": "concat('t/n', id % 1000)",
                "domain": "'persistent'",
                "topic": "concat('persistent://t/n', id % 1000, '/topic-', id)",
                "mapped": "concat('persistent://t/n', id % 1000, '/topic-', id)",
                "kind": "'PARTITIONED'",
                "partitions": count,
                "exact": "true",
                "system": "false",
            }
            columns = [
                f"cast({values.get(name, 'null')} as {kind}) as {name}" for name, kind in zip(names, types, strict=True)
            ]
            spark.range(given.topics).selectExpr(*columns).write.parquet(str(root / side))
        inventories = [spark.read.schema(INVENTORY_COLUMNS).parquet(str(root / side)) for side in ("east", "west")]
        started, path = time.monotonic(), str(root / "differences")
        compare_inventories(*inventories, "west", None).write.parquet(path)
        seconds = time.monotonic() - started
        found = spark.read.parquet(path).count()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"topics on each side: {given.topics:,}")
        print(f"differences found: {found:,}")
        print(f"comparison: {seconds:.1f} s; this Python process at most {memory:.0f} MB")
        spark.stop()
    os._exit(0)


if __name__ == "__main__":
    main()

"""The differences of a run, read without Spark: for a plan, for people, and as tables of other formats."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.audit.comparing import DIFFERENCE_COLUMNS

_IN_JSON: Final = ("source_value", "target_value", "request")
Row = dict[str, Any]


class RunError(Exception):
    """A run without results; the message has the reason and the remedy."""


def read_findings(directory: Path, *, namespaces: Collection[str] = (), kinds: Collection[str] = ()) -> Iterator[Row]:
    """Yield the rows of ``differences`` below a run's directory, without order.

    ``namespaces`` and ``kinds`` limit them, if given. Raises RunError if the run has not compared yet.
    """
    from pyarrow import compute as c
    from pyarrow import dataset

    path = directory / "differences"
    if not (path / "_SUCCESS").exists():
        raise RunError(f"{path} does not exist: run audit compare first")
    wanted = c.scalar(True)
    for name, values in (("namespace", namespaces), ("kind", kinds)):
        if values:
            wanted &= c.field(name).isin(list(values))
    found = dataset.dataset(path, schema=arrow_schema(DIFFERENCE_COLUMNS), format="parquet")
    for batch in found.to_batches(filter=wanted):
        yield from batch.to_pylist()


def _write_csv(file: TextIO, rows: Iterable[Mapping[str, Any]]) -> None:
    writer = csv.DictWriter(file, arrow_schema(DIFFERENCE_COLUMNS).names)
    writer.writeheader()
    writer.writerows(rows)


def _write_json_lines(file: TextIO, rows: Iterable[Mapping[str, Any]]) -> None:
    file.writelines(f"{json.dumps(with_values(row), ensure_ascii=False)}\n" for row in rows)


def with_values(row: Mapping[str, Any]) -> Row:
    """Return the row with its values as JSON, where the table has their text."""
    read = {key: None if row[key] is None else json.loads(row[key]) for key in _IN_JSON}
    return {**row, **read}


FORMATS: Final = {".csv": _write_csv, ".jsonl": _write_json_lines}
"""The writers of tables, by the ending of the file."""


def write_findings(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table, row by row, in the format of the file's ending, one of FORMATS."""
    with path.open("w", encoding="utf-8", newline="") as file:
        FORMATS[path.suffix](file, rows)

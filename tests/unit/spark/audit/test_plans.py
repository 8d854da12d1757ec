"""Differences that a run has left, filtered and written in other formats, without Spark."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.audit.comparing import DIFFERENCE_COLUMNS
from interpulse.spark.audit.plans import RunError, read_findings, write_findings


def row(kind: str, namespace: str = "a/b", **more: Any) -> dict[str, Any]:
    return {"severity": "ERROR", "kind": kind, "namespace": namespace, "source_value": '{"partitions": 4}', **more}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "differences"
    path.mkdir(parents=True)
    schema = arrow_schema(DIFFERENCE_COLUMNS)
    for number, rows in enumerate(
        [[row("RETENTION"), row("TOPIC_MISSING", remedy="a, or b")], [row("RETENTION", "c/d")]]
    ):
        parquet.write_table(pa.Table.from_pylist(rows, schema), path / f"part-{number}.parquet")
    (path / "_SUCCESS").touch()
    return path.parent


def test_findings_when_filtered_then_are_those_of_the_namespaces_and_kinds(run: Path) -> None:
    assert len(list(read_findings(run))) == 3
    found = read_findings(run, namespaces=["a/b"], kinds=["RETENTION", "MESSAGE_TTL"])
    assert [(each["namespace"], each["kind"]) for each in found] == [("a/b", "RETENTION")]


def test_findings_when_written_then_another_program_reads_them(run: Path) -> None:
    write_findings(run / "found.csv", read_findings(run))
    with (run / "found.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == arrow_schema(DIFFERENCE_COLUMNS).names
    assert sorted(each["remedy"] for each in table) == ["", "", "a, or b"]
    write_findings(run / "found.jsonl", read_findings(run))
    lines = [json.loads(line) for line in (run / "found.jsonl").read_text().splitlines()]
    assert [each["source_value"] for each in lines] == [{"partitions": 4}] * 3


def test_findings_when_nothing_was_compared_then_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="absent/differences does not exist: run audit compare first"):
        next(read_findings(tmp_path / "absent"))

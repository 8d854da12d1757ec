"""What Spark's workers do with joined rows, as Arrow batches and without Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.audit.comparing import COMPARED, DIFFERENCE_COLUMNS, Judge, namespace_rows, topic_rows
from interpulse.spark.audit.inventory_job import INVENTORY_COLUMNS

TOPIC = "persistent://a/b/t"


def topic(partitions: int, **other: Any) -> dict[str, Any]:
    row = dict.fromkeys(COMPARED) | {"mapped": TOPIC, "kind": "PARTITIONED", "partitions": partitions, "exact": True}
    return row | other


def found(judge: Any, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    (batch,) = judge(iter([pa.RecordBatch.from_pylist(list(rows))]))
    assert batch.schema == arrow_schema(DIFFERENCE_COLUMNS)
    rows_found: list[dict[str, Any]] = batch.to_pylist()
    return rows_found


def test_topics_when_joined_then_differences_are_rows() -> None:
    rows = [
        {"source_name": TOPIC, "source": topic(4), "target": topic(2)},
        {"source_name": TOPIC, "source": topic(3, partition_indexes=[0, 2]), "target": topic(3)},
        {"source_name": None, "source": None, "target": topic(2)},
        {"source_name": TOPIC, "source": topic(4, error="refused"), "target": None},
    ]
    grown, lacking, remote = found(Judge("west", topic_rows), *rows)  # type: ignore[arg-type]
    assert (grown["kind"], grown["source_value"], grown["target_value"], grown["automatic"]) == (
        "TOPIC_PARTITIONS",
        '{"partitions": 4}',
        '{"partitions": 2}',
        True,
    )
    assert json.loads(grown["request"])["body"] == 4
    assert (lacking["kind"], lacking["request"]) == ("MISSING_PARTITION", None)
    assert (remote["kind"], remote["severity"], remote["source_name"]) == ("REMOTE_ONLY_TOPIC", "INFO", None)
    assert found(Judge("west", topic_rows)) == []


def test_namespaces_when_joined_then_differences_are_rows() -> None:
    def side(**policies: Any) -> dict[str, str]:
        return {"policies": json.dumps(policies), "settings": "{}"}

    rows = [
        {"namespace": "a/b", "source": side(message_ttl_in_seconds=5), "target": side()},
        {"namespace": "a/c", "source": side(), "target": None},
    ]
    ttl, missing = found(Judge("west", namespace_rows), *rows)  # type: ignore[arg-type]
    assert (ttl["kind"], ttl["source_value"], ttl["target_value"]) == ("MESSAGE_TTL", "5", "null")
    assert (missing["kind"], missing["namespace"], missing["source_name"]) == ("NAMESPACE_MISSING", "a/c", "a/c")


def test_columns_when_named_then_are_those_of_a_schema_that_workers_can_make() -> None:
    assert arrow_schema(INVENTORY_COLUMNS).field("partition_indexes").type == pa.list_(pa.int32())

"""The comparison of two inventories: joined by name, and rows that are not plainly equal go to the rules.

Differences are read again from both clusters before they are reported, so that a creation in progress does not show up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from interpulse.clock import now_ms
from interpulse.model.adjustments import Difference
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.change_forms import advice_of, request_of
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.comparison import inventory_differences, namespace_differences, topic_differences
from interpulse.spark.arrow_frames import arrow_schema, map_in_arrow
from interpulse.spark.audit.inventory_job import renamed, state_of, topic_row_of
from interpulse.spark.job.pipeline_config import ClusterAddress
from interpulse.spark.topic_map import TopicMap

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

DIFFERENCE_COLUMNS: Final = (
    "severity STRING, kind STRING, namespace STRING, topic STRING, field STRING, source_name STRING, "
    "source_value STRING, target_value STRING, source_origin STRING, target_origin STRING, remedy STRING, "
    "automatic BOOLEAN, request STRING, confirmed_at_ms BIGINT"
)
"""One row per difference; values and requests are JSON."""

COMPARED: Final = (
    *("mapped", "kind", "partitions", "partition_indexes", "exact"),
    *("schema_type", "schema_hash", "schema_versions", "subscriptions", "error"),
)
_HEALTHY: Final = "kind in ('PARTITIONED', 'NON_PARTITIONED') and partition_indexes is null and error is null"
Row = dict[str, Any]


def difference_row(
    difference: Difference, cluster: str, source_name: str | None, confirmed_at_ms: int | None = None
) -> Row:
    """Return a difference from the target ``cluster`` as a row of the table.

    ``source_name`` is the name of the topic or namespace on the source.
    """
    change = difference.change
    return {
        "severity": str(difference.severity),
        "kind": str(difference.kind),
        "namespace": str(difference.namespace),
        "topic": None if difference.topic is None else str(difference.topic),
        "field": difference.field,
        "source_name": source_name,
        "source_value": json.dumps(difference.source, sort_keys=True),
        "target_value": json.dumps(difference.target, sort_keys=True),
        "source_origin": difference.source_origin,
        "target_origin": difference.target_origin,
        "remedy": advice_of(difference, cluster),
        "automatic": change is not None,
        "request": None if change is None else json.dumps(request_of(change, local_only=True).to_json()),
        "confirmed_at_ms": confirmed_at_ms,
    }


def _namespace_of(name: str) -> NamespaceName:
    return TopicName.parse(name).namespace_name if "://" in name else NamespaceName.parse(name)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows, arrow_schema(DIFFERENCE_COLUMNS))


def compare_inventories(source: DataFrame, target: DataFrame, cluster: str, confirm: Confirm | None) -> DataFrame:
    """Return the differences of two inventories, with the columns of DIFFERENCE_COLUMNS.

    A namespace that one side could not read has none.
    """
    unread = source.union(target).where("topic is null and error is not null").select("namespace").distinct()
    here, there = (side.join(unread, "namespace", "left_anti") for side in (source, target))
    differences = _namespaces(here, there, cluster).unionByName(_topics(here, there, cluster))
    if confirm is None:
        return differences
    candidates = differences.repartition("namespace").sortWithinPartitions("namespace")
    return map_in_arrow(candidates, confirm, DIFFERENCE_COLUMNS)


def _namespaces(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
    from pyspark.sql import functions as f

    sides = [
        side.where("topic is null").select("namespace", f.struct("policies", "settings").alias(name))
        for side, name in ((source, "source"), (target, "target"))
    ]
    return map_in_arrow(
        sides[0].join(sides[1], "namespace", "left"), Judge(cluster, namespace_rows), DIFFERENCE_COLUMNS
    )


def _topics(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
    """Compare topics. Healthy ones that are equal on both sides need not reach Python: no rule finds a difference."""
    from pyspark.sql import functions as f

    sides = [
        side.where("topic is not null").select(
            f.col("mapped").alias("name"),
            f.col("topic").alias(f"{name}_name"),
            f.struct(*COMPARED).alias(name),
            f.struct("kind", "partitions", "schema_hash", "subscriptions").alias(f"{name}_summary"),
            f.expr(_HEALTHY).alias(f"{name}_healthy"),
        )
        for side, name in ((source, "source"), (target, "target"))
    ]
    joined = sides[0].join(sides[1], "name", "full")
    unequal = joined.where(
        "not (source_healthy and target_healthy and source_summary <=> target_summary) "
        "or source is null or target is null"
    )
    rows = unequal.select("source_name", "source", "target")
    return map_in_arrow(rows, Judge(cluster, topic_rows), DIFFERENCE_COLUMNS)


@dataclass(frozen=True)
class Judge:
    """The differences from the target ``cluster``, from batches of rows with both sides of a namespace or topic."""

    cluster: str
    rows_of: Callable[[str, Mapping[str, Any]], Iterable[Row]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([row for pair in batch.to_pylist() for row in self.rows_of(self.cluster, pair)])


def namespace_rows(cluster: str, pair: Mapping[str, Any]) -> Iterator[Row]:
    states = [None if pair[side] is None else state_of(**pair[side]) for side in ("source", "target")]
    for difference in namespace_differences(cluster, NamespaceName.parse(pair["namespace"]), *states):
        yield difference_row(difference, cluster, pair["namespace"])


def topic_rows(cluster: str, pair: Mapping[str, Any]) -> Iterator[Row]:
    sides = [None if pair[side] is None else topic_row_of(pair[side]) for side in ("source", "target")]
    for difference in topic_differences(*sides):
        yield difference_row(difference, cluster, pair["source_name"])


@dataclass(frozen=True)
class Confirm:
    """The differences that remain when their namespaces are read again on both sides."""

    source: ClusterAddress
    target: ClusterAddress
    rules: ReadingRules
    topic_map: TopicMap

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for namespace, candidates in groupby(rows, lambda row: row["namespace"]):
            yield _batch(asyncio.run(self._confirmed(namespace, list(candidates))))

    async def _confirmed(self, namespace: str, candidates: list[Row]) -> list[Row]:
        there = NamespaceName.parse(namespace)
        candidate_names = {(row["kind"], row["topic"], row["field"]): row["source_name"] for row in candidates}
        here = {_namespace_of(name) for name in candidate_names.values() if name is not None} or {there}
        topics = {row["topic"] for row in candidates}
        cluster = self.target.cluster
        async with (
            ClusterReading(self.source.admin(), self.rules) as source,
            ClusterReading(self.target.admin(), self.rules) as target,
        ):
            differences: list[Difference] = []
            for name in sorted(here, key=str):
                originals, copies = await asyncio.gather(
                    source.namespace(name, lambda topic: str(self.topic_map.target(topic)) in topics),
                    target.namespace(there, lambda topic: str(topic) in topics),
                )
                differences += inventory_differences(cluster, there, renamed(originals, self.topic_map), copies)
        rows = []
        for difference in differences:
            key = (str(difference.kind), difference.topic and str(difference.topic), difference.field)
            if key in candidate_names:
                rows.append(difference_row(difference, cluster, candidate_names[key], now_ms()))
        return rows

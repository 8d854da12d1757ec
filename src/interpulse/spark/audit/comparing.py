"""Two inventories compared: joined by name, and what is not plainly equal goes to the rules.

What they find is read again from both clusters before it is reported, so that a creation in progress does not show up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from interpulse.clock import now_ms
from interpulse.model.inventory import Difference
from interpulse.model.names import NamespaceName, TopicName
from interpulse.rules.audit import namespace_differences, topic_differences
from interpulse.spark.arrow_frames import arrow_schema, map_in_arrow
from interpulse.spark.audit.cluster_reading import ClusterReading, NamespaceContent, ReadingRules, differences_of
from interpulse.spark.audit.inventory_job import state_of, topic_row_of
from interpulse.spark.job.pipeline_config import ClusterAddress
from interpulse.spark.topic_map import TopicMap

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["COMPARED", "DIFFERENCE_COLUMNS", "Confirm", "JudgeNamespaces", "JudgeTopics", "compare_inventories"]

DIFFERENCE_COLUMNS: Final = (
    "severity STRING, kind STRING, namespace STRING, topic STRING, field STRING, source_name STRING, "
    "source_value STRING, target_value STRING, source_origin STRING, target_origin STRING, remedy STRING, "
    "automatic BOOLEAN, request STRING, confirmed_at_ms BIGINT"
)
"""One row per difference; values and requests are JSON."""

COMPARED: Final = (
    "mapped",
    "kind",
    "partitions",
    "partition_indexes",
    "exact",
    "schema_type",
    "schema_hash",
    "schema_versions",
    "subscriptions",
    "error",
)
_HEALTHY: Final = "kind in ('PARTITIONED', 'NON_PARTITIONED') and partition_indexes is null and error is null"
Row = dict[str, Any]


def difference_row(found: Difference, source_name: str | None, confirmed_at_ms: int | None = None) -> Row:
    """A difference as the table has it; ``source_name`` is what the topic or namespace is called on the source."""
    body = found.to_json()
    request = body.pop("request")
    values = {f"{side}_value": json.dumps(body.pop(side), sort_keys=True) for side in ("source", "target")}
    return {
        **body,
        **values,
        "source_name": source_name,
        "automatic": request is not None,
        "request": None if request is None else json.dumps(request),
        "confirmed_at_ms": confirmed_at_ms,
    }


def _namespace_of(name: str) -> NamespaceName:
    return TopicName.parse(name).namespace_name if "://" in name else NamespaceName.parse(name)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows, arrow_schema(DIFFERENCE_COLUMNS))


def compare_inventories(source: DataFrame, target: DataFrame, cluster: str, confirm: Confirm | None) -> DataFrame:
    """The differences of two inventories, with the columns of DIFFERENCE_COLUMNS.

    Nothing is said of a namespace that one side could not read.
    """
    unread = (
        source.where("topic is null and error is not null")
        .select("namespace")
        .union(target.where("topic is null and error is not null").select("namespace"))
    )
    here, there = (side.join(unread.distinct(), "namespace", "left_anti") for side in (source, target))
    found = _namespaces(here, there, cluster).unionByName(_topics(here, there, cluster))
    if confirm is None:
        return found
    return map_in_arrow(found.repartition("namespace").sortWithinPartitions("namespace"), confirm, DIFFERENCE_COLUMNS)


def _namespaces(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
    from pyspark.sql import functions as f

    sides = [
        side.where("topic is null").select("namespace", f.struct("policies", "settings").alias(name))
        for side, name in ((source, "source"), (target, "target"))
    ]
    return map_in_arrow(sides[0].join(sides[1], "namespace", "left"), JudgeNamespaces(cluster), DIFFERENCE_COLUMNS)


def _topics(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
    """What is equal on both sides and whole is no difference by any rule, so it is not carried to Python."""
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
    return map_in_arrow(rows, JudgeTopics(cluster), DIFFERENCE_COLUMNS)


@dataclass(frozen=True)
class JudgeNamespaces:
    """Rows with a namespace of both sides become its differences, one row each."""

    cluster: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([row for each in batch.to_pylist() for row in self._rows(each)])

    def _rows(self, row: Mapping[str, Any]) -> Iterator[Row]:
        states = [None if row[side] is None else state_of(**row[side]) for side in ("source", "target")]
        namespace = NamespaceName.parse(row["namespace"])
        for found in namespace_differences(self.cluster, namespace, *states):
            yield difference_row(found, row["namespace"])


@dataclass(frozen=True)
class JudgeTopics:
    """Rows with a topic of both sides become its differences, one row each."""

    cluster: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _batch([row for each in batch.to_pylist() for row in self._rows(each)])

    def _rows(self, row: Mapping[str, Any]) -> Iterator[Row]:
        sides = [None if row[side] is None else topic_row_of(row[side]) for side in ("source", "target")]
        for found in topic_differences(self.cluster, *sides):
            yield difference_row(found, row["source_name"])


@dataclass(frozen=True)
class Confirm:
    """Reads the namespaces of differences again, on both sides, and keeps what is still so."""

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
        known = {(row["kind"], row["topic"], row["field"]): row["source_name"] for row in candidates}
        here = {_namespace_of(name) for name in known.values() if name is not None} or {there}
        names = {row["topic"] for row in candidates}
        async with (
            ClusterReading(self.source, self.rules) as source,
            ClusterReading(self.target, self.rules) as target,
        ):
            found = [
                found
                for each in sorted(here, key=str)
                for found in differences_of(
                    self.target.cluster, there, *await self._both(source, target, each, there, names)
                )
            ]
        keys = ((each, (str(each.kind), each.topic and str(each.topic), each.field)) for each in found)
        return [difference_row(each, known[key], now_ms()) for each, key in keys if key in known]

    async def _both(
        self,
        source: ClusterReading,
        target: ClusterReading,
        here: NamespaceName,
        there: NamespaceName,
        names: Collection[str | None],
    ) -> tuple[NamespaceContent, NamespaceContent]:
        """A namespace on both sides, the source's topics under the names that they have on the target."""
        originals, copies = await asyncio.gather(
            source.namespace(here, lambda topic: str(self.topic_map.target(topic)) in names),
            target.namespace(there, lambda topic: str(topic) in names),
        )
        return originals.renamed(self.topic_map), copies

"""Two inventories as tables, read by Spark's tasks and compared: joined by name, and unequal rows go to the rules.

Differences are read again from both clusters before they are reported, so that a creation in progress does not show up.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interpulse.clock import now_ms
from interpulse.model.adjustments import Difference
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.replication.change_forms import advice_of, request_of
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.comparison import inventory_differences, namespace_differences, topic_differences
from interpulse.rules.inventory import NamespaceInventory, NamespaceState
from interpulse.spark.arrow_frames import arrow_schema, map_in_arrow
from interpulse.spark.session import OnProgress, file_url, task_progress
from interpulse.spark.topic_map import TopicMap

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

INVENTORY_COLUMNS: Final = (
    "cluster STRING, tenant STRING, namespace STRING, domain STRING, topic STRING, mapped STRING, kind STRING, "
    "partitions INT, partition_indexes ARRAY<INT>, exact BOOLEAN, system BOOLEAN, schema_type STRING, "
    "schema_hash STRING, schema_versions INT, subscriptions ARRAY<STRING>, policies STRING, settings STRING, "
    "collected_at_ms BIGINT, error STRING"
)
"""A row without topic is the namespace itself: its policies, and the settings of the broker that count for it."""

_NAMESPACES_AT_ONCE: Final = 16
_NAMESPACES_PER_TASK: Final = 50
_NAMESPACES_FIRST: Final = 4
"""The number of namespaces in the first part, for each task that runs at the same time."""

_PART_S: Final = 30.0
"""The reading time that a restart may repeat: until a part takes longer, the next one is larger."""

_PLAIN_FIELDS: Final = (
    *("partitions", "exact", "schema_type", "schema_hash", "schema_versions", "subscriptions", "error"),
)
"""Fields of a TopicRow with a column of their name and form."""

_ROWS_MAX: Final = 8192
Row = dict[str, Any]


def renamed(inventory: NamespaceInventory, topic_map: TopicMap) -> NamespaceInventory:
    """Return the inventory with the names that the topics have on the target."""
    topics = (row._replace(topic=_target_name(row.topic, topic_map)) for row in inventory.topics.values())
    return replace(inventory, topics={row.topic: row for row in topics})


def _target_name(topic: TopicName, topic_map: TopicMap) -> TopicName:
    return topic_map.target(topic) if topic.is_persistent else topic


def inventory_rows(
    cluster: str, namespace: NamespaceName, inventory: NamespaceInventory, topic_map: TopicMap
) -> Iterator[Row]:
    """Yield the rows of one namespace, by topic; none if it does not exist."""
    own: Row = {"cluster": cluster, "tenant": namespace.tenant, "namespace": str(namespace)}
    own["collected_at_ms"] = now_ms()
    if inventory.error is not None:
        yield own | {"error": inventory.error}
    if inventory.state is None:
        return
    policies, settings = inventory.state.policies.to_json(), dict(inventory.state.settings)
    yield own | {"policies": json.dumps(policies), "settings": json.dumps(settings)}
    for row in sorted(inventory.topics.values(), key=lambda row: str(row.topic)):
        yield own | {
            **{name: getattr(row, name) for name in _PLAIN_FIELDS},
            "domain": row.topic.domain,
            "topic": str(row.topic),
            "mapped": str(_target_name(row.topic, topic_map)),
            "kind": str(row.kind),
            "partition_indexes": row.indexes,
            "system": row.topic.is_system,
        }


def topic_row_of(row: Mapping[str, Any]) -> TopicRow:
    """Return the topic of a row of the table, under the name that it has on the target."""
    plain = {name: row[name] for name in _PLAIN_FIELDS}
    indexes, subscriptions = (
        None if row[key] is None else tuple(row[key]) for key in ("partition_indexes", "subscriptions")
    )
    plain |= {"indexes": indexes, "subscriptions": subscriptions}
    return TopicRow(topic=TopicName.parse(row["mapped"]), kind=ListedKind(row["kind"]), **plain)


def state_of(policies: str, settings: str) -> NamespaceState:
    """Return the state of a namespace from the texts of its row."""
    return NamespaceState(NamespacePolicies.from_json(json.loads(policies)), json.loads(settings))


@dataclass(frozen=True)
class ReadNamespaces:
    """The rows of namespaces, from batches of their names, in Spark's workers."""

    address: ClusterAddress
    rules: ReadingRules
    topic_map: TopicMap

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(INVENTORY_COLUMNS)
        names = [NamespaceName.parse(name) for batch in batches for name in batch.column(0).to_pylist()]
        rows: list[Row] = []
        for begin in range(0, len(names), _NAMESPACES_AT_ONCE):
            for namespace, inventory in asyncio.run(self._read(names[begin : begin + _NAMESPACES_AT_ONCE])):
                rows.extend(inventory_rows(self.address.cluster, namespace, inventory, self.topic_map))
            while len(rows) >= _ROWS_MAX:
                yield pa.RecordBatch.from_pylist(rows[:_ROWS_MAX], schema)
                rows = rows[_ROWS_MAX:]
        yield pa.RecordBatch.from_pylist(rows, schema)

    async def _read(self, names: Sequence[NamespaceName]) -> list[tuple[NamespaceName, NamespaceInventory]]:
        async with ClusterReading(self.address.admin(), self.rules) as reading:
            contents = await asyncio.gather(*map(reading.namespace, names))
        return list(zip(names, contents, strict=True))


def write_inventory(
    spark: SparkSession,
    address: ClusterAddress,
    path: Path,
    *,
    rules: ReadingRules,
    namespaces: Iterable[str],
    topic_map: TopicMap,
    on_progress: OnProgress,
) -> None:
    """Write all namespaces of a cluster, or these, to Parquet. ``on_progress`` gets the number of finished ones.

    They are written in parts, and finished parts are not read again. Raises the cluster's refusal to list its
    namespaces.
    """
    names = sorted(namespaces) or sorted(map(str, asyncio.run(_namespaces(address, rules))))
    path.mkdir(parents=True, exist_ok=True)
    parts = len(list(path.glob("part=*/_SUCCESS")))
    left = _not_in_parts(spark, path, parts, names) if parts else names
    at_once = spark.sparkContext.defaultParallelism
    size = at_once * _NAMESPACES_FIRST
    while left:
        reading, left = left[:size], left[size:]
        before, started = len(names) - len(reading) - len(left), time.monotonic()
        tasks = max(1, min(len(reading), max(at_once, -(-len(reading) // _NAMESPACES_PER_TASK))))
        frame = spark.createDataFrame([(name,) for name in reading], "namespace STRING").repartition(tasks, "namespace")
        read = ReadNamespaces(address, rules.shared(min(tasks, at_once)), topic_map)
        with task_progress(spark, partial(_report, on_progress, before, len(reading), len(names))):
            rows = map_in_arrow(frame, read, INVENTORY_COLUMNS)
            rows.write.mode("overwrite").parquet(file_url(path / f"part={parts}"))
        on_progress(before + len(reading), len(names))
        parts += 1
        if time.monotonic() - started < _PART_S:
            size *= 2
    (path / "_SUCCESS").touch()


def read_inventory(spark: SparkSession, path: Path) -> DataFrame:
    """Return all parts that `write_inventory` has written, with INVENTORY_COLUMNS."""
    return spark.read.schema(INVENTORY_COLUMNS).option("recursiveFileLookup", True).parquet(file_url(path))


def _not_in_parts(spark: SparkSession, path: Path, parts: int, names: Sequence[str]) -> list[str]:
    finished = [file_url(path / f"part={number}") for number in range(parts)]
    rows = spark.read.schema(INVENTORY_COLUMNS).parquet(*finished).where("topic is null").select("namespace").collect()
    return sorted({*names} - {row["namespace"] for row in rows})


def _report(on_progress: OnProgress, before: int, reading: int, total: int, done: int, tasks: int) -> None:
    on_progress(before + reading * done // tasks, total)


async def _namespaces(address: ClusterAddress, rules: ReadingRules) -> list[NamespaceName]:
    async with ClusterReading(address.admin(), rules) as reading:
        return await reading.namespaces()


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
    differences = _unequal_namespaces(here, there, cluster).unionByName(_unequal_topics(here, there, cluster))
    if confirm is None:
        return differences
    candidates = differences.repartition("namespace").sortWithinPartitions("namespace")
    return map_in_arrow(candidates, confirm, DIFFERENCE_COLUMNS)


def _unequal_namespaces(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
    from pyspark.sql import functions as f

    sides = [
        side.where("topic is null").select("namespace", f.struct("policies", "settings").alias(name))
        for side, name in ((source, "source"), (target, "target"))
    ]
    return map_in_arrow(
        sides[0].join(sides[1], "namespace", "left"), Judge(cluster, namespace_rows), DIFFERENCE_COLUMNS
    )


def _unequal_topics(source: DataFrame, target: DataFrame, cluster: str) -> DataFrame:
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
    """Yield the differences of one namespace."""
    states = [None if pair[side] is None else state_of(**pair[side]) for side in ("source", "target")]
    for difference in namespace_differences(cluster, NamespaceName.parse(pair["namespace"]), *states):
        yield difference_row(difference, cluster, pair["namespace"])


def topic_rows(cluster: str, pair: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the differences of one topic."""
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

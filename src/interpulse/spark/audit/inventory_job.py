"""All namespaces and topics of a cluster as a table, which Spark's tasks read; see `INVENTORY_COLUMNS`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interpulse.clock import now_ms
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.inventory import NamespaceInventory, NamespaceState
from interpulse.spark.arrow_frames import arrow_schema, map_in_arrow
from interpulse.spark.job.pipeline_config import ClusterAddress
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
        before, begun = len(names) - len(reading) - len(left), time.monotonic()
        tasks = max(1, min(len(reading), max(at_once, -(-len(reading) // _NAMESPACES_PER_TASK))))
        frame = spark.createDataFrame([(name,) for name in reading], "namespace STRING").repartition(tasks, "namespace")
        read = ReadNamespaces(address, rules.shared(min(tasks, at_once)), topic_map)
        with task_progress(spark, partial(_report, on_progress, before, len(reading), len(names))):
            rows = map_in_arrow(frame, read, INVENTORY_COLUMNS)
            rows.write.mode("overwrite").parquet(file_url(path / f"part={parts}"))
        on_progress(before + len(reading), len(names))
        parts += 1
        if time.monotonic() - begun < _PART_S:
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

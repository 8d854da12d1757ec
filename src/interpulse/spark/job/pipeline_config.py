"""Configuration file of the replication job (TOML): the source, the targets, and the topics and limits of copying.

Unknown tables and keys are refused with the nearest known ones. All problems are reported together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.replication.cluster_address import ClusterAddress, address_problems, sameness_problems
from interpulse.replication.connect import misnamed
from interpulse.replication.toml_tables import TableReader, load_tables, one_of
from interpulse.spark.job.start import Start, parse_start
from interpulse.spark.topic_map import TopicMap, parse_topic_map

FORWARD_ORIGIN: Final = "origin"
ON_MISMATCH_EXPAND: Final = "expand"
ON_MISMATCH_FAIL: Final = "fail"
SYNC_ALL: Final = "all"
SYNC_MARKED: Final = "marked"
SYNC_NONE: Final = "none"


class PipelineConfigError(ValueError):
    """A file that cannot be used. The message lists every problem."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Topics to copy: by the source's replication policies, or the namespaces and topics listed here."""

    from_policies: bool = False
    namespaces: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    exclude: str | None = None
    include_system_topics: bool = False


@dataclass(frozen=True, kw_only=True)
class ProvisionRules:
    """Permitted creations and changes on the target before the first entry is sent.

    ``on_mismatch`` decides about a topic whose partition count differs there.
    """

    create: bool = True
    namespaces: bool = False
    on_mismatch: str = "hold"
    ensure_deduplication: bool = True


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one micro-batch."""

    entries_per_batch: int = 40_000
    bytes_per_batch: int = 64 << 20
    tasks: int = 2
    poll_ms: int = 50
    discovery_ms: int = 1_000
    trigger_ms: int = 0
    run_ahead_ms: int | None = None
    """Time for which a task goes on copying what arrives; with 0 it ends with its ranges.

    None: 60 s where Spark runs on one machine, 5 s on a cluster.
    """


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """Address of the job's metrics for Prometheus. Port 0 turns them off."""

    port: int = 0
    host: str = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class SubscriptionSettings:
    """Subscriptions whose acknowledgements the two clusters exchange: those with ``include`` in the name.

    ``sync`` is "marked" for replicated subscriptions, "all" for all durable ones, or "none".
    """

    sync: str = SYNC_MARKED
    include: str | None = None
    interval_ms: int = 1_000
    rebuild_bytes_per_second: int = 20 << 20


@dataclass(frozen=True, kw_only=True)
class HeartbeatSettings:
    """A small message every ``interval_ms`` to a topic of the source in ``namespace``; None sends none."""

    namespace: str | None = None
    interval_ms: int = 10_000


@dataclass(frozen=True, kw_only=True)
class SparkSettings:
    """Settings of Spark when the job is not run by spark-submit. ``conf`` has any Spark key."""

    master: str = "local[16]"
    driver_memory: str = "1g"
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """Content of the whole file."""

    name: str
    state: Path
    source: ClusterAddress
    target: ClusterAddress | None = None
    select: Selection
    map: TopicMap = field(default_factory=TopicMap)
    provision: ProvisionRules = field(default_factory=ProvisionRules)
    limits: Limits = field(default_factory=Limits)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    subscriptions: SubscriptionSettings = field(default_factory=SubscriptionSettings)
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    start: Start = field(default_factory=Start)
    as_replicator: bool = False
    lane_epoch: int = 0
    copy_schemas: bool = True
    forward: str = "none"

    @property
    def carries_subscriptions(self) -> bool:
        """True if acknowledgements are exchanged. Several topics that are written to one exclude it."""
        return self.subscriptions.sync != SYNC_NONE and not self.map.merge

    @property
    def heartbeat_topic(self) -> TopicName | None:
        """Topic of heartbeats, which is not partitioned."""
        namespace = self.heartbeat.namespace
        return None if namespace is None else TopicName.parse(f"{namespace}/__interpulse_heartbeat-{self.name}")


def load_pipeline_config(path: str) -> PipelineConfig:
    """Read a file. Raise PipelineConfigError that names it."""
    return load_tables(path, parse_pipeline_config, PipelineConfigError)


async def check_cluster_name(table: str, address: ClusterAddress, admin: AdminClient) -> None:
    """Compare the cluster's own name with the file. Raise PipelineConfigError if they differ.

    Also raises the error of a cluster that does not answer.
    """
    problem = await misnamed(admin, address.cluster, address.admin_url)
    if problem is not None:
        raise PipelineConfigError(f"[{table}] cluster: {problem}")


_SECTIONS: Final[Mapping[str, type[Any]]] = {
    "source": ClusterAddress,
    "target": ClusterAddress,
    "select": Selection,
    "provision": ProvisionRules,
    "limits": Limits,
    "metrics": MetricsSettings,
    "subscriptions": SubscriptionSettings,
    "heartbeat": HeartbeatSettings,
    "spark": SparkSettings,
}
_TABLES: Final = {"map", *_SECTIONS}
"""Fields of PipelineConfig with a table of their own. The others are keys of ``[pipeline]``."""


def parse_pipeline_config(body: Mapping[str, Any]) -> PipelineConfig:
    """Check the parsed file. Raise PipelineConfigError that lists every problem."""
    reader = TableReader(strings=_STRINGS, kinds=_KINDS, may_be_zero=_MAY_BE_ZERO)
    problems = reader.problems
    reader.refuse_unknown(body, {"pipeline", *_TABLES}, "table")
    pipeline = reader.table(body, "pipeline")
    own = {item.name: str(item.type) for item in fields(PipelineConfig) if item.name not in _TABLES}
    values = reader.values(own, pipeline, "pipeline")
    _check_pipeline(pipeline, problems)
    sections: dict[str, Any] = {}
    for name, cls in _SECTIONS.items():
        if name in body:
            sections[name] = reader.section(cls, _in_present_form(reader.table(body, name)), name)
        elif name in ("source", "select"):
            problems.append(f"table [{name}] is required")
    source, target, select, subscriptions = map(sections.get, ("source", "target", "select", "subscriptions"))
    topic_map = _topic_map(reader, reader.table(body, "map"), select)
    if subscriptions is not None and subscriptions.sync != SYNC_NONE and topic_map.merge:
        problems.append(
            '[map] merge = true needs [subscriptions] sync = "none": a subscription there is of several topics'
        )
    if select is not None and not select.from_policies:
        _check_listing(select, problems, has_target="target" in body)
    if source is not None and target is not None:  # a pipeline into its own source would never end
        problems += sameness_problems(("source", "target"), source, target)
    for name, address in (("source", source), ("target", target)):
        if address is not None:
            problems += address_problems(name, address)
    if problems:
        raise PipelineConfigError("; ".join(problems))
    return PipelineConfig(map=topic_map, **sections, **(values | {"state": Path(values["state"])}))


def _check_pipeline(pipeline: Mapping[str, Any], problems: list[str]) -> None:
    name = pipeline.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        problems.append(
            "[pipeline] name is required: letters, digits and _.- ; it is part of producer and cursor names"
        )
    if not pipeline.get("state"):
        problems.append("[pipeline] state is required: the directory of checkpoint and lane files")


def _in_present_form(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table with the present form of a value of an earlier version."""
    sync = table.get("sync")
    return {**table, "sync": SYNC_ALL if sync else SYNC_NONE} if isinstance(sync, bool) else table


_STRINGS: Final[Mapping[str, Callable[[str], object]]] = {
    "forward": one_of("none", FORWARD_ORIGIN),
    "on_mismatch": one_of("hold", ON_MISMATCH_FAIL, ON_MISMATCH_EXPAND),
    "sync": one_of(SYNC_MARKED, SYNC_ALL, SYNC_NONE),
}
_KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {"Start": parse_start}
_MAY_BE_ZERO: Final = ("lane_epoch", "port", "run_ahead_ms", "trigger_ms")


def _topic_map(reader: TableReader, table: Mapping[str, Any], select: Selection | None) -> TopicMap:
    reader.refuse_unknown(table, {"rules", "merge"}, "key of [map]")
    try:
        topic_map = parse_topic_map(table)
    except ValueError as error:
        reader.problems.append(f"[map] {error}")
        return TopicMap()
    if topic_map and select is not None and select.from_policies:
        reader.problems.append("[map] is not for from_policies = true: policies replicate a topic under its own name")
    return topic_map


def _check_listing(select: Selection, problems: list[str], *, has_target: bool) -> None:
    if not (select.namespaces or select.topics):
        problems.append("[select] needs from_policies = true, or namespaces, or topics")
    if not has_target:
        problems.append("[target] is required unless [select] from_policies = true")

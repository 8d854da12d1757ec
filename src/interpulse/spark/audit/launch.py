"""One audit from a command line: inventories of both clusters, their comparison, and its summary.

Everything of a run is below ``DIRECTORY/RUN``: ``run.json`` with its options, the inventories of both clusters,
``differences`` and ``summary.json``. Finished steps are not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from interpulse.model.clusters import shown_address
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.cluster_reading import ReadingRules
from interpulse.spark.audit.comparing import (
    DIFFERENCE_COLUMNS,
    Confirm,
    Row,
    compare_inventories,
    read_inventory,
    write_inventory,
)
from interpulse.spark.job.pipeline_config import PipelineConfig, SparkSettings
from interpulse.spark.session import file_url, session_of_program, task_progress
from interpulse.spark.state_disk import write_atomically
from interpulse.spark.topic_map import TopicMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnStage = Callable[[str, int, int], None]
"""Callback with the stage, and the finished and total number of its namespaces, else of its tasks."""

_SHOWN_MAX: Final = 1000


class AuditError(Exception):
    """An audit that cannot be done; the message has the reason and the remedy."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The extent of a comparison. Without ``namespaces`` all of both clusters."""

    namespaces: tuple[str, ...] = ()
    confirm: bool = True
    rules: ReadingRules = field(default_factory=ReadingRules)


def summary(
    run: str,
    source: str,
    target: str,
    counts: Sequence[Row],
    covered: Mapping[str, Row],
    new: Sequence[Row] | None = None,
) -> Row:
    """Return the result of a run as JSON: counts by namespace and kind, and how much was read.

    It is ``same`` if there are only differences that ask for no action. ``new``: those that an earlier run did not
    have, if there is one to compare with.
    """
    is_same = all(row["severity"] == "INFO" for row in counts)
    unread = any(side["unread"] for side in covered.values())
    body: Row = {"run": run, "source": source, "target": target}
    body["result"] = "incomplete" if unread else "same" if is_same else "different"
    body |= {"covered": covered, "counts": counts}
    return body if new is None else body | {"new": new}


def audit_session(directory: Path, settings: SparkSettings) -> AbstractContextManager[SparkSession]:
    """Return a session; see `session_of_program`."""
    return session_of_program(
        "interpulse audit",
        master=settings.master,
        driver_memory=settings.driver_memory,
        directory=directory,
        conf={"spark.sql.shuffle.partitions": "16", **settings.conf},
    )


class Audit:
    """One run."""

    def __init__(
        self, spark: SparkSession, directory: Path, run: str, config: PipelineConfig, on_stage: OnStage
    ) -> None:
        if config.target is None:
            raise AuditError("[target] is needed: an audit compares two clusters")
        self._spark = spark
        self._directory = directory
        self._run = run
        self._config = config
        self._target = config.target
        self._on_stage = on_stage

    def take_inventories(self, options: AuditOptions) -> None:
        """Read both clusters. Namespaces that were read before are not read again.

        Raises AuditError for a run that was started with other options, and a cluster's refusal to list its namespaces.
        """
        self._begin(options)
        for address in (self._config.source, self._target):
            path = self._path(address.cluster)
            if (path / "_SUCCESS").exists():
                continue
            on_progress = partial(self._on_stage, f"reading {address.cluster}")
            on_progress(0, 1)
            is_source = address is self._config.source
            write_inventory(
                self._spark,
                address,
                path,
                rules=options.rules,
                namespaces=options.namespaces if is_source else self._namespaces_there(options.namespaces),
                topic_map=self._config.map if is_source else _AS_THEY_ARE,
                on_progress=on_progress,
            )

    def _begin(self, options: AuditOptions) -> None:
        path, asked = self._path("run.json"), self._asked(options)
        if not path.exists():
            write_atomically(path, json.dumps(asked, indent=2))
        elif other := [key for key, value in json.loads(path.read_text()).items() if asked[key] != value]:
            raise AuditError(
                f"{self._path('')} was started with other {', '.join(other)}: repeat those, or name another --run"
            )

    def _asked(self, options: AuditOptions) -> dict[str, Any]:
        """Return the options that the inventories of a run depend on, as JSON without credentials."""
        rules, names = options.rules, self._config.map
        sides = {"source": self._config.source, "target": self._target}
        return {
            **{name: [side.cluster, shown_address(side.admin_url)] for name, side in sides.items()},
            "map": [list(rule) for rule in names.rules],
            "namespaces": list(options.namespaces),
            **{name: getattr(rules, name) for name in ("exact", "schemas", "subscriptions")},
        }

    def _namespaces_there(self, namespaces: Sequence[str]) -> Sequence[str]:
        if not namespaces:
            return ()
        rows = self._inventory(self._config.source.cluster).where("mapped is not null")
        mapped = rows.selectExpr("regexp_extract(mapped, '://([^/]+/[^/]+)/', 1) as name").distinct().collect()
        return sorted({*namespaces, *(row["name"] for row in mapped)})

    def compare(self, options: AuditOptions, against: str | None = None) -> Row:
        """Compare the inventories, which are taken first if they are missing, and return the `summary`.

        Raises AuditError for an unknown run.
        """
        if against is not None and not (self._directory / against / "differences" / "_SUCCESS").exists():
            raise AuditError(f"--against {against}: {self._directory / against} has no differences of a finished run")
        self.take_inventories(options)
        path = self._path("differences")
        if not (path / "_SUCCESS").exists():
            here, there = (self._inventory(side.cluster) for side in (self._config.source, self._target))
            rules = options.rules.shared(self._spark.sparkContext.defaultParallelism)
            confirm = Confirm(self._config.source, self._target, rules, self._config.map)
            with self._shown("comparing"):
                compared = compare_inventories(here, there, self._target.cluster, confirm if options.confirm else None)
                compared.write.mode("overwrite").parquet(file_url(path))
        differences = self._differences(self._run)
        counts = differences.groupBy("namespace", "kind", "severity").count().orderBy("namespace", "kind").collect()
        sides = (self._config.source, self._target)
        body = summary(
            self._run,
            self._config.source.cluster,
            self._target.cluster,
            [row.asDict() for row in counts],
            {side.cluster: self._covered(side) for side in sides},
            None if against is None else self._new(differences, against),
        )
        write_atomically(self._path("summary.json"), json.dumps(body, indent=2))
        return body

    # ---- Parts

    def _path(self, name: str) -> Path:
        return self._directory / self._run / name

    def _inventory(self, cluster: str) -> DataFrame:
        return read_inventory(self._spark, self._path(cluster))

    def _differences(self, run: str) -> DataFrame:
        return self._spark.read.schema(DIFFERENCE_COLUMNS).parquet(file_url(self._directory / run / "differences"))

    @contextmanager
    def _shown(self, stage: str) -> Iterator[None]:
        self._on_stage(stage, 0, 1)
        with task_progress(self._spark, lambda done, total: self._on_stage(stage, done, total)):
            yield

    def _covered(self, side: ClusterAddress) -> dict[str, int]:
        """Return how much of a cluster was read.

        ``sampled`` topics were asked for their count although their partitions are complete; the count of
        ``sample_wrong`` was different.
        """
        in_sample = "kind = 'PARTITIONED' and exact and crc32(topic) % 100 = 0"
        counted = {
            "namespaces": "topic is null",
            "topics": "topic is not null",
            "unread": "error is not null",
            "sampled": in_sample,
            "sample_wrong": f"{in_sample} and size(partition_indexes) > 0",
        }
        columns = [f"count_if({condition}) as {name}" for name, condition in counted.items()]
        return self._inventory(side.cluster).selectExpr(*columns).collect()[0].asDict()

    def _new(self, differences: DataFrame, against: str) -> list[dict[str, Any]]:
        keys = ["kind", "namespace", "topic", "source_value", "target_value"]
        before = self._differences(against).select(*keys).alias("before")
        same = " and ".join(f"now.{key} <=> before.{key}" for key in keys)
        from pyspark.sql import functions as f

        new = differences.alias("now").join(before, f.expr(same), "left_anti").select(*keys).orderBy(*keys)
        return [row.asDict() for row in new.limit(_SHOWN_MAX).collect()]


_AS_THEY_ARE: Final = TopicMap()

"""One comparison as Spark jobs: both sides become digests, group by group of partitions, which are then judged.

The digests of a group are a directory of their own. An interrupted run finds the finished groups, and reads the others.
A group's source is read before its target, so messages published meanwhile are missing on neither side.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from interpulse.spark.arrow_frames import map_in_arrow
from interpulse.spark.job.pipeline_config import SparkSettings
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS
from interpulse.spark.session import OnProgress, file_url, session_of_program, task_progress
from interpulse.spark.state_disk import write_atomically
from interpulse.spark.verify.comparisons import CONTENT, Comparison, TopicPair, VerifyError
from interpulse.spark.verify.digests import DIGEST_COLUMNS, FINDING_COLUMNS, ContentDigests, Findings, PositionDigests
from interpulse.spark.verify.judging import JUDGED_COLUMNS, SOURCE, TARGET, Problem, judge

_GROUP_MIN: Final = 16
_EXAMPLES_MAX: Final = 20


TopicResult: TypeAlias = dict[str, int]
"""The counts of one topic, by position of one partition: COUNTS, and those of each Problem."""

COUNTS: Final = ("originals", "copies", "skipped", "older", "newer")
"""``skipped``: entries of the source that are not copied, because they are replicated themselves, for other clusters,
or markers. ``older``: copies whose originals the source no longer has, or that precede ``since_ms``. ``newer``: copies
whose originals were published during the run."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of a comparison. ``examples`` are some of the findings; the directory of the run has all of them."""

    comparison: Comparison
    topics: Mapping[str, TopicResult]
    examples: Sequence[Mapping[str, Any]]

    @property
    def is_same(self) -> bool:
        return not any(topic[problem] for topic in self.topics.values() for problem in Problem)

    def to_json(self) -> dict[str, Any]:
        return {
            "result": "same" if self.is_same else "different",
            "source": self.comparison.source.cluster,
            "target": self.comparison.target.cluster,
            "match": self.comparison.match,
            "topics": dict(self.topics),
            "examples": list(self.examples),
        }


def verify(spark: SparkSession, comparison: Comparison, directory: Path, on_progress: OnProgress) -> Report:
    """Compare, and write the Parquet files ``findings`` and ``topics`` and ``report.json`` to the directory.

    ``on_progress`` gets the number of finished partitions of both sides. All of Spark's machines must see the
    directory. Raises VerifyError, and errors of clusters and Spark.
    """
    return _Run(spark, comparison, directory, on_progress).report()


_Group: TypeAlias = tuple[Mapping[str, str], Mapping[str, str]]
"""Partitions of the source and of the target that are read together, each with the name of its rows."""


class _Run:
    def __init__(self, spark: SparkSession, comparison: Comparison, directory: Path, on_progress: OnProgress) -> None:
        self._spark = spark
        self._comparison = comparison
        self._directory = directory
        self._on_progress = on_progress
        self._by_content = comparison.match == CONTENT
        self._tasks = max(spark.sparkContext.defaultParallelism, 2)

    def report(self) -> Report:
        self._begin()
        groups = self._groups()
        self._read(groups)
        names = sorted({name for group in groups for side in group for name in side.values()})
        report = self._judge(names, {name for source, _ in groups for name in source.values()})
        write_atomically(self._directory / "report.json", json.dumps(report.to_json(), indent=2))
        shutil.rmtree(self._directory / "digests", ignore_errors=True)
        return report

    # ---- The plan

    def _begin(self) -> None:
        plan = self._directory / "plan.json"
        if (self._directory / "report.json").exists():
            raise VerifyError(f"{self._directory} holds the result of a finished run: name another directory")
        if plan.exists():
            if json.loads(plan.read_text())["comparison"] != self._comparison.to_json():
                raise VerifyError(
                    f"{self._directory} holds a run that was broken off, of other clusters or topics, or with other "
                    "options: go on with those, or name another directory"
                )
            return
        if self._directory.exists() and any(self._directory.iterdir()):
            raise VerifyError(f"{self._directory} is not empty: name another directory")

    def _groups(self) -> list[_Group]:
        """Return the groups that the first attempt planned, which later attempts reuse."""
        path = self._directory / "plan.json"
        if not path.exists():
            planned = {
                "comparison": self._comparison.to_json(),
                "sinceMs": self._comparison.since_ms,
                "atMs": self._comparison.at_ms,
                "groups": list(self._plan()),
            }
            write_atomically(path, json.dumps(planned))
        plan = json.loads(path.read_text())
        self._since_ms, self._at_ms = plan["sinceMs"], plan["atMs"]
        return [(source, target) for source, target in plan["groups"]]

    def _plan(self) -> Iterator[_Group]:
        pairs = self._comparison.topics
        here = self._comparison.source.partitions([pair.source for pair in pairs])
        there = self._comparison.target.partitions([pair.target for pair in pairs])
        if absent := [topic for topic, names in here.items() if not names]:
            cluster = self._comparison.source.cluster
            raise VerifyError(f"{', '.join(absent)}: not found on {cluster}; name topics that exist there")
        size = max(_GROUP_MIN, 4 * self._tasks)
        names = (self._names(pair, here[pair.source], there[pair.target]) for pair in pairs)
        parts = (part for name in names for part in name)
        while group := list(islice(parts, size)):
            source = {name: topic for names, _, topic in group for name in names}
            yield source, {name: topic for _, names, topic in group for name in names}

    def _names(
        self, pair: TopicPair, here: Sequence[str], there: Sequence[str]
    ) -> Iterator[tuple[Sequence[str], Sequence[str], str]]:
        """Yield the names on both sides that are matched with each other, and the name of their rows.

        These are topics by content, else partitions.
        """
        if self._by_content:
            yield here, there, pair.source
            return
        for index in range(max(len(here), len(there))):
            source, target = here[index : index + 1], there[index : index + 1]
            yield source, target, (source or [name.replace(pair.target, pair.source, 1) for name in target])[0]

    # ---- Reading

    def _read(self, groups: Sequence[_Group]) -> None:
        total = sum(len(names) for group in groups for names in group)
        done = 0

        def show_share(finished: int, tasks: int) -> None:
            self._on_progress(done + len(names) * finished // tasks, total)

        for number, group in enumerate(groups):
            for is_target, names in enumerate(group):
                path = self._digests(bool(is_target)) / f"{number:05}"
                if names and not (path / "_SUCCESS").exists():
                    with task_progress(self._spark, show_share):
                        self._rows(names, bool(is_target)).write.mode("overwrite").parquet(file_url(path))
                done += len(names)
                self._on_progress(done, total)

    def _digests(self, is_target: bool) -> Path:
        return self._directory / "digests" / ("target" if is_target else "source")

    def _rows(self, names: Mapping[str, str], is_target: bool) -> DataFrame:
        comparison = self._comparison
        side = comparison.target if is_target else comparison.source
        options = {**side.options, **self._start(is_target), "topics": ",".join(names), "preserveOrder": "true"}
        options["maxPartitions"] = str(min(len(names), 4 * self._tasks))
        if self._by_content:
            options |= {"valueSchema": "raw", "includeColumns": "__key,__topic,__ledgerId,__entryId,__batchIndex"}
            digests: Any = ContentDigests(names)
        else:
            options |= {"mode": "entry", "includeColumns": ",".join(ENTRY_WRITE_COLUMNS)}
            clusters = comparison.source.cluster, comparison.target.cluster
            digests = PositionDigests(names, *clusters, is_target, comparison.forwards)
        return map_in_arrow(self._spark.read.format("pulsar").options(**options).load(), digests, DIGEST_COLUMNS)

    def _start(self, is_target: bool) -> dict[str, str]:
        """Read the target from twice as far back: publish times of several producers do not rise evenly."""
        since = self._since_ms
        if since is None:
            return {}
        start = since - (self._at_ms - since) if is_target else since
        return {"startingTime": str(start), "startingOffsetsByTimestampStrategy": "latest"}

    # ---- Judging

    def _judge(self, names: Sequence[str], listed: set[str]) -> Report:
        results = {name: dict.fromkeys((*COUNTS, *map(str, Problem)), 0) for name in names}
        originals, copies = self._stored(is_target=False), self._stored(is_target=True)
        ranges = dict.fromkeys(listed, (2**63 - 1, 2**63 - 1))  # an empty topic has a range behind everything
        copied: dict[str, tuple[int, int]] = {}
        for row in _counted(originals):
            results[row["topic"]] |= {"originals": row["all"] - row["skipped"], "skipped": row["skipped"]}
            ranges[row["topic"]] = (row["first"], row["last"])
        for row in _counted(copies):
            results[row["topic"]]["copies"] = row["all"]
            if row["first"] is not None:
                copied[row["topic"]] = (row["first"], row["last"])
        if not self._by_content:
            copies = self._within(copies, ranges, results)
        here, there = (
            frame.withColumn("side", f.lit(side)).select(*JUDGED_COLUMNS)
            for frame, side in ((originals.where("skipped is null"), SOURCE), (copies, TARGET))
        )
        path = file_url(self._directory / "findings")
        judged = map_in_arrow(judge(here.unionByName(there)), Findings(copied), FINDING_COLUMNS)
        judged.write.mode("overwrite").parquet(path)
        findings = self._spark.read.schema(FINDING_COLUMNS).parquet(path)
        for row in findings.groupBy("topic", "problem").count().collect():
            results[row["topic"]][row["problem"]] = row["count"]
        ordered = findings.orderBy("topic", "problem", "source_place", "target_place")
        examples = [row.asDict() for row in ordered.limit(_EXAMPLES_MAX).collect()]
        self._write_topics(results)
        return Report(comparison=self._comparison, topics=results, examples=examples)

    def _stored(self, *, is_target: bool) -> DataFrame:
        paths = sorted(map(file_url, self._digests(is_target).glob("*")))
        if not paths:
            return self._spark.createDataFrame([], DIGEST_COLUMNS)
        return self._spark.read.schema(DIGEST_COLUMNS).parquet(*paths)

    def _within(
        self, copies: DataFrame, ranges: Mapping[str, tuple[int, int]], results: Mapping[str, TopicResult]
    ) -> DataFrame:
        """Return the copies of entries that were read on the source. The others cannot be judged, and are counted."""
        rows = [(topic, *bounds) for topic, bounds in ranges.items()]
        bounds = self._spark.createDataFrame(rows, "topic STRING, first BIGINT, last BIGINT")
        joined = copies.join(f.broadcast(bounds), "topic", "left")
        outside = f.when(f.col("position") < f.col("first"), "older").when(f.col("position") > f.col("last"), "newer")
        placed = joined.withColumn("outside", outside)
        for row in placed.where("outside is not null").groupBy("topic", "outside").count().collect():
            results[row["topic"]][row["outside"]] = row["count"]
        return placed.where("outside is null")

    def _write_topics(self, results: Mapping[str, TopicResult]) -> None:
        columns = ", ".join(f"{name} BIGINT" for name in next(iter(results.values())))
        rows = [(name, *result.values()) for name, result in results.items()]
        frame = self._spark.createDataFrame(rows, f"topic STRING, {columns}")
        frame.coalesce(1).write.mode("overwrite").parquet(file_url(self._directory / "topics"))


def _counted(rows: DataFrame) -> list[Row]:
    """Return the numbers of all and of skipped rows of each topic, with its first and last position."""
    first, last = f.min("position").alias("first"), f.max("position").alias("last")
    counts = f.count("*").alias("all"), f.count("skipped").alias("skipped")
    return rows.groupBy("topic").agg(*counts, first, last).collect()


def compare(
    comparisons: Sequence[Comparison],
    *,
    directory: Path | None,
    settings: SparkSettings,
    on_progress: Callable[[int, int], None],
) -> Iterator[Report]:
    """Yield the reports one by one. Each run has its own directory below ``directory``, kept only if one is passed.

    Raises SparkMissing, VerifyError, and errors of clusters and Spark. Threads that wait for Java may remain: the
    caller ends the process with ``os._exit``.
    """
    with ExitStack() as running:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="interpulse-verify-", ignore_cleanup_errors=True)
            directory = Path(running.enter_context(temporary))
        root = directory.absolute()
        spark = running.enter_context(
            session_of_program(
                "interpulse verify",
                master=settings.master,
                driver_memory=settings.driver_memory,
                directory=root,
                conf={"spark.sql.shuffle.partitions": "8", **settings.conf},
            )
        )
        for comparison in comparisons:
            yield verify(spark, comparison, root / comparison.target.cluster, on_progress)

"""The differences of a run, read without Spark: for a plan, for people, and as tables of other formats."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from interpulse.model.adjustments import Difference, DifferenceKind
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.cluster_reading import ClusterReading, ReadingRules
from interpulse.rules.comparison import namespace_differences, topic_differences
from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.audit.comparing import DIFFERENCE_COLUMNS, difference_row
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.state_disk import write_atomically

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


def with_values(row: Mapping[str, Any]) -> Row:
    """Return the row with its values as JSON, where the table has their text."""
    read = {key: None if row[key] is None else json.loads(row[key]) for key in _IN_JSON}
    return {**row, **read}


FORMATS: Final = (".csv", ".jsonl")
"""The endings of files that `write_findings` writes."""


def write_findings(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table, row by row, in the format of the file's ending, one of FORMATS."""
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(f"{json.dumps(with_values(row), ensure_ascii=False)}\n" for row in rows)
            return
        writer = csv.DictWriter(file, arrow_schema(DIFFERENCE_COLUMNS).names)
        writer.writeheader()
        writer.writerows(rows)


VERSION: Final = 1
_ORDER: Final = {str(kind): number for number, kind in enumerate(DifferenceKind)}
_CONCERNED: Final = ("kind", "namespace", "source_name", "topic", "field", "source_value", "target_value", "request")
_SAME: Final = ("kind", "topic", "field")
Item = dict[str, Any]


class PlanError(Exception):
    """The plan cannot be used; the message says why."""


def plan_of_run(directory: Path, config: PipelineConfig) -> dict[str, Any]:
    """Return the plan of a run's differences, read without Spark. Raise RunError if there are none."""
    found = read_findings(directory)
    return make_plan(found, run=directory.name, source=config.source.cluster, target=_target(config))


def make_plan(differences: Iterable[Mapping[str, Any]], *, run: str, source: str, target: str) -> dict[str, Any]:
    """Return a plan: namespaces first, then their policies, topics, partitions.

    Differences that need an operator are listed as excluded.
    """
    rows = sorted(differences, key=lambda row: (_ORDER[row["kind"]], row["namespace"], row["topic"] or ""))
    items = [{key: row[key] for key in _CONCERNED} for row in rows if row["request"] is not None]
    kept = ("severity", "kind", "namespace", "topic", "field", "remedy")
    return {
        "version": VERSION,
        "run": run,
        "source": source,
        "target": target,
        "items": [{**item, "hash": _hash(item)} for item in items],
        "excluded": [{key: row[key] for key in kept} for row in rows if row["request"] is None],
    }


def _hash(item: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([item[key] for key in _CONCERNED]).encode()).hexdigest()[:16]


def write_plan(path: Path, plan: Mapping[str, Any]) -> None:
    """Replace the file."""
    write_atomically(path, json.dumps(plan, indent=2) + "\n")


def load_plan(path: Path, config: PipelineConfig) -> dict[str, Any]:
    """Read a plan. Raise PlanError for a file that is no plan, was altered, or is for other clusters."""
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        if plan["version"] != VERSION:
            raise PlanError(f"{path}: a plan of version {plan['version']}, this program knows {VERSION}")
        pair, wanted = (plan["source"], plan["target"]), (config.source.cluster, _target(config))
        altered = [item for item in plan["items"] if _hash(item) != item["hash"]]
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"{path} is not a plan of audit plan: {error!r}") from None
    if pair != wanted:
        raise PlanError(f"{path} is for {pair[0]} -> {pair[1]}, the configuration names {wanted[0]} -> {wanted[1]}")
    if altered:
        item = altered[0]
        raise PlanError(f"{path}: {item['kind']} of {item['topic'] or item['namespace']} was altered; make a new plan")
    return dict(plan)


def _target(config: PipelineConfig) -> str:
    if config.target is None:
        raise PlanError("[target] is needed: an audit compares two clusters")
    return config.target.cluster


async def apply_plan(
    plan: Mapping[str, Any], config: PipelineConfig, results: Path, *, rate: float, schemas: bool = False
) -> AsyncIterator[tuple[Item, str, str]]:
    """Apply the plan. Yield each item with ``DONE``, ``SKIPPED`` or ``FAILED``, and the reason."""
    assert config.target is not None, "the plan was checked"
    done = _done(results)
    rules = ReadingRules(rate=rate, schemas=schemas)
    results.parent.mkdir(parents=True, exist_ok=True)
    async with (
        ClusterReading(config.source.admin(), rules) as source,
        ClusterReading(config.target.admin(), rules) as target,
    ):
        for item in plan["items"]:
            if item["hash"] in done:
                yield item, "DONE", "by an earlier run"
                continue
            status, reason = await _apply(item, source, target, config.target.cluster)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"hash": item["hash"], "status": status, "reason": reason}) + "\n")
            yield item, status, reason


def _done(results: Path) -> set[str]:
    if not results.exists():
        return set()
    lines = (json.loads(line) for line in results.read_text(encoding="utf-8").splitlines())
    return {line["hash"] for line in lines if line["status"] == "DONE"}


async def _apply(item: Item, source: ClusterReading, target: ClusterReading, cluster: str) -> tuple[str, str]:
    try:
        for difference in await _differences(item, source, target, cluster):
            now = difference_row(difference, cluster, item["source_name"])
            if any(now[key] != item[key] for key in _SAME):
                continue
            if any(now[key] != item[key] for key in ("source_value", "target_value", "request")):
                return "SKIPPED", f"it is {now['target_value']} now, and {now['source_value']} on the source"
            await target.apply(difference)
            return "DONE", ""
    except PulsarError as error:
        return "FAILED", str(error)
    return "SKIPPED", "it is no longer different"


async def _differences(item: Item, source: ClusterReading, target: ClusterReading, cluster: str) -> list[Difference]:
    here = item["source_name"]
    if item["topic"] is None:
        there = NamespaceName.parse(item["namespace"])
        states = [await source.state(NamespaceName.parse(here)), await target.state(there)]
        return namespace_differences(cluster, there, *states)
    name = TopicName.parse(item["topic"])
    original, copy = await source.topic(TopicName.parse(here)), await target.topic(name)
    return [] if original is None else topic_differences(original._replace(topic=name), copy)

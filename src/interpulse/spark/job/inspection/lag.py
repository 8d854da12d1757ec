"""Lag of a pipeline, from its checkpoint and both clusters, whether or not its job runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from interpulse.spark.job.inspection.finding import Finding
from interpulse.spark.job.inspection.inspection import Inspection, Standing
from interpulse.spark.job.pipeline_config import PipelineConfig

_SHOWN: Final = 50


async def measure_lag(config: PipelineConfig) -> tuple[Finding, list[dict[str, Any]]]:
    """Return one record per topic-partition and remote cluster, with the fields of the status records.

    Raises PulsarError if the source cannot be asked, and PipelineConfigError if it is another cluster.
    """
    records: list[dict[str, Any]] = []
    async with Inspection(config) as look:
        for remote, selection in (await look.selected()).items():
            names = selection.partitions()
            if selection.address is None:
                records += [{"topic": name, "cluster": remote, "problem": selection.problem} for name in names]
                continue
            route = await look.route(selection)
            records += [_record(remote, standing) for standing in await look.standings(route, names)]
    return _finding(records), records


def _record(remote: str, standing: Standing) -> dict[str, Any]:
    return {
        "topic": standing.name,
        "cluster": remote,
        "position": str(standing.done),
        **lag_fields(standing),
        "problem": standing.target_problem,
    }


def lag_fields(standing: Standing) -> dict[str, Any]:
    """Return the lag as fields of a status record."""
    backlog = standing.backlog
    return {"lagEntries": backlog.entries, "lagMessages": backlog.messages, "lagSeconds": backlog.seconds}


def _finding(records: Sequence[Mapping[str, Any]]) -> Finding:
    if any(record["problem"] for record in records):
        return Finding.UNKNOWN
    return Finding.DIFFERS if any(record["lagEntries"] for record in records) else Finding.SAME


def lag_as_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return lines for people: the topics most behind, then a sum for each cluster."""
    behind = [record for record in records if record.get("lagEntries") or record["problem"]]
    behind.sort(
        key=lambda record: (-(record.get("lagSeconds") or 0.0), -(record.get("lagEntries") or 0), record["topic"])
    )
    for record in behind[:_SHOWN]:
        problem = f"; {record['problem']}" if record["problem"] else ""
        yield f"{record['topic']} -> {record['cluster']}: {lag_as_text(record)}{problem}"
    if len(behind) > _SHOWN:
        yield f"... and {len(behind) - _SHOWN} more"
    for remote in dict.fromkeys(record["cluster"] for record in records):
        mine = [record for record in records if record["cluster"] == remote]
        waiting = sum(1 for record in mine if record.get("lagEntries") or record["problem"])
        if waiting:
            yield f"to {remote}: {waiting} of {len(mine)} topic-partitions are behind, {lag_as_text(lag_sum(mine))}"
        else:
            yield f"to {remote}: all {len(mine)} topic-partitions are copied"
    if not records:
        yield "nothing is selected"


def lag_sum(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the lag of several topic-partitions. The age is the oldest one; None if one is unknown."""
    entries = [record.get("lagEntries") for record in records]
    messages = [record.get("lagMessages") for record in records]
    seconds = [record.get("lagSeconds") for record in records]
    return {
        "lagEntries": None if None in entries else sum(filter(None, entries)),
        "lagMessages": None if None in messages else sum(filter(None, messages)),
        "lagSeconds": max(filter(None, seconds), default=None),
    }


def lag_as_text(record: Mapping[str, Any]) -> str:
    """Format entries, messages and seconds, where known."""
    entries, messages, seconds = (record.get(key) for key in ("lagEntries", "lagMessages", "lagSeconds"))
    if not entries:
        return "not known" if entries is None else "nothing"
    counted = f"{entries:,} {'entry' if entries == 1 else 'entries'}"
    if messages is not None:
        counted += f" with about {messages:,} {'message' if messages == 1 else 'messages'}" if messages else ""
    return counted if seconds is None else f"{counted}, {seconds:.1f} s"

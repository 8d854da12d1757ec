"""Explanation of why a topic is or is not copied: what holds it, since when, the remedy, and both clusters' state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from interpulse.model.errors import AuthorizationError, NotFound, NotSupported, PulsarError
from interpulse.model.names import TopicName
from interpulse.spark.job.inspection.dry_run import plan_at_target
from interpulse.spark.job.inspection.finding import Finding
from interpulse.spark.job.inspection.inspection import Inspection
from interpulse.spark.job.inspection.lag import lag_as_text, lag_fields
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.selection import RemoteSelection, partitions_of
from interpulse.spark.state_files import HeldRange


async def explain(config: PipelineConfig, topic: TopicName) -> tuple[Finding, list[str]]:
    """Return the lines of the answer, for every cluster that the topic is copied to.

    Raises PulsarError if the source cannot be asked, and PipelineConfigError if it is another cluster.
    """
    async with Inspection(config) as look:
        found = Finding.SAME
        lines: list[str] = []
        for remote, selection in (await look.selected()).items():
            if topic.base in selection.topics:
                finding, added = await _one_way(look, remote, selection, topic)
                found, lines = max(found, finding), [*lines, *added]
        if lines:
            return found, lines
        return Finding.DIFFERS, [f"{topic}: not copied", f"  reason: {await _why_not_selected(look, topic.base)}"]


async def _why_not_selected(look: Inspection, topic: TopicName) -> str:
    rules = look.config.select
    if not topic.is_persistent:
        return "non-persistent topics have no log"
    try:
        await look.source.topics.partitioned_metadata(topic)
    except NotFound:
        return f"it does not exist on {look.config.source.cluster}"
    if rules.exclude is not None and re.search(rules.exclude, str(topic)):
        return f"[select] exclude = {rules.exclude!r} matches it"
    if topic.is_system and not rules.include_system_topics:
        return "it is a system topic, and [select] include_system_topics is false"
    if rules.from_policies:
        return (
            f"neither its replication clusters nor those of {topic.namespace_name} name {look.config.source.cluster} "
            "and another registered cluster"
        )
    return "neither [select] topics nor namespaces names it"


async def _one_way(
    look: Inspection, remote: str, selection: RemoteSelection, topic: TopicName
) -> tuple[Finding, list[str]]:
    if selection.address is None:
        return Finding.DIFFERS, [f"{topic} -> {remote}: held", f"  reason: {selection.problem}"]
    route, count = await look.route(selection), selection.topics[topic.base]
    names = partitions_of(topic.base, count)
    if topic.is_partition and str(topic) not in names:
        return Finding.DIFFERS, [f"{topic} -> {remote}: not copied", f"  reason: {topic.base} has {count} partitions"]
    wanted = [str(topic)] if topic.is_partition else names
    async with route.target.admin() as target:
        plan, finding = await plan_at_target(look.config, target, topic.base, count)
    standings = await look.standings(route, wanted)
    held = {name: item for name, item in route.files.held().items() if name in wanted}
    if held or any(standing.backlog.entries for standing in standings):
        finding = max(finding, Finding.DIFFERS)
    if any(standing.target_problem for standing in standings):
        finding = Finding.UNKNOWN
    there = "" if not look.config.map else f" as {route.config.map.target(topic)}"
    lines = [f"{topic} -> {remote}{there}: {plan}"]
    for standing in standings:
        lines.append(f"  {standing.name}: copied up to {standing.done}, {lag_as_text(lag_fields(standing))} behind")
        if standing.written is not None:
            lines.append(f"    the last entry there is {standing.written} of the source")
        if standing.target_problem is not None:
            lines.append(f"    the target: {standing.target_problem}")
        if standing.name in held:
            lines += _held_lines(held[standing.name])
    return finding, [*lines, *await _status_lines(look, route, set(wanted))]


def _held_lines(held: HeldRange) -> Iterator[str]:
    yield f"    held behind {held.after} since {_date(held.since_ms)}, {held.attempts} attempts: {held.reason}"
    yield f"    next retry: {_date(held.retry_at_ms)}; the entries are kept on the source"


async def _status_lines(look: Inspection, route: Route, names: set[str]) -> list[str]:
    """Return what a running job reports, if the source keeps it."""
    topic = TopicName.parse(min(names))
    try:
        records = await look.source.topics.replication_status(topic.base)
    except (NotSupported, NotFound, AuthorizationError):
        return []
    except PulsarError as problem:
        return [f"  the source does not tell the status of the job: {problem}"]
    wanted = [record for record in records if record.get("topic") in names and record.get("cluster") == route.remote]
    return [line for record in wanted for line in _status_of(record)]


def _status_of(record: Mapping[str, Any]) -> Iterator[str]:
    since = f" since {_date(record['since'])}" if record.get("since") else ""
    yield f"  the job says of {record['topic']}: {record.get('state')}{since}"
    for key in ("reason", "remedy"):
        if record.get(key):
            yield f"    {key}: {record[key]}"
    if record.get("nextRetryAt"):
        yield f"    next retry: {_date(record['nextRetryAt'])}"


def _date(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

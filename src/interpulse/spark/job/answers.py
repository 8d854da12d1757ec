"""Answers about a pipeline, whether or not its job runs: its lag, its plan, and why a topic is not copied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import shown_address
from interpulse.model.errors import (
    AuthorizationError,
    NamespaceNotFound,
    NotConnected,
    NotFound,
    NotSupported,
    OperationTimeout,
    PulsarError,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import hold_texts, sentence_of
from interpulse.replication.connect import misnamed
from interpulse.replication.provision import partition_metadata
from interpulse.rules.provisioning import ProvisioningStep, may_grow, plan_topic
from interpulse.spark.job.cursors import Takeover, find_begins
from interpulse.spark.job.inspection import Finding, Inspection, Standing
from interpulse.spark.job.pipeline_config import (
    ON_MISMATCH_EXPAND,
    ON_MISMATCH_FAIL,
    PipelineConfig,
    check_cluster_name,
)
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.selection import RemoteSelection, check_start, partitions_of

_SHOWN: Final = 50
_LAG_FIELDS: Final = ("lagEntries", "lagMessages", "lagSeconds")


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
            for standing in await look.standings(route, names):
                record = {"topic": standing.name, "cluster": remote, "position": str(standing.done)}
                records.append(record | lag_fields(standing) | {"problem": standing.target_problem})
    if any(record["problem"] for record in records):
        return Finding.UNKNOWN, records
    return Finding.DIFFERS if any(record["lagEntries"] for record in records) else Finding.SAME, records


def lag_fields(standing: Standing) -> dict[str, Any]:
    """Return the lag as fields of a status record."""
    backlog = standing.backlog
    return dict(zip(_LAG_FIELDS, (backlog.entries, backlog.messages, backlog.seconds), strict=True))


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
    entries, messages, seconds = ([record.get(key) for record in records] for key in _LAG_FIELDS)
    lag = [None if None in counts else sum(filter(None, counts)) for counts in (entries, messages)]
    return dict(zip(_LAG_FIELDS, (*lag, max(filter(None, seconds), default=None)), strict=True))


def lag_as_text(record: Mapping[str, Any]) -> str:
    """Format entries, messages and seconds, where known."""
    entries, messages, seconds = map(record.get, _LAG_FIELDS)
    if not entries:
        return "not known" if entries is None else "nothing"
    counted = f"{entries:,} {'entry' if entries == 1 else 'entries'}"
    if messages:
        counted += f" with about {messages:,} {'message' if messages == 1 else 'messages'}"
    return counted if seconds is None else f"{counted}, {seconds:.1f} s"


_UNREACHABLE = (NotConnected, OperationTimeout)


async def print_plan(config: PipelineConfig) -> Finding:
    """Print topics, their target names, what would be created or held, and what waits. Nothing is changed.

    Raises PipelineConfigError if a cluster's name differs from the file, and PulsarError if the source cannot be asked.
    """
    async with Inspection(config) as look:
        selected = await look.selected()
        check_start(config, selected)
        if not selected:
            click.echo("nothing is selected: no policy names another registered cluster")
        return max([await _print_remote(look, *item) for item in selected.items()], default=Finding.SAME)


async def print_begins(config: PipelineConfig, takeover: Takeover) -> None:
    """Print where cursors would be moved to. Raise the errors of `find_begins`."""
    for begin in await find_begins(config, takeover):
        behind = "where its cursor is" if begin.after is None else f"behind {begin.after}, which {begin.cluster} holds"
        click.echo(f"  {begin.topic} would begin {behind}")


async def _print_remote(look: Inspection, remote: str, selection: RemoteSelection) -> Finding:
    address, config = selection.address, look.config
    if address is None:
        click.echo(f"to {remote}: nothing. {selection.problem}")
        return Finding.DIFFERS
    route = await look.route(selection)
    has_begun = route.checkpoint.exists()
    start = "where its checkpoint stands" if has_begun else config.start
    click.echo(f"to {remote} ({shown_address(address.service_url)}), start = {start}, cursor {route.cursor}")
    async with address.admin() as target:
        try:
            if config.target is not None:
                await check_cluster_name("target", address, target)
            elif (problem := await misnamed(target, remote, address.admin_url)) is not None:
                click.echo(f"  nothing: {problem}; register it under its own name")
                return Finding.DIFFERS
        except PulsarError as error:
            is_reached = not isinstance(error, _UNREACHABLE)
            problem = "asked" if is_reached else "reached, see that it is up and its admin URL right"
            click.echo(f"  {remote} cannot be {problem}: {error}")
            return Finding.UNKNOWN
        worst, waiting = Finding.SAME, await _waiting(look, selection)
        unmapped = config.map.problems(selection.topics)
        for topic, count in selection.topics.items():
            if topic in unmapped:
                plan, finding = f"held: {unmapped[topic]}", Finding.DIFFERS
            else:
                plan, finding = await plan_at_target(config, target, topic, count)
            there = "" if topic in unmapped or not config.map else f" -> {config.map.target(topic)}"
            click.echo(f"  {topic}{there}: {plan}; {waiting[topic]}")
            worst = max(worst, finding)
        return worst


async def _waiting(look: Inspection, selection: RemoteSelection) -> Mapping[TopicName, str]:
    """Return the backlog of each topic that is not copied yet."""
    names = {name: topic for topic, count in selection.topics.items() for name in partitions_of(topic, count)}
    waiting: dict[TopicName, list[dict[str, object]]] = {topic: [] for topic in selection.topics}
    for standing in await look.standings(await look.route(selection), names):
        waiting[names[standing.name]].append(lag_fields(standing))
    return {topic: f"{lag_as_text(lag_sum(rows))} waits" for topic, rows in waiting.items()}


async def plan_at_target(
    config: PipelineConfig, target: AdminClient, topic: TopicName, count: int
) -> tuple[str, Finding]:
    """Return what must happen before a topic with this many partitions is copied, or why it is held."""
    there, rules = config.map.target(topic), config.provision
    local = Existence(TopicKind.PARTITIONED, count) if count else Existence(TopicKind.NON_PARTITIONED)
    shape = f"{count} partitions" if count else "not partitioned"
    try:
        remote = await partition_metadata(target, there)
    except NamespaceNotFound:
        plan_text = f"held: namespace {there.namespace_name} does not exist there"
        if rules.namespaces and rules.create:
            plan_text = f"create namespace {there.namespace_name}, create a topic, {shape}; replicate"
        return plan_text, Finding.DIFFERS
    except _UNREACHABLE as error:
        return f"not known: {error}", Finding.UNKNOWN
    except PulsarError as error:
        return f"held: {error}", Finding.DIFFERS
    plan = plan_topic(topic, local, remote, may_create=rules.create, there=there)
    if plan.step is ProvisioningStep.HOLD:
        if rules.on_mismatch == ON_MISMATCH_EXPAND and may_grow(local, remote):
            return f"expand to {count} partitions; replicate", Finding.DIFFERS
        ends = rules.on_mismatch == ON_MISMATCH_FAIL and TopicKind.ABSENT is not remote.kind
        texts = "; ".join(hold_texts(topic, local, there, remote, plan))
        return f"{'the job would end' if ends else 'held'}: {texts}", Finding.DIFFERS
    if plan.change is None:
        return f"replicate, {shape}", Finding.SAME
    return f"{sentence_of(plan.change)}, {shape}; replicate", Finding.DIFFERS


async def explain(config: PipelineConfig, topic: TopicName) -> tuple[Finding, list[str]]:
    """Return the lines of the answer, for every cluster that the topic is copied to.

    Raises PulsarError if the source cannot be asked, and PipelineConfigError if it is another cluster.
    """
    async with Inspection(config) as look:
        selected = (await look.selected()).items()
        ways = [await _one_way(look, *item, topic) for item in selected if topic.base in item[1].topics]
        if ways:
            return max(finding for finding, _ in ways), [line for _, lines in ways for line in lines]
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
        if item := held.get(standing.name):
            lines += [
                f"    held behind {item.after} since {_date(item.since_ms)}, {item.attempts} attempts: {item.reason}",
                f"    next retry: {_date(item.retry_at_ms)}; the entries are kept on the source",
            ]
    return finding, [*lines, *await _status_lines(look, route, set(wanted))]


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

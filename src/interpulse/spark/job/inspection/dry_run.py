"""Description of what the replication job would do, without doing it."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import shown_address
from interpulse.model.errors import NamespaceNotFound, NotConnected, OperationTimeout, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import hold_texts, sentence_of
from interpulse.replication.connect import misnamed
from interpulse.replication.provision import partition_metadata
from interpulse.rules.provisioning import ProvisioningStep, may_grow, plan_topic
from interpulse.spark.job.inspection.finding import Finding
from interpulse.spark.job.inspection.inspection import Inspection
from interpulse.spark.job.inspection.lag import lag_as_text, lag_fields, lag_sum
from interpulse.spark.job.inspection.takeover import Takeover, find_begins
from interpulse.spark.job.pipeline_config import (
    ON_MISMATCH_EXPAND,
    ON_MISMATCH_FAIL,
    PipelineConfig,
    check_cluster_name,
)
from interpulse.spark.job.selection import RemoteSelection, check_start, partitions_of

_UNREACHABLE = (NotConnected, OperationTimeout)


def _say(text: str) -> None:
    print(text)  # noqa: T201 - the command's output


async def print_plan(config: PipelineConfig) -> Finding:
    """Print topics, their target names, what would be created or held, and what waits. Nothing is changed.

    Raises PipelineConfigError if a cluster's name differs from the file, and PulsarError if the source cannot be asked.
    """
    async with Inspection(config) as look:
        selected = await look.selected()
        check_start(config, selected)
        if not selected:
            _say("nothing is selected: no policy names another registered cluster")
        return max([await _print_remote(look, *item) for item in selected.items()], default=Finding.SAME)


async def print_begins(config: PipelineConfig, takeover: Takeover) -> None:
    """Print where cursors would be moved to. Raise the errors of `find_begins`."""
    for begin in await find_begins(config, takeover):
        behind = "where its cursor is" if begin.after is None else f"behind {begin.after}, which {begin.cluster} holds"
        _say(f"  {begin.topic} would begin {behind}")


async def _print_remote(look: Inspection, remote: str, selection: RemoteSelection) -> Finding:
    address, config = selection.address, look.config
    if address is None:
        _say(f"to {remote}: nothing. {selection.problem}")
        return Finding.DIFFERS
    route = await look.route(selection)
    has_begun = route.checkpoint.exists()
    start = "where its checkpoint stands" if has_begun else config.start
    _say(f"to {remote} ({shown_address(address.service_url)}), start = {start}, cursor {route.cursor}")
    async with address.admin() as target:
        try:
            if config.target is not None:
                await check_cluster_name("target", address, target)
            elif (problem := await misnamed(target, remote, address.admin_url)) is not None:
                _say(f"  nothing: {problem}; register it under its own name")
                return Finding.DIFFERS
        except _UNREACHABLE as error:
            _say(f"  {remote} cannot be reached, see that it is up and its admin URL right: {error}")
            return Finding.UNKNOWN
        except PulsarError as error:
            _say(f"  {remote} cannot be asked: {error}")
            return Finding.UNKNOWN
        found, waiting = Finding.SAME, await _waiting(look, selection)
        unmapped = config.map.problems(selection.topics)
        for topic, count in selection.topics.items():
            if topic in unmapped:
                plan, finding = f"held: {unmapped[topic]}", Finding.DIFFERS
            else:
                plan, finding = await plan_at_target(config, target, topic, count)
            there = "" if topic in unmapped or not config.map else f" -> {config.map.target(topic)}"
            _say(f"  {topic}{there}: {plan}; {waiting[topic]}")
            found = max(found, finding)
        return found


async def _waiting(look: Inspection, selection: RemoteSelection) -> Mapping[TopicName, str]:
    """Return the backlog of each topic that is not copied yet."""
    names = {name: topic for topic, count in selection.topics.items() for name in partitions_of(topic, count)}
    found: dict[TopicName, list[dict[str, object]]] = {topic: [] for topic in selection.topics}
    for standing in await look.standings(await look.route(selection), names):
        found[names[standing.name]].append(lag_fields(standing))
    return {topic: f"{lag_as_text(lag_sum(rows))} waits" for topic, rows in found.items()}


async def plan_at_target(
    config: PipelineConfig, target: AdminClient, topic: TopicName, count: int
) -> tuple[str, Finding]:
    """Return what must happen before a topic with this many partitions is copied, or why it is held."""
    there = config.map.target(topic)
    local = Existence(TopicKind.PARTITIONED, count) if count else Existence(TopicKind.NON_PARTITIONED)
    try:
        remote = await partition_metadata(target, there)
    except NamespaceNotFound:
        if config.provision.namespaces and config.provision.create:
            return (
                f"create namespace {there.namespace_name}, create a topic, {_shape(count)}; replicate",
                Finding.DIFFERS,
            )
        return f"held: namespace {there.namespace_name} does not exist there", Finding.DIFFERS
    except _UNREACHABLE as error:
        return f"not known: {error}", Finding.UNKNOWN
    except PulsarError as error:
        return f"held: {error}", Finding.DIFFERS
    plan = plan_topic(topic, local, remote, may_create=config.provision.create, there=there)
    if plan.step is ProvisioningStep.HOLD:
        if config.provision.on_mismatch == ON_MISMATCH_EXPAND and may_grow(local, remote):
            return f"expand to {count} partitions; replicate", Finding.DIFFERS
        texts = hold_texts(topic, local, there, remote, plan)
        if config.provision.on_mismatch == ON_MISMATCH_FAIL and TopicKind.ABSENT is not remote.kind:
            return f"the job would end: {'; '.join(texts)}", Finding.DIFFERS
        return f"held: {'; '.join(texts)}", Finding.DIFFERS
    shape = _shape(count)
    if plan.change is None:
        return f"replicate, {shape}", Finding.SAME
    return f"{sentence_of(plan.change)}, {shape}; replicate", Finding.DIFFERS


def _shape(count: int) -> str:
    return f"{count} partitions" if count else "not partitioned"

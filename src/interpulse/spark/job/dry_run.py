"""What the replication job would do, in words, without doing it."""

from __future__ import annotations

from enum import IntEnum

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import shown_address
from interpulse.model.errors import NamespaceNotFound, NotConnected, OperationTimeout, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.naming import misnamed
from interpulse.replication.provision import partition_metadata
from interpulse.rules.provisioning import ProvisioningStep, plan_topic
from interpulse.spark.job.pipeline_config import PipelineConfig, check_cluster_name
from interpulse.spark.job.selection import RemoteSelection, select

__all__ = ["Finding", "print_plan"]

_UNREACHABLE = (NotConnected, OperationTimeout)


class Finding(IntEnum):
    """The exit codes of a dry run, from good to bad."""

    READY = 0
    HELD = 1
    """Something would not be replicated."""
    UNREACHABLE = 5
    """A cluster gives no answer, so its topics are unknown."""


def _say(text: str) -> None:
    print(text)  # noqa: T201 - the command's output


async def print_plan(config: PipelineConfig) -> Finding:
    """Print topics, what would be created on the target, and what would be held; changes nothing.

    Raises PipelineConfigError when a cluster calls itself by another name than the file does.
    """
    async with config.source.admin() as source:
        try:
            await check_cluster_name("source", config.source, source)
            selected = await select(config, source)
        except PulsarError as error:
            _say(f"source cannot be asked: {error}")
            return Finding.UNREACHABLE if isinstance(error, _UNREACHABLE) else Finding.HELD
    if not selected:
        _say("nothing is selected: no policy names another registered cluster")
    return max([await _print_remote(config, *item) for item in selected.items()], default=Finding.READY)


async def _print_remote(config: PipelineConfig, remote: str, selection: RemoteSelection) -> Finding:
    address = selection.address
    if address is None:
        _say(f"to {remote}: nothing. {selection.problem}")
        return Finding.HELD
    _say(f"to {remote} ({shown_address(address.service_url)}), start = {config.start}")
    async with address.admin() as target:
        try:
            if config.target is not None:
                await check_cluster_name("target", address, target)
            elif (problem := await misnamed(target, remote, address.admin_url)) is not None:
                _say(f"  nothing: {problem}; register it under its own name")
                return Finding.HELD
        except _UNREACHABLE as error:
            _say(f"  {remote} cannot be reached, see that it is up and its admin URL right: {error}")
            return Finding.UNREACHABLE
        except PulsarError as error:
            _say(f"  {remote} cannot be asked: {error}")
            return Finding.HELD
        found = Finding.READY
        unmapped = config.map.problems(selection.topics)
        for topic, count in selection.topics.items():
            plan, finding = f"held: {unmapped.get(topic)}", Finding.HELD
            there = topic
            if topic not in unmapped:
                there = config.map.target(topic)
                plan, finding = await _plan(target, topic, there, count, config)
            _say(f"  {topic}{'' if there == topic else f' -> {there}'}: {plan}")
            found = max(found, finding)
        return found


async def _plan(
    target: AdminClient, topic: TopicName, there: TopicName, count: int, config: PipelineConfig
) -> tuple[str, Finding]:
    local = Existence(TopicKind.PARTITIONED, count) if count else Existence(TopicKind.NON_PARTITIONED)
    try:
        remote = await partition_metadata(target, there)
    except NamespaceNotFound:
        return f"held: namespace {there.namespace_name} does not exist there", Finding.HELD
    except _UNREACHABLE as error:
        return f"not known: {error}", Finding.UNREACHABLE
    except PulsarError as error:
        return f"held: {error}", Finding.HELD
    plan = plan_topic(topic, local, remote, may_create=config.provision.create, there=there)
    if plan.step is ProvisioningStep.HOLD:
        return f"held: {plan.reason}; {plan.remedy}", Finding.HELD
    shape = f"{count} partitions" if count else "not partitioned"
    if plan.step is ProvisioningStep.CONNECT:
        return f"replicate, {shape}", Finding.READY
    return f"{plan.step.value}, {shape}; replicate", Finding.READY

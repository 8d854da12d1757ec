"""What the replication job would do, in words, without doing it."""

from __future__ import annotations

from interpulse.client.admin import AdminClient
from interpulse.model.clusters import shown_address
from interpulse.model.errors import NamespaceNotFound, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.provision import topic_shape
from interpulse.rules.provisioning import ProvisioningStep, plan_topic
from interpulse.spark.pipeline_config import PipelineConfig
from interpulse.spark.selection import select

__all__ = ["print_plan"]


async def print_plan(config: PipelineConfig) -> int:
    """Print topics, what would be created on the target, and what would be held; changes nothing."""
    async with config.source.admin() as source:
        try:
            selected = await select(config, source)
        except PulsarError as error:
            print(f"source cannot be asked: {error}")  # noqa: T201 - the command's output
            return 1
        if not selected:
            print("nothing is selected: no policy names another registered cluster")  # noqa: T201 - the command's output
        for remote, selection in selected.items():
            if selection.address is None:
                print(f"to {remote}: nothing. {selection.problem}")  # noqa: T201 - as above
                continue
            print(f"to {remote} ({shown_address(selection.address.service_url)}), start = {config.start}")  # noqa: T201 - as above
            async with selection.address.admin() as target:
                for topic, count in selection.topics.items():
                    print(f"  {topic}: {await _plan(target, topic, count, config)}")  # noqa: T201 - as above
    return 0


async def _plan(target: AdminClient, topic: TopicName, count: int, config: PipelineConfig) -> str:
    local = Existence(TopicKind.PARTITIONED, count) if count else Existence(TopicKind.NON_PARTITIONED)
    try:
        remote = await topic_shape(target, topic)
    except NamespaceNotFound:
        return f"held: namespace {topic.namespace_name} does not exist there"
    except PulsarError as error:
        return f"held: {error}"
    plan = plan_topic(topic, local, remote, may_create=config.provision.create)
    if plan.step is ProvisioningStep.HOLD:
        return f"held: {plan.reason}; {plan.remedy}"
    shape = f"{count} partitions" if count else "not partitioned"
    return f"replicate, {shape}" if plan.step is ProvisioningStep.CONNECT else f"{plan.step.value}, {shape}; replicate"

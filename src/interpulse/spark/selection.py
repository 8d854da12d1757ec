"""Which topics go to which cluster, asked from the source's admin API."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from interpulse.client.admin import AdminClient
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import NotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies import NamespacePolicies
from interpulse.spark.pipeline_config import ClusterAddress, PipelineConfig, Selection

__all__ = ["RemoteSelection", "partitions_of", "select"]

_REQUESTS_MAX = 16
Answer = TypeVar("Answer")


@dataclass
class RemoteSelection:
    """What goes to one cluster: base topics with their partition counts (0 = not partitioned)."""

    address: ClusterAddress
    topics: dict[TopicName, int] = field(default_factory=dict)


def partitions_of(topic: TopicName, count: int) -> list[str]:
    """The names that hold the entries of a topic."""
    return [str(topic.partition(index)) for index in range(count)] if count else [str(topic)]


async def select(config: PipelineConfig, admin: AdminClient) -> dict[str, RemoteSelection]:
    """The present selection by remote cluster. Raises what the admin API refuses."""
    rules = config.select
    if not rules.from_policies:
        assert config.target is not None
        selection = RemoteSelection(config.target)
        for namespace in rules.namespaces:
            selection.topics |= await _topics_of(admin, NamespaceName.parse(namespace), rules)
        selection.topics |= await _counts(admin, [TopicName.parse(name) for name in rules.topics])
        return {config.target.cluster: selection}
    return await _by_policies(config, admin)


async def _by_policies(config: PipelineConfig, admin: AdminClient) -> dict[str, RemoteSelection]:
    """Namespaces whose policies name the source and a registered remote cluster."""
    selected: dict[str, RemoteSelection] = {}
    for namespace, policies in (await _namespaces(admin)).items():
        clusters = set(policies.replication_clusters)
        if config.source.cluster not in clusters:
            continue
        remotes = [name for name in sorted(clusters - {config.source.cluster}) if _is_wanted(config, name)]
        topics = await _topics_of(admin, namespace, config.select) if remotes else {}
        for remote in remotes:
            if remote not in selected:
                address = await _address(config, admin, remote)
                if address is None:
                    continue
                selected[remote] = RemoteSelection(address)
            selected[remote].topics |= topics
    return selected


def _is_wanted(config: PipelineConfig, remote: str) -> bool:
    return config.target is None or config.target.cluster == remote


async def _address(config: PipelineConfig, admin: AdminClient, remote: str) -> ClusterAddress | None:
    """The cluster record's URLs; None while the cluster is not registered or has none."""
    if config.target is not None:
        return config.target
    try:
        data: ClusterData = await admin.clusters.get(remote)
    except NotFound:
        return None
    service_url = data.broker_service_url or data.broker_service_url_tls
    admin_url = data.service_url or data.service_url_tls
    if not service_url or not admin_url:
        return None
    return ClusterAddress(cluster=remote, service_url=service_url, admin_url=admin_url)


async def _namespaces(admin: AdminClient) -> Mapping[NamespaceName, NamespacePolicies]:
    names = [
        NamespaceName.parse(str(name))
        for tenant in await admin.tenants.list()
        for name in await admin.namespaces.list(tenant)
    ]
    found = await _gathered(admin.namespaces.policies(name) for name in names)
    return {
        name: policies for name, policies in zip(names, found, strict=True) if isinstance(policies, NamespacePolicies)
    }


async def _topics_of(admin: AdminClient, namespace: NamespaceName, rules: Selection) -> dict[TopicName, int]:
    partitioned = {TopicName.parse(name) for name in await admin.topics.list_partitioned(namespace)}
    existing = {TopicName.parse(name) for name in await admin.topics.list(namespace)}
    plain = {topic for topic in existing if topic.base not in partitioned and not topic.is_partition}
    wanted = [topic for topic in sorted(partitioned | plain, key=str) if _is_copied(topic, rules)]
    return await _counts(admin, wanted)


def _is_copied(topic: TopicName, rules: Selection) -> bool:
    if not topic.is_persistent or (topic.is_system and not rules.include_system_topics):
        return False
    return rules.exclude is None or re.search(rules.exclude, str(topic)) is None


async def _counts(admin: AdminClient, topics: Iterable[TopicName]) -> dict[TopicName, int]:
    """Partition counts, asked without creating; topics that vanished meanwhile are left out."""
    names = list(topics)
    found = await _gathered(admin.topics.partitioned_metadata(name, create=False) for name in names)
    return {name: item.partitions for name, item in zip(names, found, strict=True) if not isinstance(item, NotFound)}


async def _gathered(calls: Iterable[Awaitable[Answer]]) -> list[Answer | NotFound]:
    """Ask concurrently, a bounded number at a time; what does not exist is an answer, other failures are raised."""
    slots = asyncio.Semaphore(_REQUESTS_MAX)

    async def ask(call: Awaitable[Answer]) -> Answer | NotFound:
        async with slots:
            try:
                return await call
            except NotFound as absent:
                return absent

    return list(await asyncio.gather(*(ask(call) for call in calls)))

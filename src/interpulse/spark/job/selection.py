"""Topics and the clusters they are copied to, from the source's admin API."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ServiceUrl
from interpulse.client.transport.http_session import parse_web_urls
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import AuthorizationError, NotAllowed, NotFound, NotSupported, RemoteClusterUnavailable
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.replication.connect import broker_url, credentials_of, tls_of, web_url
from interpulse.rules.replication import remote_clusters
from interpulse.spark.job.pipeline_config import ClusterAddress, PipelineConfig, PipelineConfigError, Selection
from interpulse.wire.cursor_promise import REPLICATION_CURSORS

log = logging.getLogger(__name__)

_REQUESTS_MAX = 16
Answer = TypeVar("Answer")


@dataclass
class RemoteSelection:
    """Selection for one cluster: base topics with their partition counts (0 = not partitioned).

    Without an address nothing is copied, and ``problem`` says what is wrong with the cluster's record.
    """

    address: ClusterAddress | None
    topics: dict[TopicName, int] = field(default_factory=dict)
    problem: str = ""

    def partitions(self) -> list[str]:
        """Names that hold the entries of all topics."""
        return [name for topic, count in self.topics.items() for name in partitions_of(topic, count)]


def partitions_of(topic: TopicName, count: int) -> list[str]:
    """Return the names that hold the entries of a topic."""
    return [str(topic.partition(index)) for index in range(count)] if count else [str(topic)]


async def select(config: PipelineConfig, admin: AdminClient) -> dict[str, RemoteSelection]:
    """Return the present selection by remote cluster. Raise refusals of the admin API."""
    rules = config.select
    if not rules.from_policies:
        assert config.target is not None
        selection = RemoteSelection(config.target)
        for namespace in rules.namespaces:
            selection.topics |= await _topics_of(admin, NamespaceName.parse(namespace), rules)
        named = [TopicName.parse(name) for name in rules.topics]
        heartbeat = config.heartbeat_topic
        selection.topics |= await _counts(admin, named if heartbeat is None else [*named, heartbeat])
        return {config.target.cluster: selection}
    return await _by_policies(config, admin)


def check_start(config: PipelineConfig, selected: Mapping[str, RemoteSelection]) -> None:
    """Raise PipelineConfigError if ``start`` names topics that are not selected."""
    unknown = config.start.unknown({name for selection in selected.values() for name in selection.partitions()})
    if unknown:
        raise PipelineConfigError(f"[pipeline] start names what is not selected: {', '.join(unknown)}; see [select]")


async def _by_policies(config: PipelineConfig, admin: AdminClient) -> dict[str, RemoteSelection]:
    """Return topics whose own policies, or else their namespace's, name the source and a registered remote cluster."""
    selected: dict[str, RemoteSelection] = {}
    for namespace, policies in (await _namespaces(admin)).items():
        for remote, topics in (await _remotes_of_topics(config, admin, namespace, policies)).items():
            if remote not in selected:
                try:
                    address = await _address(config, admin, remote)
                except NotFound:  # policies may name a cluster that is not registered yet
                    continue
                except RemoteClusterUnavailable as problem:
                    selected[remote] = RemoteSelection(None, problem=str(problem))
                else:
                    selected[remote] = RemoteSelection(address)
            selected[remote].topics |= topics
    return selected


async def _remotes_of_topics(
    config: PipelineConfig, admin: AdminClient, namespace: NamespaceName, policies: NamespacePolicies
) -> dict[str, dict[TopicName, int]]:
    """Return the topics of one namespace by replication cluster. Topics that are not replicated are not asked for."""
    local, default = config.source.cluster, policies.replication_clusters
    own = await _own_clusters(admin, namespace)
    topics = await _topics_of(admin, namespace, config.select) if remote_clusters(local, default) else {}
    named = (topic for topic in own if topic not in topics)
    topics |= await _counts(admin, [topic for topic in named if _is_copied(topic, config.select, named=True)])
    by_remote: dict[str, dict[TopicName, int]] = {}
    for topic, count in topics.items():
        for remote in remote_clusters(local, own.get(topic, default)):
            if _is_wanted(config, remote):
                by_remote.setdefault(remote, {})[topic] = count
    return by_remote


async def _own_clusters(admin: AdminClient, namespace: NamespaceName) -> dict[TopicName, tuple[str, ...]]:
    """Return the topics with replication clusters of their own.

    Apache Pulsar has to be asked topic by topic, and only about clusters that its tenant may use. If there is only one,
    there is nothing to ask.
    """
    try:
        own = await admin.namespaces.topics_with_clusters(namespace)
        return {TopicName.parse(name): tuple(clusters) for name, clusters in own.items()}
    except NotSupported:
        pass
    if len((await admin.tenants.get(namespace.tenant)).allowed_clusters) < 2:
        return {}
    names = {TopicName.parse(name).base for name in await admin.topics.list(namespace, domains=(PERSISTENT,))}
    bases = sorted(names, key=str)
    answers = await _gathered(_clusters_of_topic(admin, name) for name in bases)
    return {
        name: tuple(clusters)
        for name, clusters in zip(bases, answers, strict=True)
        if isinstance(clusters, list) and clusters
    }


async def _clusters_of_topic(admin: AdminClient, topic: TopicName) -> list[str] | None:
    try:
        return await admin.topics.replication_clusters(topic)
    except NotAllowed:  # topic policies are switched off there
        return None


def _is_wanted(config: PipelineConfig, remote: str) -> bool:
    return config.target is None or config.target.cluster == remote


async def _address(config: PipelineConfig, admin: AdminClient, remote: str) -> ClusterAddress:
    """Return the URLs and credentials of the cluster's record.

    Raises NotFound while it is not registered, and RemoteClusterUnavailable if its record cannot be used.
    """
    if config.target is not None:
        return config.target
    data: ClusterData = await admin.clusters.get(remote)
    try:
        credentials = credentials_of(remote, data)
        named = credentials if credentials is not None and credentials.method != "tls" else None
        service_url, admin_url = broker_url(remote, data), web_url(remote, data)
        ServiceUrl.parse(service_url)
        parse_web_urls(admin_url)
        tls = tls_of(data).showing(credentials, service_url).showing(credentials, admin_url)
        return ClusterAddress(
            cluster=remote,
            service_url=service_url,
            admin_url=admin_url,
            auth_plugin=None if named is None else named.plugin,
            auth_params=None if named is None else named.source,
            trust_certs_file=tls.trust_certs_path,
            tls_allow_insecure_connection=tls.insecure_allowed,
            certificate_file=tls.certificate_path,
            key_file=tls.key_path,
            listener_name=data.listener_name or None,
        )
    except ValueError as problem:
        raise RemoteClusterUnavailable(f"Cluster {remote}: {problem}") from problem


async def _namespaces(admin: AdminClient) -> Mapping[NamespaceName, NamespacePolicies]:
    names = [
        NamespaceName.parse(str(name))
        for tenant in await admin.tenants.list()
        for name in await admin.namespaces.list(tenant)
    ]
    answers = await _gathered(admin.namespaces.policies(name) for name in names)
    return {
        name: policies for name, policies in zip(names, answers, strict=True) if isinstance(policies, NamespacePolicies)
    }


async def _topics_of(admin: AdminClient, namespace: NamespaceName, rules: Selection) -> dict[TopicName, int]:
    system = rules.include_system_topics
    names = await admin.topics.list_partitioned(namespace, domains=(PERSISTENT,), system_included=system)
    partitioned = {TopicName.parse(name) for name in names}
    listed = await admin.topics.list(namespace, domains=(PERSISTENT,), system_included=system)
    existing = {TopicName.parse(name) for name in listed}
    plain = {topic for topic in existing if topic.base not in partitioned and not topic.is_partition}
    wanted = [topic for topic in sorted(partitioned | plain, key=str) if _is_copied(topic, rules)]
    return await _counts(admin, wanted)


def _is_copied(topic: TopicName, rules: Selection, *, named: bool = False) -> bool:
    """Return True for a system topic only if the job includes them, or its own policies name clusters (``named``)."""
    if not topic.is_persistent or (topic.is_system and not (rules.include_system_topics or named)):
        return False
    return rules.exclude is None or re.search(rules.exclude, str(topic)) is None


async def _counts(admin: AdminClient, topics: Iterable[TopicName]) -> dict[TopicName, int]:
    """Return partition counts, without creating topics. Topics that vanished meanwhile are left out."""
    names = list(topics)
    answers = await _gathered(admin.topics.partitioned_metadata(name, create=False) for name in names)
    return {name: item.partitions for name, item in zip(names, answers, strict=True) if not isinstance(item, NotFound)}


async def _gathered(calls: Iterable[Awaitable[Answer]]) -> list[Answer | NotFound]:
    """Ask concurrently, within a bound. An absent topic is an answer; other failures are raised."""
    slots = asyncio.Semaphore(_REQUESTS_MAX)

    async def ask(call: Awaitable[Answer]) -> Answer | NotFound:
        async with slots:
            try:
                return await call
            except NotFound as absent:
                return absent

    return list(await asyncio.gather(*(ask(call) for call in calls)))


async def is_interpulse(admin: AdminClient) -> bool:
    """Return True if the cluster keeps replication cursors and status records, as ours do.

    Raises the error of a cluster that does not answer: taken for a no, replication would continue at another cursor.
    """
    try:
        return "replicationJob" in await admin.brokers.runtime_configuration()
    except (AuthorizationError, NotFound):
        return False


async def cursor_name(admin: AdminClient, config: PipelineConfig, remote: str) -> str:
    """Return the name of the durable cursor. On Apache Pulsar, ``pulsar.repl.*`` belongs to its own replicator."""
    return f"{REPLICATION_CURSORS}{remote}" if await is_interpulse(admin) else f"interpulse.{config.name}"

"""Topics and the clusters they are copied to, from the source's admin API."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ServiceUrl
from interpulse.client.transport.web_urls import parse_web_urls
from interpulse.in_turns import concurrently
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import (
    AuthorizationError,
    Conflict,
    NotAllowed,
    NotFound,
    NotSupported,
    RemoteClusterUnavailable,
)
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.replication.connect import broker_url, credentials_of, tls_of, web_url
from interpulse.rules.failover_role import is_of_one_site
from interpulse.rules.replication import remote_clusters
from interpulse.spark.job.pipeline_config import PipelineConfig, PipelineConfigError, Selection
from interpulse.wire.cursor_promise import REPLICATION_CURSORS

Name = TypeVar("Name", NamespaceName, TopicName)
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
    if rules.from_policies:
        return await _by_policies(config, admin)
    assert config.target is not None
    selection = RemoteSelection(config.target)
    for namespace in rules.namespaces:
        selection.topics |= await _topics_of(admin, NamespaceName.parse(namespace), rules)
    named = [TopicName.parse(name) for name in rules.topics]
    selection.topics |= await _counts(admin, [*named, *filter(None, [config.heartbeat_topic])])
    return {config.target.cluster: selection}


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
                    selected[remote] = RemoteSelection(await _address(config, admin, remote))
                except NotFound:  # policies may name a cluster that is not registered yet
                    continue
                except RemoteClusterUnavailable as problem:
                    selected[remote] = RemoteSelection(None, problem=str(problem))
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
            if config.target is None or config.target.cluster == remote:
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
    answers = await _answers(partial(_clusters_of_topic, admin), sorted(names, key=str))
    return {name: tuple(clusters) for name, clusters in answers.items() if clusters}


async def _clusters_of_topic(admin: AdminClient, topic: TopicName) -> list[str] | None:
    try:
        return await admin.topics.replication_clusters(topic)
    except NotAllowed:  # topic policies are switched off there
        return None


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
    tenants = await admin.tenants.list()
    names = [NamespaceName.parse(str(name)) for tenant in tenants for name in await admin.namespaces.list(tenant)]
    return await _answers(admin.namespaces.policies, names)


async def _topics_of(admin: AdminClient, namespace: NamespaceName, rules: Selection) -> dict[TopicName, int]:
    system = rules.include_system_topics
    names = await admin.topics.list_partitioned(namespace, domains=(PERSISTENT,), system_included=system)
    listed = await admin.topics.list(namespace, domains=(PERSISTENT,), system_included=system)
    partitioned, existing = set(map(TopicName.parse, names)), set(map(TopicName.parse, listed))
    plain = {topic for topic in existing if topic.base not in partitioned and not topic.is_partition}
    wanted = [topic for topic in sorted(partitioned | plain, key=str) if _is_copied(topic, rules)]
    return await _counts(admin, wanted)


def _is_copied(topic: TopicName, rules: Selection, *, named: bool = False) -> bool:
    """Return True for the topics that are copied.

    System topics are if the job includes them, or if their own policies name clusters (``named``); those that a
    failover keeps at each site are not.
    """
    if (
        not topic.is_persistent
        or is_of_one_site(topic)
        or (topic.is_system and not (rules.include_system_topics or named))
    ):
        return False
    return rules.exclude is None or re.search(rules.exclude, str(topic)) is None


async def _counts(admin: AdminClient, topics: Iterable[TopicName]) -> dict[TopicName, int]:
    """Return partition counts, without creating topics. Topics that vanished meanwhile are left out."""
    answers = await _answers(partial(admin.topics.partitioned_metadata, create=False), topics)
    return {name: metadata.partitions for name, metadata in answers.items()}


async def _answers(ask: Callable[[Name], Awaitable[Answer]], names: Iterable[Name]) -> dict[Name, Answer]:
    """Ask about names concurrently, without absent ones. Other failures are raised."""

    async def answer(name: Name) -> list[tuple[Name, Answer]]:
        try:
            return [(name, await ask(name))]
        except NotFound:
            return []

    return dict(chain.from_iterable(await concurrently(answer, names)))


async def is_interpulse(admin: AdminClient) -> bool:
    """Return True if the cluster keeps replication cursors and status records, as ours do.

    Raises the error of a cluster that does not answer: taken for a no, replication would continue at another cursor.
    """
    try:
        return "replicationJob" in await admin.brokers.runtime_configuration()
    except (AuthorizationError, NotFound):
        return False


async def reports_acknowledgements(admin: AdminClient, namespace: NamespaceName) -> bool:
    """Return True if brokers say themselves which acknowledgements in a namespace are new.

    The call itself tells a job that may not see the configuration. Raises the error of a cluster that does not answer.
    """
    try:
        return "supportsAcknowledgementSync" in await admin.brokers.runtime_configuration()
    except NotFound:
        return False
    except AuthorizationError:
        pass
    try:
        await admin.namespaces.acknowledgements(namespace)
    except Conflict:
        return True  # they are turned off there
    except (NotFound, NotSupported):
        return False
    return True


async def cursor_name(admin: AdminClient, config: PipelineConfig, remote: str) -> str:
    """Return the name of the durable cursor. On Apache Pulsar, ``pulsar.repl.*`` belongs to its own replicator."""
    return f"{REPLICATION_CURSORS}{remote}" if await is_interpulse(admin) else f"interpulse.{config.name}"

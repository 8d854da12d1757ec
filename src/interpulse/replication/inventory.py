"""Inventory of a namespace, read through one small interface from the local and from other clusters.

Previews, audits and the topic doctor use `read_topics`. It makes few requests: topics are listed with their counts.
Apache Pulsar lists names only; then the counts of partitioned topics are requested, with limited concurrency.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from interpulse.in_turns import concurrently, in_turns
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import (
    InvalidTopicName,
    NamespaceNotFound,
    NotFound,
    PulsarError,
    RemoteClusterUnavailable,
    TenantNotFound,
)
from interpulse.model.inventory import TopicRow
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.inventory import (
    NamespaceInventory,
    NamespaceState,
    TopicLists,
    needs_settings,
    with_count,
)

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.model.policies.policy_documents import NamespacePolicies

T = TypeVar("T")
Connect = Callable[[str, ClusterData], "AdminClient"]
"""Function that creates a client for a cluster. The caller closes it. Raises RemoteClusterUnavailable."""
Failed = Callable[[TopicRow, PulsarError], TopicRow | None]
"""Function that returns the row of a topic whose request failed, returns None to omit it, or raises the error."""

_BOTH: Final[tuple[Domain, ...]] = (PERSISTENT, NON_PERSISTENT)
_ROWS_MAX: Final = 64
"""Maximum number of rows that are completed at the same time; their requests have bounds of their own."""
_QUESTIONS_MAX: Final = 16
"""Maximum number of concurrent requests per cluster: a comparison must not displace the cluster's own work."""


class NamespaceReading(Protocol):
    """Requests to a cluster. They create nothing. A missing namespace raises NamespaceNotFound.

    Lists include system topics.
    """

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies: ...

    async def settings(self) -> Mapping[str, str]:
        """Return the broker's configuration in force, by Pulsar's keys."""

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        """Return partitioned topics with their counts. None: request `metadata`."""

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        """Return topics and partitions. Non-persistent ones are those that are loaded."""

    async def metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        """Return the partition metadata of a topic. Raise NotFound."""


class Paced(Protocol):
    """Wrapper of requests that limits their rate, or repeats them. It returns the answer of a call."""

    async def __call__(self, ask: Callable[[], Awaitable[T]], requests: int = 1) -> T: ...


class AdminReading:
    """Reading through the admin API. Listed names that are not topic names are passed to ``unreadable``."""

    def __init__(
        self, admin: AdminClient, *, read: Paced | None = None, unreadable: Callable[[str], None] | None = None
    ) -> None:
        self._admin = admin
        self._read: Paced = read or _at_once
        self._unreadable = unreadable

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        return await self._read(lambda: self._admin.namespaces.policies(namespace))

    async def settings(self) -> Mapping[str, str]:
        return await self._read(self._admin.brokers.runtime_configuration)

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        ask = self._admin.topics.partition_counts
        counts = await self._read(lambda: ask(namespace, domains=domains, system_included=True), len(domains))
        return {name: counts[text] async for portion in self._parsed(counts) for text, name in portion}

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        ask = self._admin.topics.list
        names = await self._read(lambda: ask(namespace, domains=domains, system_included=True), len(domains))
        return [name async for portion in self._parsed(names) for _, name in portion]

    async def _parsed(self, texts: Iterable[str]) -> AsyncIterator[list[tuple[str, TopicName]]]:
        """Yield portions of texts with their names, letting other tasks run in between."""
        async for portion in in_turns(texts):
            names: list[tuple[str, TopicName]] = []
            for text in portion:
                try:
                    names.append((text, TopicName.parse(text)))
                except InvalidTopicName:
                    if self._unreadable is None:
                        raise
                    self._unreadable(text)
            yield names

    async def metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        return await self._read(lambda: self._admin.topics.partitioned_metadata(topic))


async def _at_once(ask: Callable[[], Awaitable[T]], requests: int = 1) -> T:
    return await ask()


async def read_topics(
    reading: NamespaceReading,
    namespace: NamespaceName,
    *,
    failed: Failed,
    stored_domains: Sequence[Domain] = _BOTH,
    domains: Sequence[Domain] = _BOTH,
    only: Collection[TopicName] | None = None,
    is_asked: Callable[[TopicRow], bool] = lambda row: True,
    details: Callable[[TopicRow], Awaitable[TopicRow]] | None = None,
    questions: asyncio.Semaphore | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[TopicName, TopicRow]:
    """Return the rows of a namespace's topics, or of ``only`` these base names.

    ``is_asked`` selects the topics whose counts are requested if the list lacks them. ``details`` completes a row.
    ``progress`` gets the number of partitioned topics with a count, and their total.
    """
    lists = await _listed(reading, namespace, stored_domains, domains, only)
    incomplete: list[TopicRow] = []
    async for bases in in_turns(lists.bases()):
        incomplete += (row for row in lists.join(bases) if not row.exact and is_asked(row))
    rows = lists.rows
    if details is not None:
        incomplete = list(rows.values())
    slots = questions or asyncio.Semaphore(_QUESTIONS_MAX)
    total = lists.partitioned_count
    done = total - len(incomplete)
    if done > 0:
        progress(done, total)

    async def completed(row: TopicRow) -> TopicRow | None:
        nonlocal done
        try:
            if not row.exact and is_asked(row):
                async with slots:
                    metadata = await reading.metadata(row.topic)
                row = with_count(row, metadata.partitions, deleted=metadata.deleted)
            return row if details is None else await details(row)
        except PulsarError as error:
            return failed(row, error)
        finally:
            done += 1
            progress(done, total)

    for row, complete in zip(incomplete, await concurrently(completed, incomplete, limit=_ROWS_MAX), strict=True):
        if complete is None:
            del rows[row.topic]
        else:
            rows[row.topic] = complete
    return rows


async def _listed(
    reading: NamespaceReading,
    namespace: NamespaceName,
    stored_domains: Sequence[Domain],
    domains: Sequence[Domain],
    only: Collection[TopicName] | None,
) -> TopicLists:
    def is_wanted(name: TopicName) -> bool:
        return only is None or name.base in only or name in only

    stored = await reading.stored(namespace, stored_domains)
    # After the partitions, so that a topic created meanwhile has its count.
    counts = await reading.partitioned(namespace, domains)
    lists = TopicLists()
    async for names in in_turns(stored):
        lists.add_stored(names if only is None else filter(is_wanted, names))
    async for items in in_turns(counts.items()):
        lists.add_partitioned(items if only is None else (item for item in items if is_wanted(item[0])))
    return lists


async def read_namespace(reading: NamespaceReading, namespace: NamespaceName) -> NamespaceInventory:
    """Return the namespace on the reference cluster. Raise the cluster's error."""
    return await _inventory(reading, namespace, await reading.policies(namespace))


async def read_remote(
    cluster: str,
    data: ClusterData,
    namespace: NamespaceName,
    connect: Connect,
    *,
    only: Collection[TopicName] | None = None,
) -> NamespaceInventory | None:
    """Return the namespace on another cluster; None if both clusters share one configuration store.

    With ``only``, read what a comparison of these topics needs: no schema policies. Raise NamespaceNotFound, and
    RemoteClusterUnavailable with the reason why the cluster cannot be read.
    """
    async with connect(cluster, data) as admin:
        reading = AdminReading(admin)
        try:
            policies = await reading.policies(namespace)
            if cluster not in {*policies.replication_clusters, *policies.allowed_clusters}:
                # Pulsar assumes that any such cluster shares the configuration store; the address may be wrong, too.
                name = (await reading.settings()).get("clusterName", cluster)
                if name == cluster:
                    return None
                reason = f"it is called {name} there, and a cluster is registered under its own name"
                raise RemoteClusterUnavailable(reason)
            return await _inventory(reading, namespace, policies, only=only)
        except (NamespaceNotFound, TenantNotFound) as error:
            raise NamespaceNotFound(str(error)) from error
        except (PulsarError, AttributeError, TypeError, ValueError) as error:
            is_broker = isinstance(error, PulsarError)
            reason = str(error) if is_broker else "its answers are not those of a broker"
            raise RemoteClusterUnavailable(
                f"Cluster {cluster} at {admin.web_url} cannot be compared: {reason}"
            ) from error


async def _inventory(
    reading: NamespaceReading,
    namespace: NamespaceName,
    policies: NamespacePolicies,
    *,
    only: Collection[TopicName] | None = None,
) -> NamespaceInventory:
    settings = await reading.settings() if only is None or needs_settings(policies.auto_topic_creation) else {}
    topics = await read_topics(reading, namespace, failed=_left_out, stored_domains=(PERSISTENT,), only=only)
    return NamespaceInventory(NamespaceState(policies, settings), topics)


def _left_out(row: TopicRow, error: PulsarError) -> None:
    """Omit a topic that was deleted since it was listed."""
    if not isinstance(error, NotFound):
        raise error

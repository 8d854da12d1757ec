"""The broker of one topic or of many topics (PIP-35), for both front ends.

Reads the namespaces of the topics, asks the rule, and checks that the topics exist if the caller wants that.
`Ownership` names the owners of bundles; it is asked once for all bundles of a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.instruments import LatencyMeter
from interpulse.broker.ownership.ownership import NO_OPTIONS, Bundle, LookupOptions, Ownership
from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import (
    ClusterNotFound,
    MetadataError,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
    UnsupportedVersion,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.topics import TopicKind
from interpulse.rules.bundles import bundle_of
from interpulse.rules.lookup import (
    BatchAnswer,
    LookupTarget,
    NamespaceView,
    bundle_places,
    check_batch_size,
    find_owner,
    find_peer,
    requested_topics,
    sort_by_existence,
    sort_by_namespace,
    sort_by_owner,
    sort_by_permission,
)
from interpulse.rules.topic_view import NamespaceStanding

# Topics checked in one turn of the event loop; other clients run between turns.
_EXISTENCE_AT_ONCE: Final = 64
_NAMES_MAX: Final = 20_000  # some 300 bytes each; beyond that the cache is cleared
_EXPANDED_CHARS_MAX: Final = 4 * 2**20
"""The names of partitions in one answer: less than the 5 MiB that a frame may have."""


@dataclass(frozen=True, slots=True)
class BatchLookup:
    """A lookup of many topics."""

    topics: Sequence[str]
    options: LookupOptions = NO_OPTIONS
    create_if_missing: bool = True
    """True if topics need not exist, as in a lookup of one topic; False to fail those that do not."""
    expand_partitions: bool = False
    """True if a partitioned topic means all its partitions."""
    refused: Callable[[Mapping[str, TopicName]], Awaitable[Mapping[str, PulsarError]]] | None = None
    """Returns the topics that may not be looked up, with the reasons; None allows all."""


class _Served(NamedTuple):
    view: NamespaceView
    bundle_index: int
    versions: Mapping[str, int | None]


class Lookups:
    """Answers lookups. Each takes one permit while it runs, a batch as well as a single one."""

    def __init__(
        self,
        namespaces: Namespaces,
        clusters: Clusters,
        lifecycle: TopicLifecycle,
        ownership: Ownership,
        *,
        permits: AbstractContextManager[None],
        config: Callable[[], BrokerConfig] = BrokerConfig,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the lookups; ``config`` and ``ready`` are read each time, ``permits`` raises TooManyRequests."""
        self.meter = LatencyMeter()
        """Lookups of single topics."""
        self.redirected = 0
        """The number of lookups that were answered with another broker to ask."""
        self._namespaces = namespaces
        self._clusters = clusters
        self._lifecycle = lifecycle
        self._ownership = ownership
        self._permits = permits
        self._config = config
        self._ready = ready
        self._views: dict[NamespaceName, tuple[NamespaceView, Mapping[str, int | None]]] = {}
        self._served: dict[str, _Served] = {}
        self._turn = asyncio.Lock()

    @property
    def batches_supported(self) -> bool:
        """True if clients may look up many topics in one request."""
        return self._config().supports_batch_lookup

    async def find(self, topic: TopicName, options: LookupOptions) -> LookupTarget:
        """Return the broker that clients of a topic connect to, even if the topic does not exist. Raise refusals."""
        with self._permits:
            begun, failed = self.meter.begin(), True  # ``timed`` costs as much as the lookup
            try:
                self.check_ready()
                view, versions = await self._versioned_view(topic.namespace_name)
                if view.serves(topic):
                    index = view.bundle_index(topic)
                    owner = await self._ownership.prepare([_bundle(view, index)], options)
                    target = find_owner(view, index, owner)
                    self._remember(topic, view, index, versions)
                else:
                    target = find_peer(view)
                failed = False
                self.redirected += target.redirect
                return target
            finally:
                self.meter.end(begun, failed=failed)

    def cached(self, topic: str) -> LookupTarget | None:
        """Return the answer of `find` for this complete name from memory; None if the caller has to call `find`.

        The namespace is cached, and is used while its policies are unchanged. The owner of the bundle is asked each
        time. Refusals and answers of peer clusters are never cached. Takes no permit; the caller notes the lookup in
        `meter`.
        """
        served, owner = self._served.get(topic), self._ownership.cached()
        if served is None or owner is None or not self._ready():
            return None
        view, bundle_index, versions = served
        if not self._namespaces.unchanged(versions):
            return None
        try:
            return find_owner(view, bundle_index, owner)
        except PulsarError:  # `find` raises it
            return None

    def _remember(
        self, topic: TopicName, view: NamespaceView, bundle_index: int, versions: Mapping[str, int | None]
    ) -> None:
        if not view.serves_all:
            return
        if len(self._served) >= _NAMES_MAX:
            self._served.clear()
        self._served[str(topic)] = _Served(view, bundle_index, versions)

    async def find_many(self, request: BatchLookup) -> BatchAnswer:
        """Look up many topics, each with an answer or a failure of its own.

        Raises errors of the whole request: UnsupportedVersion, ServiceNotReady, TooManyRequests, InvalidRequest without
        topics, RequestTooLarge.
        """
        config = self._config()
        if not config.supports_batch_lookup:
            raise UnsupportedVersion("Batch lookup is switched off on this broker (supportsBatchLookup=false)")
        self.check_ready()
        with self._permits:
            check_batch_size(len(request.topics), config.max_topics_per_batch_lookup)
            async with self._turn:  # one batch per turn of the loop, so that large ones do not delay other clients
                await asyncio.sleep(0)
            return await self._answer(request)

    async def bundle(self, topic: TopicName) -> str:
        """Return the hash range of the topic's bundle. As in Pulsar, a missing namespace is one bundle."""
        return bundle_of(topic, await self._namespaces.boundaries(topic.namespace_name))

    def check_ready(self) -> None:
        """Raise ServiceNotReady while this broker starts, or cannot be sure of its bundles."""
        if not self._ready():
            raise ServiceNotReady("Failed due to pulsar service is not ready")
        self._ownership.check_serving()

    async def _answer(self, request: BatchLookup) -> BatchAnswer:
        answer = BatchAnswer()
        topics = requested_topics(request.topics, answer)
        if request.refused is not None:
            topics = sort_by_permission(topics, await request.refused(topics), answer)
        namespaces = await self._views_of(topics.values())
        topics = sort_by_namespace(topics, namespaces, answer)
        if request.expand_partitions or not request.create_if_missing:
            topics = await self._existing(topics, request, answer)
        views = {name: view for name, view in namespaces.items() if isinstance(view, NamespaceView)}
        places = bundle_places(topics, views)
        bundles = [_bundle(*place) for place in places.bundles]
        sort_by_owner(topics, places, await self._ownership.prepare(bundles, request.options), answer)
        return answer

    async def peer(self, namespace: NamespaceName) -> LookupTarget | None:
        """Return the peer cluster that serves the namespace in place of this one, if any. Raise MetadataError."""
        return (await self._view(namespace)).peer

    # --- namespaces

    async def _views_of(self, topics: Iterable[TopicName]) -> dict[NamespaceName, NamespaceView | PulsarError]:
        """Return a view of each namespace of these topics, or the error if it cannot be read."""
        views: dict[NamespaceName, NamespaceView | PulsarError] = {}
        for topic in {(topic.tenant, topic.namespace): topic for topic in topics}.values():
            name = topic.namespace_name
            try:
                views[name] = await self._view(name)
            except MetadataError as error:
                views[name] = error
        return views

    async def _view(self, name: NamespaceName) -> NamespaceView:
        return (await self._versioned_view(name))[0]

    async def _versioned_view(self, name: NamespaceName) -> tuple[NamespaceView, Mapping[str, int | None]]:
        """Return the view with the version of the policies. It is rebuilt only after a change of the policies."""
        cached = self._views.get(name)
        if cached is not None and self._namespaces.unchanged(cached[1]):
            return cached
        policies, versions = await self._namespaces.versioned_policies(name)
        standing = self._namespaces.standing(policies)
        if policies is None or standing is not NamespaceStanding.SERVED:
            self._views.pop(name, None)
            return NamespaceView(name, standing, peer=await self._peer(policies, standing)), versions
        boundaries, more = await self._namespaces.versioned_boundaries(name, policies)
        versions = {**versions, **more}
        view = NamespaceView(name, boundaries=boundaries)
        self._views[name] = view, versions
        return view, versions

    async def _peer(self, policies: NamespacePolicies | None, standing: NamespaceStanding) -> LookupTarget | None:
        """Return the first peer of the local cluster that the namespace lists in its place."""
        if policies is None or standing is not NamespaceStanding.NOT_SERVED:
            return None
        local = await self._clusters.get(self._namespaces.local_cluster)
        for name in local.peer_cluster_names or ():
            if name in policies.replication_clusters:
                return await self._address(name)
        return None

    async def _address(self, cluster: str) -> LookupTarget:
        try:
            peer = await self._clusters.get(cluster)
        except ClusterNotFound as error:
            raise MetadataError(str(error)) from error
        return LookupTarget(
            peer.broker_service_url or "",
            peer.broker_service_url_tls or "",
            peer.service_url or "",
            peer.service_url_tls or "",
            redirect=True,
        )

    # --- existing topics

    async def _existing(
        self, topics: Mapping[str, TopicName], request: BatchLookup, answer: BatchAnswer
    ) -> dict[str, TopicName]:
        """Return the topics to look up: without missing topics, and with partitions in place of partitioned topics."""
        asked = [name for name, topic in topics.items() if not (request.create_if_missing and topic.is_partition)]
        counts: dict[str, int | PulsarError] = {}
        for start in range(0, len(asked), _EXISTENCE_AT_ONCE):
            some = {name: topics[name] for name in asked[start : start + _EXISTENCE_AT_ONCE]}
            counts |= await self._partition_counts(some, create=request.create_if_missing)
            await asyncio.sleep(0)
        chars_max = _EXPANDED_CHARS_MAX if request.expand_partitions else None
        return sort_by_existence(topics, counts, answer, expanded_chars_max=chars_max)

    async def _partition_counts(self, topics: Mapping[str, TopicName], *, create: bool) -> dict[str, int | PulsarError]:
        try:
            found = await self._lifecycle.existences(topics.values())
        except MetadataError as error:
            return await self._apart(topics, error, create=create)
        counts: dict[str, int | PulsarError] = {name: found[topic].partitions for name, topic in topics.items()}
        missing = [name for name, topic in topics.items() if found[topic].kind is TopicKind.ABSENT]
        if not create:
            return counts | {name: TopicNotFound(f"Topic {topics[name]} not found") for name in missing}
        created = await asyncio.gather(*(self._created(topics[name]) for name in missing))
        return counts | dict(zip(missing, created, strict=True))

    async def _apart(
        self, topics: Mapping[str, TopicName], error: MetadataError, *, create: bool
    ) -> dict[str, int | PulsarError]:
        """Ask for each topic by itself after one of them failed, so that the others get their answers."""
        if len(topics) == 1:
            return dict.fromkeys(topics, error)
        counts: dict[str, int | PulsarError] = {}
        for name, topic in topics.items():
            counts |= await self._partition_counts({name: topic}, create=create)
        return counts

    async def _created(self, topic: TopicName) -> int | PulsarError:
        try:
            return await self._lifecycle.partitions(topic, create=True)
        except PulsarError as error:
            return error


def _bundle(namespace: NamespaceView, index: int) -> Bundle:
    return Bundle(namespace.name, namespace.bundles[index])

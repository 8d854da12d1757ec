"""Operations on the bundles of a namespace: close their topics, divide them, clear or delete their subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Final

from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.topic_registry import AnyTopic, TopicRegistry
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import (
    PreconditionFailed,
    PulsarError,
    SubscriptionNotFound,
    TopicInconsistent,
    TopicNotFound,
)
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import Requester
from interpulse.rules.bundles import bundle_of, checked_bundle, named_bundle, split_at, split_positions

__all__ = ["Bundles"]

_LOADS_MAX: Final = 32


class Bundles:
    """Acts on the topics of a namespace, or of one of its bundles. Every method raises NamespaceNotFound."""

    def __init__(
        self,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        registry: TopicRegistry,
        replicator_prefix: Callable[[], str],
    ) -> None:
        self._namespaces = namespaces
        self._lifecycle = lifecycle
        self._registry = registry
        self._replicator_prefix = replicator_prefix

    async def served(self, namespace: NamespaceName) -> list[str]:
        """The bundles of a namespace that this broker serves: all of them, or none of one that is on other clusters."""
        policies = await self._namespaces.get_policies(namespace)
        if self._namespaces.local_cluster not in policies.replication_clusters:
            return []
        return [f"{lower}_{upper}" for lower, upper in pairwise(await self._namespaces.boundaries(namespace))]

    async def unload(self, namespace: NamespaceName, bundle: str | None = None) -> None:
        """Close every loaded topic; clients come back and load what they need."""
        concerned = await self._concerned(namespace, bundle)
        for topic in list(self._registry.names):
            if topic.namespace_name == namespace and concerned(topic):
                await self._registry.unload(topic)

    async def split(
        self,
        namespace: NamespaceName,
        bundle: str,
        *,
        algorithm: str,
        positions: Sequence[int] = (),
        unload: bool = False,
    ) -> None:
        """Divide a bundle, or the one with most topics (``LARGEST``); with ``unload`` its topics are closed.

        Topics stay where they are: one broker serves all bundles.
        """
        topics = await self._topics(namespace)
        await self._namespaces.get_policies(namespace)
        boundaries = await self._namespaces.boundaries(namespace)
        chosen = named_bundle(bundle, boundaries, topics)
        inside = [topic for topic in topics if bundle_of(topic, boundaries) == chosen]
        added = split_positions(chosen, algorithm=algorithm, topics=inside, positions=positions)
        if added:
            await self._namespaces.change_boundaries(namespace, lambda old: split_at(old, added))
        if unload:
            for topic in inside:
                await self._registry.unload(topic)

    async def clear_backlog(
        self, namespace: NamespaceName, bundle: str | None = None, subscription: str | None = None
    ) -> None:
        """Acknowledge everything, for one subscription wherever there is one of that name, or for all.

        What has still to be replicated stays, unless its cursor is named. Raises SubscriptionNotFound if no topic has
        it.
        """
        found: list[TopicName] = []

        async def clear(topic: AnyTopic) -> None:
            if not isinstance(topic, Topic):
                return
            names = topic.backlog_names() if subscription is None else {subscription} & topic.subscriptions.keys()
            for name in names:
                backlog_operations.clear(topic, name)
                found.append(topic.name)

        await self._on_each(namespace, bundle, clear)
        if subscription is not None and not found:
            where = bundle or namespace
            raise SubscriptionNotFound(f"Subscription {subscription} not found: no topic of {where} has it")

    async def unsubscribe(self, namespace: NamespaceName, subscription: str, bundle: str | None = None) -> None:
        """Delete a subscription wherever there is one of that name.

        Where it has connected consumers it stays, and when all others are gone PreconditionFailed is raised.
        """
        if subscription.startswith(self._replicator_prefix()):
            raise PreconditionFailed("Cannot unsubscribe a replication cursor")

        async def delete(topic: AnyTopic) -> None:
            if subscription in topic.subscription_names():
                await topic.delete_subscription(subscription)

        await self._on_each(namespace, bundle, delete)

    async def _on_each(
        self, namespace: NamespaceName, bundle: str | None, act: Callable[[AnyTopic], Awaitable[None]]
    ) -> None:
        """Every topic is tried, then the first failure raised."""
        concerned = await self._concerned(namespace, bundle)
        limit = asyncio.Semaphore(_LOADS_MAX)
        failures: list[PulsarError] = []

        async def attempt(name: TopicName) -> None:
            async with limit:
                try:
                    await act(await self._registry.open(name, by=Requester.ADMIN, create=False))
                except (TopicInconsistent, TopicNotFound):  # no client waits for it, or it is gone already
                    return
                except PulsarError as error:
                    failures.append(error)

        await asyncio.gather(*(attempt(name) for name in await self._topics(namespace) if concerned(name)))
        if failures:
            raise failures[0]

    async def _concerned(self, namespace: NamespaceName, bundle: str | None) -> Callable[[TopicName], bool]:
        await self._namespaces.get_policies(namespace)
        boundaries = await self._namespaces.boundaries(namespace)
        if bundle is None:
            return lambda topic: True
        chosen = checked_bundle(bundle, boundaries)
        return lambda topic: bundle_of(topic, boundaries) == chosen

    async def _topics(self, namespace: NamespaceName) -> list[TopicName]:
        lists = [
            await self._lifecycle.list_topics(namespace, domain, include_system=False)
            for domain in (PERSISTENT, NON_PERSISTENT)
        ]
        return [name for names in lists for name in names]

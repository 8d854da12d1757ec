"""Operations on the bundles of a namespace: close their topics, divide them, clear or delete their subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.ownership.ownership import Bundle
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.brokers import BundleLock
from interpulse.model.errors import (
    PreconditionFailed,
    PulsarError,
    SubscriptionNotFound,
    TopicInconsistent,
    TopicNotFound,
)
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import Requester
from interpulse.rules.bundles import LARGEST, bundle_of, checked_bundle, named_bundle, split_at, split_positions
from interpulse.storage.api import Change

if TYPE_CHECKING:
    from interpulse.broker.ownership.other_brokers import OtherBrokers

_LOADS_MAX: Final = 32


class Bundles:
    """Acts on the topics of a namespace, or of one of its bundles. Every method raises NamespaceNotFound."""

    def __init__(
        self,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        registry: TopicRegistry,
        replicator_prefix: Callable[[], str],
        others: OtherBrokers | None = None,
    ) -> None:
        """Create the bundles; without ``others`` this broker owns them all."""
        self._namespaces = namespaces
        self._lifecycle = lifecycle
        self._registry = registry
        self._replicator_prefix = replicator_prefix
        self._others = others

    async def served(self, namespace: NamespaceName) -> list[str]:
        """Return the bundles of a namespace that this broker serves; none if the namespace is not on this cluster."""
        policies = await self._namespaces.get_policies(namespace)
        if self._namespaces.local_cluster not in policies.replication_clusters:
            return []
        ranges = _parts(await self._namespaces.boundaries(namespace))
        if self._others is None:
            return ranges
        owned = {bundle.range for bundle in self._others.ownership.owned if bundle.namespace == namespace}
        return [part for part in ranges if part in owned]

    async def here(self, namespace: NamespaceName) -> Callable[[TopicName], bool]:
        """Return a test for the topics of a namespace that this broker serves now."""
        served = frozenset(await self.served(namespace))
        boundaries = await self._namespaces.boundaries(namespace)
        return lambda topic: bundle_of(topic, boundaries) in served

    async def one_of_each(self, namespace: NamespaceName, topics: Iterable[TopicName]) -> list[TopicName]:
        """Return one of these topics for each bundle that has any."""
        boundaries = await self._namespaces.boundaries(namespace)
        return list({bundle_of(topic, boundaries): topic for topic in topics}.values())

    async def elsewhere(self, namespace: NamespaceName, bundle: str) -> BundleLock | None:
        """Return the owner of a bundle if it is another broker. Raise PreconditionFailed if there is no such bundle."""
        if self._others is None:
            return None
        boundaries = await self._boundaries(namespace)
        chosen = named_bundle(bundle, boundaries, await self._topics(namespace) if bundle == LARGEST else ())
        return (await self._owned_elsewhere(namespace, [chosen])).get(Bundle(namespace, chosen))

    async def others_of(self, namespace: NamespaceName) -> dict[Bundle, BundleLock]:
        """Return the bundles of a namespace that other brokers own."""
        return await self._owned_elsewhere(namespace, _parts(await self._boundaries(namespace)))

    async def _owned_elsewhere(self, namespace: NamespaceName, ranges: Sequence[str]) -> dict[Bundle, BundleLock]:
        if self._others is None:
            return {}
        owners = await self._others.owners([Bundle(namespace, part) for part in ranges])
        return {bundle: lock for bundle, lock in owners.items() if lock.broker.broker_id != self._others.own_id}

    async def unload(
        self, namespace: NamespaceName, bundle: str | None = None, *, destination: str | None = None
    ) -> None:
        """Close every loaded topic; clients reconnect and load the topics they need.

        In a cluster this broker releases its bundles, to the broker ``destination`` if one is named, and asks the other
        owners to release theirs. Raises Conflict if the destination is not registered.
        """
        if self._others is not None:
            await self._give_away(namespace, bundle, destination, self._others)
            return
        concerned = await self._concerned(namespace, bundle)
        for topic in list(self._registry.names):
            if topic.namespace_name == namespace and concerned(topic):
                await self._registry.unload(topic)

    async def _give_away(
        self, namespace: NamespaceName, bundle: str | None, destination: str | None, others: OtherBrokers
    ) -> None:
        boundaries = await self._boundaries(namespace)
        ranges = _parts(boundaries) if bundle is None else [checked_bundle(bundle, boundaries)]
        if bundle is not None and destination is not None:
            await others.move(Bundle(namespace, ranges[0]), destination)
            return
        if bundle is None:
            elsewhere = await self._owned_elsewhere(namespace, ranges)
            await asyncio.gather(*(others.unload(other, lock) for other, lock in elsewhere.items()))
        await asyncio.gather(*(others.ownership.release(Bundle(namespace, part)) for part in ranges))

    async def split(
        self,
        namespace: NamespaceName,
        bundle: str,
        *,
        algorithm: str,
        positions: Sequence[int] = (),
        unload: bool = False,
    ) -> None:
        """Divide a bundle, or the one with most topics (``LARGEST``). With ``unload`` its topics are closed.

        The owner of the bundle also owns its parts until they are unloaded.
        """
        topics = await self._topics(namespace)
        boundaries = await self._boundaries(namespace)
        chosen = named_bundle(bundle, boundaries, topics)
        inside = [topic for topic in topics if bundle_of(topic, boundaries) == chosen]
        added = split_positions(chosen, algorithm=algorithm, topics=inside, positions=positions)
        if added and self._others is not None:
            await self._divide_held(Bundle(namespace, chosen), added, self._others)
        elif added:
            await self._namespaces.change_boundaries(namespace, lambda old: split_at(old, added))
        if unload and self._others is not None:
            for part in _parts(split_at(chosen.split("_"), added)):
                await self._others.ownership.release(Bundle(namespace, part))
        elif unload:
            for topic in inside:
                await self._registry.unload(topic)

    async def _divide_held(self, bundle: Bundle, added: Sequence[int], others: OtherBrokers) -> None:
        ends = split_at(bundle.range.split("_"), added)

        async def commit(locks: Sequence[Change], expect: Mapping[str, int | None]) -> None:
            await self._namespaces.change_boundaries(
                bundle.namespace, lambda old: split_at(old, added), also=locks, expect=expect
            )

        parts = [Bundle(bundle.namespace, part) for part in _parts(ends)]
        await others.ownership.split(bundle, parts, lambda topic: bundle_of(topic, ends), commit)

    async def clear_backlog(
        self, namespace: NamespaceName, bundle: str | None = None, subscription: str | None = None
    ) -> None:
        """Acknowledge everything for one subscription of each topic, or for all.

        The backlog of replication stays unless its cursor is named. Raises SubscriptionNotFound if no topic has it.
        """
        matching: list[TopicName] = []
        cleared: list[Subscription] = []

        async def clear(topic: AnyTopic) -> None:
            if not isinstance(topic, Topic):
                return
            names = topic.backlog_names() if subscription is None else {subscription} & topic.subscriptions.keys()
            for name in names:
                backlog_operations.clear(topic, name)
                matching.append(topic.name)
                cleared.append(topic.subscription(name))

        await self._on_each(namespace, bundle, clear)
        for cursor in cleared:
            await cursor.settled()
        if subscription is not None and not matching:
            where = bundle or namespace
            raise SubscriptionNotFound(f"Subscription {subscription} not found: no topic of {where} has it")

    async def unsubscribe(self, namespace: NamespaceName, subscription: str, bundle: str | None = None) -> None:
        """Delete a subscription of every topic that has it.

        A subscription with consumers stays; PreconditionFailed is raised after the others are deleted.
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
        """Apply ``act`` to every topic, then raise the first failure."""
        concerned = await self._concerned(namespace, bundle)
        limit = asyncio.Semaphore(_LOADS_MAX)
        failures: list[PulsarError] = []

        async def attempt(name: TopicName) -> None:
            async with limit:
                try:
                    await act(await self._registry.open(name, by=Requester.ADMIN, create=False))
                except (TopicInconsistent, TopicNotFound):  # no client waits for it, or it is deleted already
                    return
                except PulsarError as error:
                    failures.append(error)

        here = await self._here(namespace, bundle)
        topics = [name for name in await self._topics(namespace) if concerned(name) and here(name)]
        await asyncio.gather(*map(attempt, topics))
        if failures:
            raise failures[0]

    async def _concerned(self, namespace: NamespaceName, bundle: str | None) -> Callable[[TopicName], bool]:
        boundaries = await self._boundaries(namespace)
        if bundle is None:
            return lambda topic: True
        chosen = checked_bundle(bundle, boundaries)
        return lambda topic: bundle_of(topic, boundaries) == chosen

    async def _here(self, namespace: NamespaceName, bundle: str | None) -> Callable[[TopicName], bool]:
        """Return a test for this broker's topics of the namespace or bundle. Free bundles are taken for it."""
        if self._others is None:
            return lambda topic: True
        boundaries = await self._namespaces.boundaries(namespace)
        ranges = _parts(boundaries) if bundle is None else [checked_bundle(bundle, boundaries)]
        locks = {part: await self._others.ownership.take(Bundle(namespace, part)) for part in ranges}
        own = {part for part, lock in locks.items() if lock.broker.broker_id == self._others.own_id}
        return lambda topic: bundle_of(topic, boundaries) in own

    async def _boundaries(self, namespace: NamespaceName) -> tuple[str, ...]:
        await self._namespaces.get_policies(namespace)  # raises if there is no such namespace
        return await self._namespaces.boundaries(namespace)

    async def _topics(self, namespace: NamespaceName) -> list[TopicName]:
        lists = [
            await self._lifecycle.list_topics(namespace, domain, include_system=False)
            for domain in (PERSISTENT, NON_PERSISTENT)
        ]
        return [name for names in lists for name in names]


def _parts(boundaries: Sequence[str]) -> list[str]:
    return [f"{lower}_{upper}" for lower, upper in pairwise(boundaries)]

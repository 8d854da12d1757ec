"""Subscriptions of a cluster of ours, whose brokers say what has changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.acknowledgements import News
from interpulse.replication.shown_acknowledgements import reported_acknowledgements
from interpulse.spark.job.subscriptions.site import SubscriptionState, WantedSubscriptions, create_replicated
from interpulse.wire.ids import words_of

log = logging.getLogger(__name__)

_WAIT_S: Final = 5.0
"""Time for which a request waits for a change. The job gives up requests after ten seconds."""
_AGAIN_S: Final = 1.0
_AT_ONCE: Final = 10_000
"""Ranges and masks in one request, which may have a megabyte."""


class OurSite:
    """A cluster of ours, asked for each namespace by a request that waits for a change; see `Site`."""

    keeps_resets = True

    def __init__(self, cluster: str, admin: AdminClient, wanted: WantedSubscriptions) -> None:
        self.cluster = cluster
        self._admin = admin
        self._wanted = wanted
        self._states: dict[str, dict[str, SubscriptionState]] = {}
        self._changed: set[str] = set()
        self._topics: frozenset[str] = frozenset()
        self._following: dict[NamespaceName, asyncio.Task[None]] = {}
        self._problems: dict[NamespaceName, str] = {}

    def follow(self, topics: Collection[TopicName]) -> None:
        """Follow the namespaces of these topic-partitions. Raise what ended that unexpectedly."""
        for namespace in [namespace for namespace, task in self._following.items() if task.done()]:
            self._following.pop(namespace).result()
        before, self._topics = self._topics, frozenset(map(str, topics))
        self._changed |= (self._topics - before) & self._states.keys()
        namespaces = {topic.namespace_name for topic in topics}
        for namespace in self._following.keys() - namespaces:
            self._following.pop(namespace).cancel()
            self._problems.pop(namespace, None)
        for namespace in namespaces - self._following.keys():
            self._following[namespace] = asyncio.create_task(self._follow(namespace))

    def problem(self, topic: TopicName) -> str | None:
        """Return the reason why changes of a topic-partition are not seen at present, or None."""
        return self._problems.get(topic.namespace_name)

    def states(self, topic: TopicName) -> Mapping[str, SubscriptionState]:
        """Return the subscriptions of a topic-partition, by name."""
        return self._states.get(str(topic), {})

    def take_changed(self) -> set[str]:
        """Return the topic-partitions that have changed since the last call."""
        changed, self._changed = self._changed & self._topics, set()
        return changed

    async def _follow(self, namespace: NamespaceName) -> None:
        token: str | None = None
        while True:
            try:
                page = await self._admin.namespaces.acknowledgements(
                    namespace, since=token, wait_s=_WAIT_S, every=self._wanted.every
                )
            except PulsarError as problem:
                self._note_problem(namespace, str(problem))
                await asyncio.sleep(_AGAIN_S)
            else:
                self._problems.pop(namespace, None)
                token = page["token"]
                for item in page["subscriptions"]:
                    self._take(item)

    def _take(self, item: Mapping[str, Any]) -> None:
        topic, name = item["topic"], item["subscription"]
        if item.get("deleted"):
            self._states.get(topic, {}).pop(name, None)
            self._changed.add(topic)
        elif self._wanted.has(name, replicated=item["replicated"]):
            self._states.setdefault(topic, {})[name] = state_of(item)
            self._changed.add(topic)
        elif topic in self._states:
            self._states[topic].pop(name, None)

    def _note_problem(self, namespace: NamespaceName, problem: str) -> None:
        if self._problems.get(namespace) != problem:
            log.warning(
                "subscriptions are not followed cluster=%s namespace=%s error=%s", self.cluster, namespace, problem
            )
        self._problems[namespace] = problem

    async def create(self, topic: TopicName, subscription: str, properties: Mapping[str, str]) -> None:
        """Create a replicated subscription at the first entry. One that has just come is marked."""
        await create_replicated(self._admin, topic, subscription, properties)

    async def acknowledge(self, topic: TopicName, subscription: str, news: News, *, resets: int) -> int:
        """Acknowledge entries, also while consumers are connected."""
        count = 0
        for ranges, masks in _portions(news):
            count += await self._admin.topics.acknowledge(
                topic, subscription, resets=resets, ranges=ranges, masks=masks
            )
        return count

    async def reset(self, topic: TopicName, subscription: str, upto: Position, *, before: int, resets: int) -> None:
        """Move a subscription back."""
        await self._admin.topics.acknowledge(topic, subscription, resets=before, mark_delete=upto, reset_as=resets)

    def forget(self, topic: TopicName, subscription: str) -> None:
        """Forget a subscription that was deleted."""
        self._states.get(str(topic), {}).pop(subscription, None)

    async def close(self) -> None:
        """Stop to follow."""
        following, self._following = self._following, {}
        for task in following.values():
            task.cancel()
        await asyncio.gather(*following.values(), return_exceptions=True)


def state_of(item: Mapping[str, Any]) -> SubscriptionState:
    """Return the state in an answer of the broker."""
    return SubscriptionState(reported_acknowledgements(item), item["resets"], item["properties"])


_Ranges = Sequence[tuple[int, int, int]]
_Masks = Sequence[tuple[int, int, Sequence[int]]]


def _portions(news: News) -> Iterator[tuple[_Ranges, _Masks]]:
    """Yield the news in portions of one request. Counterparts are found run by run, so no span has several ledgers."""
    ranges = [(first.ledger, first.entry, last.entry) for first, last in news.spans]
    masks = [(position.ledger, position.entry, words_of(mask)) for position, mask in news.masks.items()]
    yield from ((ranges[start : start + _AT_ONCE], ()) for start in range(0, len(ranges), _AT_ONCE))
    yield from (((), masks[start : start + _AT_ONCE]) for start in range(0, len(masks), _AT_ONCE))

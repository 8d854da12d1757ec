"""The subscriptions of one cluster, as the exchange of acknowledgements sees them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import AlreadyExists
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import Acknowledgements, News
from interpulse.wire.cursor_promise import RESERVED_SUBSCRIPTIONS


@dataclass(frozen=True)
class SubscriptionState:
    """One subscription of a topic-partition. ``resets`` is raised by everything that moves it back."""

    acknowledgements: Acknowledgements
    resets: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


class WantedSubscriptions(NamedTuple):
    """Choice of the subscriptions to exchange: the replicated ones or all durable ones, by a part of the name."""

    every: bool = False
    include: str | None = None

    def has(self, name: str, *, replicated: bool) -> bool:
        """Return True if a durable subscription is to be exchanged."""
        if name.startswith(RESERVED_SUBSCRIPTIONS) or not (replicated or self.every):
            return False
        return self.include is None or re.search(self.include, name) is not None


async def create_replicated(
    admin: AdminClient, topic: TopicName, subscription: str, properties: Mapping[str, str]
) -> None:
    """Create a replicated subscription at the first entry. One that has just come is marked."""
    topics = admin.topics
    try:
        await topics.create_subscription(
            topic, subscription, MessageId(*EARLIEST), properties=properties, replicated=True
        )
    except AlreadyExists:
        await topics.set_subscription_replicated(topic, subscription, True)


class Site(Protocol):
    """One cluster, and what is known of the wanted subscriptions there."""

    cluster: str
    keeps_resets: bool
    """True if the numbers of resets outlive this process."""

    def follow(self, topics: Collection[TopicName]) -> None:
        """Follow the subscriptions of these topic-partitions, and of no others. Raise what ended that unexpectedly."""

    def problem(self, topic: TopicName) -> str | None:
        """Return the reason why changes of a topic-partition are not seen at present, or None."""

    def states(self, topic: TopicName) -> Mapping[str, SubscriptionState]:
        """Return the subscriptions of a topic-partition, by name."""

    def take_changed(self) -> set[str]:
        """Return the topic-partitions that have changed since the last call."""

    async def create(self, topic: TopicName, subscription: str, properties: Mapping[str, str]) -> None:
        """Create a replicated subscription at the first entry. Raise refusals of the cluster."""

    async def acknowledge(self, topic: TopicName, subscription: str, news: News, *, resets: int) -> int:
        """Acknowledge entries, and return how many were new.

        Raise Conflict after a reset that ``resets`` does not count, and SubscriptionNotFound.
        """

    async def reset(self, topic: TopicName, subscription: str, upto: Position, *, before: int, resets: int) -> None:
        """Move a subscription back, so that only the entries up to a position are acknowledged.

        It has ``resets`` afterwards. Raise Conflict if it does not have ``before`` now, and SubscriptionNotFound.
        """

    def forget(self, topic: TopicName, subscription: str) -> None:
        """Forget a subscription that was deleted."""

    async def close(self) -> None:
        """Stop to follow."""

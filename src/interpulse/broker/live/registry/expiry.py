"""Expiry of entries on request; expiry by time to live is part of `upkeep`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from interpulse.broker.live.registry.upkeep import expire
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import Conflict
from interpulse.model.ids import Position

Expiry = Callable[[], Awaitable[None]]


async def expire_older(topic: Topic, subscription: str, seconds: int) -> None:
    """Acknowledge entries published longer ago than this; raise SubscriptionNotFound.

    Raises Conflict for an empty backlog, as Pulsar does.
    """
    if topic.subscription(subscription).cursor.backlog(topic.positions.durable) == 0:
        raise Conflict(
            f"Expire message by timestamp not issued on topic {topic.name} for subscription {subscription}: "
            "it has no backlog. On a partitioned topic other partitions may have been expired"
        )
    await expire(topic, subscription, seconds)


def expire_upto(topic: Topic, subscription: str, position: Position) -> None:
    """Acknowledge everything up to this entry.

    Raises SubscriptionNotFound, and Conflict for a position after the end of the topic.
    """
    target = topic.subscription(subscription)
    if position > topic.positions.durable:
        raise Conflict(
            f"Expire message by position not issued on topic {topic.name} for subscription {subscription}: "
            f"{position} is behind the last message, {topic.positions.durable}"
        )
    target.expire_upto(position)


async def expire_everywhere(expiries: Iterable[Expiry]) -> None:
    """Run all of these, and then raise the first Conflict."""
    conflicts: list[Conflict] = []
    for expiry in expiries:
        try:
            await expiry()
        except Conflict as conflict:
            conflicts.append(conflict)
    if conflicts:
        raise conflicts[0]

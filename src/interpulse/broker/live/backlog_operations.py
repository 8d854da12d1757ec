"""What operators do with the entries that wait on a topic: look at them, skip some, clear them, or forget them all."""

from __future__ import annotations

import logging

from interpulse.broker.live.backlog import after_skipping, nth_waiting
from interpulse.broker.live.topic import Topic
from interpulse.model.errors import NotFound
from interpulse.model.ids import LATEST, Position
from interpulse.storage.api import LogEntry

__all__ = ["clear", "peek", "skip", "truncate"]

log = logging.getLogger(__name__)


def skip(topic: Topic, subscription: str, entry_count: int) -> int:
    """Acknowledge the next so many entries that are not; how many there were. Raises SubscriptionNotFound."""
    found = topic.subscription(subscription)
    return found.skip_to(after_skipping(topic.log, found.cursor, entry_count))


def clear(topic: Topic, subscription: str) -> int:
    """Acknowledge everything; how many entries that were. Raises SubscriptionNotFound."""
    return topic.subscription(subscription).skip_to(topic.places.durable)


async def peek(topic: Topic, subscription: str, number: int) -> LogEntry:
    """The ``number``-th entry (from 1) that is not acknowledged. Raises SubscriptionNotFound, NotFound at the end."""
    position = nth_waiting(topic.log, topic.subscription(subscription).cursor, number)
    if position is None:
        raise NotFound("Message not found")
    return await topic.places.read_entry(position)


async def truncate(topic: Topic) -> None:
    """Forget every entry there is; each subscription stands at the end. Durable on return.

    Whoever is connected stays, publishes under way are answered, and what is published meanwhile may survive. The
    ledgers go in one commit: before it everything is there, after it nothing, wherever stored cursors point. What
    producers sent is remembered before, so that a repeat is still known as one.
    """
    topic.check_open()
    await topic.compaction.forget()
    if not topic.log.terminated:
        await topic.log.roll()
    end = topic.places.durable if topic.log.terminated else Position(topic.log.ledgers[-1].ledger_id, -1)
    topic.sequences.snapshot_due = topic.deduplication is not None
    await topic.flush()
    await topic.stamps.before_trim()
    await topic.log.trim(LATEST if topic.log.terminated else end)
    await topic.compaction.forget()  # one that began meanwhile
    for subscription in topic.subscriptions.values():
        subscription.skip_to(end)
        subscription.pump()
    await topic.flush()
    log.info("topic truncated topic=%s upto=%s", topic.name, end)

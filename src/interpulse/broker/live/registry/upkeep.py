"""The periodic tasks of a topic, which remove expired data."""

from __future__ import annotations

import logging

from interpulse.broker.live.log_search import trim_before
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.api import LedgerRecord

log = logging.getLogger(__name__)


async def maintain(topic: Topic) -> None:
    """Expire, trim, and drop subscriptions whose consumer did not reconnect."""
    await topic.subscription_set.follow_remotes()  # retry: applying new policies may have failed
    await _expire_by_policy(topic)
    topic.subscription_set.drop_idle_readers()
    silent_ms = topic.settings.deduplication_inactivity_minutes * 60_000
    topic.sequences.forget_inactive(topic.now_ms() - silent_ms, topic.producers.by_name)
    await trim(topic)


async def _expire_by_policy(topic: Topic) -> None:
    """Apply the time to live to subscriptions and, as Pulsar does since 4.0.4, to replication cursors.

    Entries that expire on a replication cursor never reach the remote cluster, so this is logged.
    """
    seconds = topic.settings.message_ttl_seconds
    if seconds <= 0:
        return
    for name in topic.backlog_names():
        await expire(topic, name, seconds)
    for name in topic.replication_cursors():
        count = await expire(topic, name, seconds)
        if count:
            log.warning(
                "entries expired before they were replicated topic=%s cluster=%s entries=%d messageTTL=%d",
                *(topic.name, topic.remote_of(name), count, seconds),
            )


async def expire(topic: Topic, subscription: str, older_than_seconds: int) -> int:
    """Acknowledge entries published longer ago than this, and return their count. Raise SubscriptionNotFound."""
    target = topic.subscription(subscription)
    position = await topic.positions.before_time(topic.now_ms() - older_than_seconds * 1000)
    return target.expire_upto(position)


async def expire_subscriptions(topic: Topic) -> None:
    """Delete the durable subscriptions that had no consumer for the time in the policies.

    Internal subscriptions stay, and so do those that replicate their state, as in Pulsar: they may have a consumer on
    another cluster.
    """
    limit_ms = topic.settings.subscription_expiration_minutes * 60_000
    if limit_ms <= 0:
        return
    for of_client in topic.subscription_set.of_clients():
        if of_client.durable and not of_client.replicate_state and await of_client.delete_if_idle(limit_ms):
            log.info(
                "subscription expired topic=%s subscription=%s idle_seconds=%d subscriptionExpirationTime=%d",
                topic.name,
                of_client.name,
                (topic.now_ms() - of_client.idle_since_ms) // 1000,
                topic.settings.subscription_expiration_minutes,
            )


async def trim(topic: Topic) -> None:
    """Trim the ledgers that no durable subscription and no policy needs."""
    if topic.sequences.needed_from is not None:
        topic.sequences.request_snapshot()
    before = trim_before(topic.log.ledgers, _needed_from(topic), topic.settings.retention, topic.now_ms())
    if before is not None:
        await topic.broker_entry_metadata.before_trim()
        await topic.log.trim(before)
        log.info("log trimmed topic=%s before=%s", topic.name, before)


async def free_disk_space(topic: Topic) -> None:
    """Trim, the current ledger too: without new entries it never fills, so it ends early once it is acknowledged.

    In a topic without a durable subscription nothing is acknowledged, so its ledger does not end early.
    """
    ledgers, now_ms = topic.log.ledgers, topic.now_ms()
    acknowledges = any(subscription.durable for subscription in topic.subscriptions.values())
    if acknowledges and ledgers and ledgers[-1].entries and not topic.log.terminated:
        following = LedgerRecord(ledgers[-1].ledger_id + 1, 0, 0, now_ms)
        before = trim_before([*ledgers, following], _needed_from(topic), topic.settings.retention, now_ms)
        if before == Position(following.ledger_id, 0):
            await topic.log.roll()
    await trim(topic)


def _needed_from(topic: Topic) -> Position:
    """Return the position up to which everything is acknowledged."""
    if topic.log.compacted.committing:
        return EARLIEST  # if the commit fails, compaction has not passed the cursor's current position
    needed = [subscription.cursor.mark_delete for subscription in topic.subscriptions.values() if subscription.durable]
    snapshot_position = topic.sequences.needed_from
    if snapshot_position is not None:
        needed.append(snapshot_position)
    return min(needed, default=LATEST)

"""Operations on the entries of a topic: the periodic removal of expired data, and what operators ask for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from interpulse.broker.live.cursor import Acknowledgements
from interpulse.broker.live.entry_metadata import entry_metadata_of, message_metadata_of
from interpulse.broker.live.log_search import after_skipping, bytes_after, nth_waiting, trim_before
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.errors import Conflict, InvalidRequest, NotFound, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.storage.api import LedgerRecord, LogEntry
from interpulse.wire.ids import words_of

log = logging.getLogger(__name__)

_SCANNED_AT_ONCE: Final = 100
_SCANNED_BYTES: Final = 2**20

Expiry = Callable[[], Awaitable[None]]


class ScanLimits(NamedTuple):
    """Limits for reading a backlog in one request."""

    entries_max: int
    time_ms_max: int


@dataclass(slots=True)
class BacklogAnalysis:
    """The analysis of a subscription's backlog. ``aborted``: it was only read in part."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    first: Position | None = None
    last: Position | None = None
    aborted: bool = False

    def count(self, entry: LogEntry) -> None:
        """Count one more entry. All messages of a batch count, also acknowledged ones."""
        metadata = message_metadata_of(entry.entry)
        self.entries += 1
        self.messages += max(metadata.num_messages_in_batch, 1)
        self.markers += metadata.HasField("marker_type")
        self.first, self.last = self.first or entry.position, entry.position

    def to_json(self) -> dict[str, Any]:
        """Return Pulsar's JSON. There are no entry filters, so all entries count as accepted."""
        ends = {"firstMessageId": self.first, "lastMessageId": self.last}
        return {
            "entries": self.entries,
            "messages": self.messages,
            "markerMessages": self.markers,
            "filterRejectedEntries": 0,
            "filterAcceptedEntries": self.entries,
            "filterRescheduledEntries": 0,
            "filterRejectedMessages": 0,
            "filterAcceptedMessages": self.messages,
            "filterRescheduledMessages": 0,
            "aborted": self.aborted,
        } | {name: str(position) for name, position in ends.items() if position is not None}


def skip(topic: Topic, subscription: str, entry_count: int) -> int:
    """Acknowledge the next unacknowledged entries, and return their count. Raise SubscriptionNotFound."""
    target = topic.subscription(subscription)
    return target.skip_to(after_skipping(topic.log, target.cursor, entry_count))


def clear(topic: Topic, subscription: str) -> int:
    """Acknowledge everything, and return the number of entries. Raise SubscriptionNotFound."""
    return topic.subscription(subscription).skip_to(topic.positions.durable)


class Acknowledged(NamedTuple):
    """The outcome of `acknowledge`."""

    new: int
    """Entries of which something was not acknowledged before."""
    resets: int
    """The resets of the subscription so far."""
    refused: bool = False
    """True if a reset came between, and nothing was acknowledged."""


async def acknowledge(
    topic: Topic,
    subscription: str,
    acknowledgements: Acknowledgements,
    *,
    resets: int | None,
    reset_as: int | None = None,
) -> Acknowledged:
    """Acknowledge what consumers acknowledged on another cluster; durable on return.

    With ``resets``, do so only if the subscription has been reset that often. With ``reset_as``, carry a reset instead:
    only what is up to the mark-delete position remains acknowledged, and ``reset_as`` is the number of resets then.

    Raise SubscriptionNotFound, also for cursors that are no subscriptions of clients, OperationNotAllowed for a reader,
    and InvalidRequest for a position that is not in the log.
    """
    target = topic.subscription_set.of_client(subscription)
    async with target.changing:
        if target.deleted:
            raise SubscriptionNotFound(f"Subscription {subscription} of topic {topic.name} was deleted meanwhile")
        _check_known(topic, acknowledgements)
        count = target.cursor.resets
        if resets is not None and resets != count:
            return Acknowledged(0, count, refused=True)
        if reset_as is not None:
            await target.reset_from_elsewhere(acknowledgements.mark_delete or EARLIEST, reset_as)
            return Acknowledged(0, reset_as)
        new = target.acknowledge_from_elsewhere(acknowledgements)
    await topic.flush()
    topic.check_open()
    return Acknowledged(new, count)


def _check_known(topic: Topic, acknowledgements: Acknowledgements) -> None:
    for unknown in topic.positions.unknown(acknowledgements.last_positions()):
        raise InvalidRequest(
            f"Position {unknown} is not in the log of {topic.name}, whose last entry is {topic.positions.durable}; "
            f"nothing was acknowledged"
        )


def bytes_behind(topic: Topic, position: Position) -> int:
    """Estimate the bytes after a message; all bytes, if its ledger is not part of the topic."""
    ledgers = topic.log.ledgers
    is_own = any(ledger.ledger_id == position.ledger for ledger in ledgers)
    return bytes_after(ledgers, position if is_own else EARLIEST)


async def analyze(topic: Topic, subscription: str, start: Position | None, limits: ScanLimits) -> BacklogAnalysis:
    """Read and count the backlog of a subscription; raise SubscriptionNotFound.

    It begins with the entry at ``start`` even if that is acknowledged: as in Pulsar, only acknowledgements after the
    mark-delete position are left out. Markers count, although the broker acknowledges them itself.
    """
    cursor = topic.subscription(subscription).cursor
    begun_ms, analysis = topic.now_ms(), BacklogAnalysis()
    after = cursor.mark_delete if start is None else Position(start.ledger, start.entry - 1)
    while (following := topic.log.next_position(after)) is not None and following <= topic.positions.durable:
        for entry in await topic.log.read(following, entries_max=_SCANNED_AT_ONCE, bytes_max=_SCANNED_BYTES):
            after = entry.position
            acknowledged = after > cursor.mark_delete and cursor.is_acknowledged(after)
            if after > topic.positions.durable or (acknowledged and not entry_metadata_of(entry.entry).is_marker):
                continue
            if analysis.entries >= limits.entries_max or topic.now_ms() - begun_ms > limits.time_ms_max:
                analysis.aborted = True
                return analysis
            analysis.count(entry)
    return analysis


async def reset(topic: Topic, subscription: str, target: MessageId, *, excluded: bool) -> None:
    """Close the consumers, then deliver from ``target`` or after it. Raise SubscriptionNotFound.

    An index outside the batch means its first message.
    """
    moved = topic.subscription(subscription)
    begin = await behind(topic, target) if excluded else target
    size = await topic.positions.batch_size(begin.position) if begin.batch_index > 0 else 0
    waiting = (1 << size) - (1 << begin.batch_index) if 0 < begin.batch_index < size else 0
    await moved.seek(begin, words_of(waiting) if waiting else ())


async def behind(topic: Topic, target: MessageId) -> MessageId:
    """Return the message after ``target``: the next of its batch, else the next entry. Latest and earliest stay."""
    if not 0 <= target.entry < LATEST.entry:
        return target
    if 0 <= target.batch_index < await topic.positions.batch_size(target.position) - 1:
        return target._replace(batch_index=target.batch_index + 1)
    return target._replace(entry=target.entry + 1, batch_index=-1)


async def peek(topic: Topic, subscription: str, number: int) -> LogEntry:
    """Return the ``number``-th unacknowledged entry, from 1.

    An unknown name gets the result of a subscription from the earliest message. Pulsar creates that subscription; here
    nothing is created. Raises NotFound at the end, SubscriptionNotFound for a replicator.
    """
    exists = subscription in topic.subscriptions or topic.remote_of(subscription) is not None
    position = nth_waiting(topic.log, topic.subscription(subscription).cursor if exists else None, number)
    if position is None:
        raise NotFound("Message not found")
    return await topic.positions.read_entry(position)


async def truncate(topic: Topic) -> None:
    """Remove all entries; each subscription moves to the end. Durable on return.

    Clients stay connected, pending publishes are answered, and later messages may survive. One commit removes all
    ledgers, wherever stored cursors point. The sequence ids of producers are stored first, so that a repeated message
    is still recognised.
    """
    topic.check_open()
    await topic.compaction.forget()
    if not topic.log.terminated:
        await topic.log.roll()
    end = topic.positions.durable if topic.log.terminated else Position(topic.log.ledgers[-1].ledger_id, -1)
    topic.sequences.snapshot_due = topic.sequences.deduplication is not None
    await topic.flush()
    await topic.broker_entry_metadata.before_trim()
    await topic.log.trim(LATEST if topic.log.terminated else end)
    await topic.compaction.forget()  # a run that began meanwhile
    for subscription in topic.subscriptions.values():
        subscription.skip_to(end)
        subscription.pump()
    await topic.flush()
    log.info("topic truncated topic=%s upto=%s", topic.name, end)


async def expire_older(topic: Topic, subscription: str, seconds: int) -> None:
    """Acknowledge entries published longer ago than this. Raise SubscriptionNotFound; Conflict for an empty backlog."""
    if topic.subscription(subscription).cursor.backlog(topic.positions.durable) == 0:
        raise Conflict(
            f"Expire message by timestamp not issued on topic {topic.name} for subscription {subscription}: "
            "it has no backlog. On a partitioned topic other partitions may have been expired"
        )
    await expire(topic, subscription, seconds)


def expire_upto(topic: Topic, subscription: str, position: Position) -> None:
    """Acknowledge everything up to this entry. Raise SubscriptionNotFound; Conflict after the end of the topic."""
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
                *(topic.name, of_client.name, (topic.now_ms() - of_client.idle_since_ms) // 1000),
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
    if topic.log.compacted.committing:
        return EARLIEST  # if the commit fails, compaction has not passed the cursor's current position
    needed = [subscription.cursor.mark_delete for subscription in topic.subscriptions.values() if subscription.durable]
    snapshot_position = topic.sequences.needed_from
    if snapshot_position is not None:
        needed.append(snapshot_position)
    return min(needed, default=LATEST)

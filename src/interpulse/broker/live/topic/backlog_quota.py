"""The backlog quotas of one topic, enforced after `rules.limits`, and the ages of its backlogs.

An exceeded quota either holds producers, which are disconnected and refused, or evicts: subscriptions that are behind
acknowledge the excess. Only durable subscriptions count. Entries for another cluster hold producers as well, but are
never evicted: they would be missing there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.log_search import bytes_after, position_leaving, publish_time_of
from interpulse.broker.live.producing.producer_set import ProducerSet
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.topic_clients import TopicLimits
from interpulse.model.errors import NotFound
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import (
    CONSUMER_BACKLOG_EVICTION,
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    BacklogQuota,
)
from interpulse.rules.limits import age_kept_ms, bytes_kept, described, exceeded, refusal
from interpulse.storage.api import Log
from interpulse.storage.cursors import COMPACTION_CURSOR

log = logging.getLogger(__name__)


class BacklogOwner(Protocol):
    """The interface of the topic for its quotas."""

    limits: TopicLimits
    log: Log
    name: TopicName
    now_ms: Callable[[], int]
    positions: LogPositions
    producers: ProducerSet
    subscriptions: dict[str, Subscription]

    def remote_of(self, subscription: str) -> str | None: ...


class _Oldest(NamedTuple):
    """The oldest message in the backlog of a subscription, as of the last check."""

    position: Position
    publish_time_ms: int
    subscription: str


class _Age(NamedTuple):
    """The publish time of the oldest message in one subscription's backlog, as of the last lookup."""

    mark_delete: Position
    publish_time_ms: int
    looked_up_ms: int


class BacklogKeeper:
    """The enforcement of one topic's quotas."""

    def __init__(self, owner: BacklogOwner) -> None:
        self._owner = owner
        self._oldest: _Oldest | None = None
        self._ages: dict[str, _Age] = {}
        self.evictions: Counter[str] = Counter()
        """Evictions, by type of quota."""

    async def check_producer(self) -> None:
        """Raise QuotaExceededError or QuotaExceededException while producers are held."""
        error = refusal(await self._exceeded())
        if error is not None:
            raise error

    async def check(self) -> None:
        """Check the quotas, and enforce an exceeded one."""
        if self._owner.limits.settings.backlog_ages_shown or self._ages:
            await self._look_up_ages()
        for quota_type, quota in (await self._exceeded()).items():
            if quota.policy != CONSUMER_BACKLOG_EVICTION:
                producers = self._owner.producers
                if producers.by_name or producers.waiting:
                    reason = described(quota_type, quota)
                    log.warning("producers held back topic=%s quota=%s", self._owner.name, reason)
                    producers.close_by_broker()
            elif quota_type == DESTINATION_STORAGE:
                ledgers, size = self._owner.log.ledgers, bytes_kept(quota)
                behind = [(subscription, subscription.cursor.mark_delete) for subscription in self._evictable()]
                upto = [(subscription, position_leaving(ledgers, mark, size)) for subscription, mark in behind]
                self._evict(quota_type, quota, upto)
            else:
                since = self._owner.now_ms() - age_kept_ms(quota)
                position = await self._owner.positions.before_time(since)
                self._evict(quota_type, quota, [(subscription, position) for subscription in self._evictable()])

    def stats(self) -> dict[str, Any]:
        """Return the quotas, and the age of the backlog as of the last check."""
        quotas = self._owner.limits.settings.backlog_quotas
        storage, age = quotas.get(DESTINATION_STORAGE), quotas.get(MESSAGE_AGE)
        oldest = self._oldest
        subscription = self._owner.subscriptions.get(oldest.subscription) if oldest else None
        if oldest and (subscription is None or subscription.cursor.is_acknowledged(oldest.position)):
            oldest = None  # it left the backlog after the last check
        return {
            "backlogQuotaLimitSize": storage.limit_bytes if storage else -1,
            "backlogQuotaLimitTime": age.limit_seconds if age else -1,
            "oldestBacklogMessageAgeSeconds": self._age_ms(oldest) // 1000 if oldest else -1,
        } | ({"oldestBacklogMessageSubscriptionName": oldest.subscription} if oldest else {})

    def age_seconds(self, subscription: str) -> int:
        """Return the age of the oldest message in the backlog of a durable subscription (PIP-492), -1 if unknown.

        It is exact while that message is unacknowledged, else as of the last check.
        """
        age, owner = self._ages.get(subscription), self._owner
        waiting = owner.subscriptions.get(subscription)
        if age is None or waiting is None or not waiting.cursor.backlog(owner.positions.durable):
            return -1
        until = owner.now_ms() if waiting.cursor.mark_delete == age.mark_delete else age.looked_up_ms
        return max(0, until - age.publish_time_ms) // 1000

    # --- how much there is

    async def _exceeded(self) -> dict[str, BacklogQuota]:
        quotas = self._owner.limits.settings.backlog_quotas
        if not quotas:
            return {}
        slowest = min(self._behind(), key=lambda subscription: subscription.cursor.mark_delete, default=None)
        self._oldest = None
        if slowest is not None and (message := await self._next_message(slowest.cursor.mark_delete)) is not None:
            self._oldest = _Oldest(*message, slowest.name)
        ledgers = self._owner.log.ledgers
        size = max(
            (bytes_after(ledgers, subscription.cursor.mark_delete) for subscription in self._behind()), default=0
        )
        return exceeded(quotas, size, self._age_ms(self._oldest) if self._oldest else 0)

    def _behind(self) -> Iterator[Subscription]:
        last = self._owner.positions.durable
        for name, subscription in self._owner.subscriptions.items():
            if subscription.durable and name != COMPACTION_CURSOR and subscription.cursor.backlog(last):
                yield subscription

    def _evictable(self) -> Iterator[Subscription]:
        return (
            subscription for subscription in list(self._behind()) if self._owner.remote_of(subscription.name) is None
        )

    async def _look_up_ages(self) -> None:
        """Read one message for each position that subscriptions have reached since the last check."""
        times = {age.mark_delete: age.publish_time_ms for age in self._ages.values()}
        ages: dict[str, _Age] = {}
        for subscription in self._evictable() if self._owner.limits.settings.backlog_ages_shown else ():
            mark_delete = subscription.cursor.mark_delete
            if mark_delete not in times:
                message = await self._next_message(mark_delete)
                if message is None:
                    continue
                times[mark_delete] = message[1]
            ages[subscription.name] = _Age(mark_delete, times[mark_delete], self._owner.now_ms())
        self._ages = ages

    async def _next_message(self, mark_delete: Position) -> tuple[Position, int] | None:
        """Return the message after a position and its publish time; None if there is none."""
        position = self._owner.log.next_position(mark_delete)
        if position is None:
            return None
        try:
            entry = await self._owner.positions.read_entry(position)
        except NotFound:
            return None  # acknowledged and trimmed meanwhile
        return position, publish_time_of(entry.entry)

    def _age_ms(self, oldest: _Oldest) -> int:
        return max(0, self._owner.now_ms() - oldest.publish_time_ms)

    # --- what is done about it

    def _evict(self, quota_type: str, quota: BacklogQuota, upto: Sequence[tuple[Subscription, Position]]) -> None:
        reason, count_all = described(quota_type, quota), 0
        for subscription, position in upto:
            count = subscription.skip_to(position)
            if count:
                count_all += count
                log.warning(
                    "backlog evicted topic=%s subscription=%s entries=%d upto=%s quota=%s",
                    *(self._owner.name, subscription.name, count, position, reason),
                )
        if count_all:
            self.evictions[quota_type] += 1
        else:
            log.warning("backlog quota exceeded, nothing to evict topic=%s quota=%s", self._owner.name, reason)

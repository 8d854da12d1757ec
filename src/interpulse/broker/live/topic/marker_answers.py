"""The reaction of a topic to the markers in its log: subscriptions pass them, and updates move subscriptions.

No consumer gets a marker, so none may count as backlog: each is acknowledged on every subscription of clients as soon
as it is durable. Replication cursors stay, because their job decides about every entry. A topic without markers never
comes here. Source: docs/reference/subscriptions.md#replicated-subscriptions.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from itertools import takewhile
from typing import Any, Final, Protocol

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.markers import parse_marker, position_on

log = logging.getLogger(__name__)

_READ_AT_ONCE: Final = 100
_READ_BYTES: Final = 2**20


class MarkedTopic(Protocol):
    """The interface of the topic for its markers."""

    entry_metadata: EntryMetadataCache
    log: Log
    name: TopicName
    positions: LogPositions
    settings: TopicSettings
    subscription_set: SubscriptionSet

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class MarkerAnswers:
    """The reaction of one topic."""

    __slots__ = ("_cluster", "_topic")

    def __init__(self, topic: MarkedTopic, cluster: str) -> None:
        """``cluster`` is the name of this cluster in markers."""
        self._topic = topic
        self._cluster = cluster

    def stored(self, markers: Sequence[LogEntry]) -> None:
        """React to markers that became durable."""
        positions = [marker.position for marker in markers]
        for subscription in self._topic.subscription_set.of_clients():
            subscription.pass_markers(positions)
        if self._topic.settings.replicated_subscriptions_enabled:
            for marker in markers:
                self._react(marker.entry)

    def cursor_placed(self, subscription: Subscription) -> None:
        """Pass the markers after a position at which a cursor was placed, or with which it was restored.

        The log is read only for markers from before the topic was loaded, and only directly after the position.
        """
        if not self._topic.subscription_set.is_of_client(subscription.name):
            return
        durable, mark_delete = self._topic.positions.durable, subscription.cursor.mark_delete
        known = [position for position in self._topic.entry_metadata.markers_after(mark_delete) if position <= durable]
        if known:
            subscription.pass_markers(known)
        if subscription.replicate_state and subscription.cursor.backlog(durable):
            self._topic.spawn(self._pass_next(subscription))

    async def _pass_next(self, subscription: Subscription) -> None:
        """Read the entries after the mark-delete position, and pass those in front of the first message."""
        topic, cursor = self._topic, subscription.cursor
        try:
            while (following := topic.log.next_position(cursor.mark_delete)) is not None:
                entries = await topic.log.read(following, entries_max=_READ_AT_ONCE, bytes_max=_READ_BYTES)
                topic.entry_metadata.learn(entries)
                markers = [position for position, _ in takewhile(self._is_passed, entries)]
                before = cursor.mark_delete
                subscription.pass_markers(markers)
                if cursor.mark_delete == before or subscription.deleted:
                    return
        except PulsarError as error:
            log.debug("markers not passed topic=%s subscription=%s error=%s", topic.name, subscription.name, error)

    def _is_passed(self, entry: LogEntry) -> bool:
        durable = entry.position <= self._topic.positions.durable
        return durable and self._topic.entry_metadata.get(*entry).is_marker

    def _react(self, entry: bytes) -> None:
        marker = parse_marker(entry)
        source = "" if marker is None else marker.metadata.replicated_from
        if marker is None or source in ("", self._cluster):
            return
        if isinstance(marker.payload, pb.ReplicatedSubscriptionsUpdate):
            position = position_on(self._cluster, marker.payload.clusters)
            if position is not None:
                self._update(marker.payload.subscription_name, position, source)

    def _update(self, name: str, position: Position, source: str) -> None:
        """Move a subscription forward to the position of an update; create a missing one there."""
        topic, subscriptions = self._topic, self._topic.subscription_set
        if not self._has(position):
            log.warning(
                "update of a subscription ignored: its position is not in the log "
                "topic=%s subscription=%s cluster=%s position=%s",
                *(topic.name, name, source, position),
            )
            return
        subscription = subscriptions.by_name.get(name)
        if subscription is None:
            topic.spawn(self._create(name, position, source))
        elif subscription.durable and subscriptions.is_of_client(name):
            subscription.skip_to(position)

    async def _create(self, name: str, position: Position, source: str) -> None:
        topic_name = self._topic.name
        try:
            subscription = await self._topic.subscription_set.create_replicated(name, position)
        except PulsarError as error:
            log.warning(
                "replicated subscription not created topic=%s subscription=%s cluster=%s error=%s",
                *(topic_name, name, source, error),
            )
            return
        subscription.skip_to(position)
        self.cursor_placed(subscription)

    def _has(self, position: Position) -> bool:
        """Return False for a position that the log never had, or does not have yet."""
        ledgers = self._topic.log.ledgers
        if position > self._topic.positions.durable or not ledgers:
            return False
        if position.ledger < ledgers[0].ledger_id:
            return True  # trimmed
        return any(each.ledger_id == position.ledger and position.entry < each.entries for each in ledgers)

"""The reaction of a topic to markers in its log: it passes them, answers requests, and applies updates.

No consumer gets a marker, so none may count as backlog: each is acknowledged on every subscription of clients as soon
as it is durable. Replication cursors stay, because their job decides about every entry. A topic without markers never
comes here. Source: docs/reference/subscriptions.md#replicated-subscriptions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, Protocol

from interpulse.broker.live.api import TopicSettings
from interpulse.broker.live.compaction.log_positions import LogPositions
from interpulse.broker.live.entry_metadata import EntryMetadataCache
from interpulse.broker.live.topic.publishing import Publishing
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.model.errors import PulsarError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogEntry
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.markers import build_marker, cluster_position, parse_marker, position_on

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 1.0
"""The shortest time between two answers to a cluster, which asks once per second."""
_COPIED_WITHIN_SECONDS: Final = 5.0
"""The time that an answer waits for a task that copies the topic to the cluster, which the request may have started."""
_READ_AT_ONCE: Final = 20
_READ_BYTES: Final = 64 * 1024


class _Request(NamedTuple):
    """A request for a snapshot, and its position in this log."""

    snapshot_id: str
    position: Position


class MarkedTopic(Protocol):
    """The interface of the topic for its markers."""

    entry_metadata: EntryMetadataCache
    log: Log
    name: TopicName
    now_ms: Callable[[], int]
    positions: LogPositions
    publishing: Publishing
    settings: TopicSettings
    subscription_set: SubscriptionSet

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class MarkerAnswers:
    """The reaction of one topic."""

    __slots__ = ("_answered", "_asked", "_cluster", "_topic")

    def __init__(self, topic: MarkedTopic, cluster: str) -> None:
        """``cluster`` is the name of this cluster in markers."""
        self._topic = topic
        self._cluster = cluster
        self._asked: dict[str, _Request] = {}
        """The newest request without an answer, by the cluster that asks."""
        self._answered: dict[str, float] = {}
        """The time of the last answer to each cluster, by the clock of the event loop."""

    def stored(self, markers: Sequence[LogEntry]) -> None:
        """React to markers that became durable."""
        positions = [marker.position for marker in markers]
        for subscription in self._topic.subscription_set.of_clients():
            subscription.pass_markers(positions)
        if self._topic.settings.replicated_subscriptions_enabled:
            for marker in markers:
                self._react(marker)

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
                if not markers or topic.subscription_set.by_name.get(subscription.name) is not subscription:
                    return
                before = cursor.mark_delete
                subscription.pass_markers(markers)
                if cursor.mark_delete == before:
                    return  # compacted entries come first
        except PulsarError as error:
            log.debug("markers not passed topic=%s subscription=%s error=%s", topic.name, subscription.name, error)

    def _is_passed(self, entry: LogEntry) -> bool:
        durable = entry.position <= self._topic.positions.durable
        return durable and self._topic.entry_metadata.get(*entry).is_marker

    def _react(self, stored: LogEntry) -> None:
        marker = parse_marker(stored.entry)
        source = "" if marker is None else marker.metadata.replicated_from
        if marker is None or source in ("", self._cluster):
            return
        if isinstance(marker.payload, pb.ReplicatedSubscriptionsUpdate):
            position = position_on(self._cluster, marker.payload.clusters)
            if position is not None:
                self._update(marker.payload.subscription_name, position, source)
        elif isinstance(marker.payload, pb.ReplicatedSubscriptionsSnapshotRequest):
            self._request(_Request(marker.payload.snapshot_id, stored.position), source)

    def _request(self, request: _Request, source: str) -> None:
        """Answer a request of a cluster that this topic is copied to. The newest one stands for those that wait."""
        cursor = self._topic.subscription_set.of_remote(source)
        if cursor is None:
            return
        waits = source in self._asked
        self._asked[source] = request
        if not waits:
            self._topic.spawn(self._answer(source, cursor))

    async def _answer(self, source: str, cursor: Subscription) -> None:
        """Append a response once a task copies the topic from ``cursor``, else drop the request.

        Without such a task the response would arrive late or never, and the cluster asks again in any case.
        """
        now = asyncio.get_running_loop().time
        due = self._answered.get(source, -_ANSWER_SECONDS) + _ANSWER_SECONDS
        await asyncio.sleep(max(0.0, due - now()))
        assert cursor.promises is not None, "it is a replication cursor"
        is_copied = await cursor.promises.in_force_within(_COPIED_WITHIN_SECONDS)
        request = self._asked.pop(source)
        if not is_copied or cursor.deleted:
            return
        self._answered[source] = now()
        response = pb.ReplicatedSubscriptionsSnapshotResponse(
            snapshot_id=request.snapshot_id, cluster=cluster_position(self._cluster, request.position)
        )
        try:
            self._topic.publishing.append_marker(build_marker(response, self._topic.now_ms(), replicate_to=[source]))
        except PulsarError as error:
            log.debug("request for a snapshot not answered cluster=%s error=%s", source, error)

    def _update(self, name: str, position: Position, source: str) -> None:
        """Move a subscription forward to the position of an update; create a missing one there."""
        topic, subscriptions = self._topic, self._topic.subscription_set
        if any(topic.positions.unknown([position])):
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

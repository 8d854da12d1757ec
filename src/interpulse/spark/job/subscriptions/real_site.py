"""Subscriptions of an Apache Pulsar cluster, which does not say what has changed: it is asked topic by topic.

Its admin API does not show which messages of a batch are acknowledged, so a batch is carried from there once it is
complete. Source: docs/reference/subscriptions.md#on-both-clusters.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.unread_entries import acknowledge_unread
from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.model.errors import ConsumerBusy, NotFound, PulsarError, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import Acknowledgements, News, joined
from interpulse.replication.shown_acknowledgements import acknowledgements_in_stats
from interpulse.spark.job.copied_entries import LogPlaces
from interpulse.spark.job.source_backlog import cursor_position
from interpulse.spark.job.subscriptions.site import SubscriptionState, WantedSubscriptions, create_replicated
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.markers import build_marker, cluster_position

log = logging.getLogger(__name__)

_PERIOD_S: Final = 1.0
_REQUESTS_PER_SECOND: Final = 50
_NAMES_S: Final = 30.0
"""Time after which the subscriptions of a topic are listed again."""
_UPDATE_AGAIN_S: Final = 30.0
"""Time after which an update that had no effect is sent again."""
_CONSUMER: Final = "interpulse-acks"


class RealSite:
    """An Apache Pulsar, whose internal statistics of topics with wanted subscriptions are polled; see `Site`."""

    keeps_resets = False

    def __init__(
        self, cluster: str, admin: AdminClient, wanted: WantedSubscriptions, session: Callable[[], Session], other: str
    ) -> None:
        """``session`` returns a client of the cluster. ``other`` is the cluster that acknowledgements come from."""
        self.cluster = cluster
        self._admin = admin
        self._wanted = wanted
        self._session = session
        self._other = other
        self._topics: frozenset[TopicName] = frozenset()
        self._listed: dict[TopicName, tuple[float, dict[str, dict[str, str]]]] = {}
        """Time at which the wanted subscriptions of a topic were listed, and their properties."""
        self._states: dict[TopicName, dict[str, SubscriptionState]] = {}
        self._changed: set[str] = set()
        self._in_use: set[str] = set()
        """Topics with a subscription whose consumers let no other acknowledge."""
        self._problems: dict[TopicName, str] = {}
        self._resets: dict[tuple[TopicName, str], int] = {}
        """Numbers of resets that were seen or carried, by topic and subscription."""
        self._updates: dict[tuple[TopicName, str], tuple[Position, float]] = {}
        """Position of the last update of a subscription, and the time at which it was sent."""
        self._moved_count = 0
        """Number of calls that changed something. A look during which it rises may be out of date."""
        self._polling: asyncio.Task[None] | None = None

    def follow(self, topics: Collection[TopicName]) -> None:
        """Follow the subscriptions of these topic-partitions, and of no others. Raise what ended that unexpectedly."""
        if self._polling is not None and self._polling.done():
            ended, self._polling = self._polling, None
            ended.result()
        self._topics = frozenset(topics)
        for gone in self._states.keys() - self._topics:
            del self._states[gone]
            self._listed.pop(gone, None)
            self._problems.pop(gone, None)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll())

    def problem(self, topic: TopicName) -> str | None:
        """Return the reason why changes of a topic-partition are not seen at present, or None."""
        return self._problems.get(topic)

    def states(self, topic: TopicName) -> Mapping[str, SubscriptionState]:
        """Return the subscriptions of a topic-partition, by name."""
        return self._states.get(topic, {})

    def take_changed(self) -> set[str]:
        """Return the topic-partitions that have changed since the last call."""
        changed, self._changed, self._in_use = self._changed | self._in_use, set(), set()
        return changed

    async def _poll(self) -> None:
        while True:
            started = time.monotonic()
            for topic in sorted(self._topics, key=str):
                requests = 1
                try:
                    requests = await self._look(topic)
                    self._problems.pop(topic, None)
                except NotFound:
                    self._states.pop(topic, None)
                except PulsarError as problem:
                    self._note_problem(topic, str(problem))
                await asyncio.sleep(requests / _REQUESTS_PER_SECOND)
            await asyncio.sleep(max(0.0, started + _PERIOD_S - time.monotonic()))

    def _note_problem(self, topic: TopicName, problem: str) -> None:
        if self._problems.get(topic) != problem:
            log.warning("subscriptions are not followed cluster=%s topic=%s error=%s", self.cluster, topic, problem)
        self._problems[topic] = problem

    async def _look(self, topic: TopicName) -> int:
        """Look at the subscriptions of a topic-partition. Return the number of requests."""
        requests = 0
        listed_at, names = self._listed.get(topic, (0.0, {}))
        if time.monotonic() - listed_at > _NAMES_S:
            names, requests = self._wanted_of(await self._admin.topics.stats(topic)), 1
            self._listed[topic] = time.monotonic(), names
        if not names:
            self._states.pop(topic, None)
            return requests
        moved_count = self._moved_count
        stats = await self._admin.topics.internal_stats(topic)
        if moved_count != self._moved_count:
            return requests + 1  # this may be from before
        before = self._states.get(topic, {})
        states = {name: state for name in names if (state := self._state_of(stats, topic, name, names[name]))}
        if states != before:
            self._states[topic] = states
            self._changed.add(str(topic))
        return requests + 1

    def _state_of(
        self, stats: Mapping[str, Any], topic: TopicName, name: str, properties: Mapping[str, str]
    ) -> SubscriptionState | None:
        """Return the state in internal statistics. A mark-delete position that fell was reset."""
        mark_delete = cursor_position(stats, name)
        if mark_delete is None:
            return None
        earlier = self._states.get(topic, {}).get(name)
        acknowledged = acknowledgements_in_stats(stats["cursors"][name])
        if earlier is not None and mark_delete < earlier.acknowledgements.mark_delete:
            self._resets[topic, name] = earlier.resets + 1
        elif earlier is not None:  # parts of batches are not shown
            parts = earlier.acknowledgements.masks.items()
            masks = {position: mask for position, mask in parts if not acknowledged.holds(position)}
            acknowledged = replace(acknowledged, masks=masks)
        return SubscriptionState(acknowledged, self._resets.get((topic, name), 0), properties)

    def _wanted_of(self, stats: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        return {
            name: shown.get("subscriptionProperties") or {}
            for name, shown in stats.get("subscriptions", {}).items()
            if shown.get("durable", shown.get("isDurable", True))
            and self._wanted.has(name, replicated=bool(shown.get("replicated", shown.get("isReplicated", False))))
        }

    async def create(self, topic: TopicName, subscription: str, properties: Mapping[str, str]) -> None:
        """Create a replicated subscription at the first entry. One that has just come is marked."""
        await create_replicated(self._admin, topic, subscription, properties)
        self._listed.pop(topic, None)

    async def acknowledge(self, topic: TopicName, subscription: str, news: News, *, resets: int) -> int:
        """Acknowledge entries as one more consumer, or by an update of the subscription where none is let in.

        The rest waits until the consumers have gone.
        """
        stats = await self._admin.topics.stats(topic)
        shown = stats.get("subscriptions", {}).get(subscription)
        if shown is None:
            raise SubscriptionNotFound(f"Subscription {subscription} not found for topic {topic}")
        if not shown.get("consumers") or shown.get("type") == "Shared":
            try:
                await self._acknowledge_unread(topic, subscription, news)
                self._note_acknowledged(topic, subscription, news)
                return news.entries
            except ConsumerBusy:
                pass  # a consumer has just come
        self._in_use.add(str(topic))
        return await self._update(topic, subscription, news, stats)

    async def _acknowledge_unread(self, topic: TopicName, subscription: str, news: News) -> None:
        positions = (
            Position(first.ledger, entry) for first, last in news.spans for entry in range(first.entry, last.entry + 1)
        )
        session = self._session()
        await acknowledge_unread(session, topic, subscription, positions, news.masks, consumer_name=_CONSUMER)

    def _note_acknowledged(self, topic: TopicName, subscription: str, news: News) -> None:
        """Take the acknowledgements for the present state until the next look, so that they are not sent again."""
        self._moved_count += 1
        state = self._states.get(topic, {}).get(subscription)
        if state is not None:
            known = state.acknowledgements
            beyond = tuple(joined([*known.beyond, *news.spans]))
            held = Acknowledgements(known.mark_delete, beyond, {**known.masks, **news.masks})
            self._states[topic] = {**self._states[topic], subscription: replace(state, acknowledgements=held)}

    async def _update(self, topic: TopicName, subscription: str, news: News, stats: Mapping[str, Any]) -> int:
        """Send an update for what follows the mark-delete position directly. Return the number of entries.

        Apache Pulsar applies it if its own replicator copies the topic to the other cluster.
        """
        if self._other not in stats.get("replication", {}) or not news.spans:
            return 0
        sent, sent_at = self._updates.get((topic, subscription), (EARLIEST, 0.0))
        if news.spans[0].last <= sent and time.monotonic() < sent_at + _UPDATE_AGAIN_S:
            return 0
        internal = await self._admin.topics.internal_stats(topic)
        stands, places = cursor_position(internal, subscription), LogPlaces.of(internal)
        first, last = news.spans[0]
        if stands is None or places.number_of(first) != places.number_of(stands) + 1:
            return 0
        update = pb.ReplicatedSubscriptionsUpdate(
            subscription_name=subscription, clusters=[cluster_position(self.cluster, last)]
        )
        async with EntrySender(self._session(), topic, _CONSUMER, schema_of_topic=True, encrypted=True) as sender:
            await sender.open()
            await (await sender.send_marker(0, build_marker(update, now_ms(), replicated_from=self._other)))
        self._updates[topic, subscription] = last, time.monotonic()
        return last.entry - first.entry + 1 if last > sent else 0

    async def reset(self, topic: TopicName, subscription: str, upto: Position, *, before: int, resets: int) -> None:
        """Move a subscription back. Its consumers connect again."""
        await self._admin.topics.reset_cursor_to_message(topic, subscription, MessageId(*upto), excluded=True)
        self._moved_count += 1
        self._resets[topic, subscription] = resets
        self._updates.pop((topic, subscription), None)
        state = self._states.get(topic, {}).get(subscription)
        if state is not None:
            moved = replace(state, acknowledgements=Acknowledgements(upto), resets=resets)
            self._states[topic] = {**self._states[topic], subscription: moved}

    def forget(self, topic: TopicName, subscription: str) -> None:
        """Forget a subscription that was deleted."""
        self._states.get(topic, {}).pop(subscription, None)
        self._listed.pop(topic, None)

    async def close(self) -> None:
        """Stop to follow."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

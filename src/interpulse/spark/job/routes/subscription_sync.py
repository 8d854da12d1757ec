"""Subscriptions of the source, carried to the target, so that consumers that move there continue about where they were.

Delivery is at least once: messages acknowledged one by one beyond a gap come again, as do those acknowledged since the
last round. Made for one direction: earlier messages of the target's own producers are skipped.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.consuming.copied_entries import CopiedEntry, copied_entries
from interpulse.client.session import Session
from interpulse.in_turns import concurrently
from interpulse.model.errors import AlreadyExists, PulsarError
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.spark.job.copied_entries import LogPlaces, last_copy_upto
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.job.source_backlog import cursor_position

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_PROBE_BYTES: Final = 16 * 1024
_NOT_OF_USERS: Final = ("pulsar.", "interpulse.", "__")


class SubscriptionSync:
    """Synchronization of one route. A subscription that has not moved since the last round costs no request."""

    def __init__(self, route: Route, source: AdminClient, emit: Emit) -> None:
        self._route = route
        self._source = source
        self._emit = emit
        self._done: dict[tuple[str, str], Position] = {}
        self._refused: dict[str, str] = {}

    async def run(self, names: Collection[str], target: AdminClient, session: Session) -> None:
        """Carry all subscriptions of these topic-partitions once. A refusal is logged and affects no other."""

        async def one(name: str) -> None:
            try:
                await self._of_topic(name, target, session)
                self._refused.pop(name, None)
            except PulsarError as problem:
                if self._refused.get(name) != str(problem):
                    log.warning("subscriptions not carried over topic=%s error=%s", name, problem)
                self._refused[name] = str(problem)

        await concurrently(one, names, limit=_AT_ONCE)

    async def _of_topic(self, name: str, target: AdminClient, session: Session) -> None:
        include = self._route.config.subscriptions.include
        stats, positions = await asyncio.gather(
            self._source.topics.stats(name), self._source.topics.internal_stats(name)
        )
        for subscription in synchronized(stats, include):
            position = cursor_position(positions, subscription)
            if position is None or self._done.get((name, subscription)) == position:
                continue
            if await self._carry(name, subscription, position, target, session):
                self._done[name, subscription] = position

    async def _carry(
        self, name: str, subscription: str, source: Position, target: AdminClient, session: Session
    ) -> bool:
        """Carry one subscription. Return True if it is done; one in use on the target is left alone for now."""
        topic = self._route.target_name(TopicName.parse(name))
        there, stats = await asyncio.gather(target.topics.internal_stats(topic), target.topics.stats(topic))
        lane, origin = self._route.lane_of(name), self._route.config.source.cluster

        async def probe(after: Position, upto: Position) -> CopiedEntry | None:
            copies = copied_entries(session, topic, after, upto, buffer_bytes=_PROBE_BYTES)
            async with aclosing(copies):
                async for copy in copies:
                    if copy.origin == origin or copy.producer == lane:
                        return copy
            return None

        copy, is_final = await last_copy_upto(LogPlaces.of(there), source, probe)
        existing = stats.get("subscriptions", {}).get(subscription)
        if existing is None:
            try:
                await target.topics.create_subscription(topic, subscription, MessageId(*EARLIEST))
            except AlreadyExists:
                return False  # a consumer has just subscribed
        elif existing.get("consumers"):
            return False
        stands = cursor_position(there, subscription)
        if copy is not None and (stands is None or stands < copy):
            await target.topics.reset_cursor_to_message(topic, subscription, MessageId(*copy), excluded=True)
            positions = {"sourcePosition": str(source), "position": str(copy)}
            self._emit("subscription", topic=name, subscription=subscription, **positions)
        return is_final


def synchronized(stats: Mapping[str, Any], include: str | None) -> Iterator[str]:
    """Return the durable user subscriptions in a topic's stats. ``include`` matches a part of the name."""
    for name, shown in stats.get("subscriptions", {}).items():
        is_durable = shown.get("durable", shown.get("isDurable", True))
        if is_durable and not name.startswith(_NOT_OF_USERS) and (include is None or re.search(include, name)):
            yield name

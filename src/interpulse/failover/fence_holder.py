"""Fence around namespaces of a cluster without roles, held open by the running command.

Apache Pulsar has no roles. There the command itself holds an exclusive producer on each topic-partition. The fence ends
with the command: a killed one leaves nothing behind but the switched-off auto-creation, which the journal restores.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.closing import AsyncCloses
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.failover.fence import Fence, Gap
from interpulse.failover.site import SiteAccess
from interpulse.in_turns import concurrently
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import AutoTopicCreation

AutoCreation = Mapping[NamespaceName, AutoTopicCreation | None]
"""Overrides of namespaces for auto-creation; None if the broker's settings apply."""

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 64
_BACKOFF_MAX_MS: Final = 1000
"""Longest pause before a lost fence opens again: producers are in meanwhile."""

_NO_CREATION: Final = AutoTopicCreation(False)


def fence_name(pair: str, epoch: int) -> str:
    """Return the producer name of the fence of one operation."""
    return f"interpulse.fence.{pair}.e{epoch}"


async def auto_creation(admin: AdminClient, namespaces: Iterable[NamespaceName]) -> AutoCreation:
    """Return the present overrides of these namespaces, for the journal. Raise the cluster's error."""
    return {name: await admin.namespaces.auto_topic_creation(name) for name in namespaces}


async def restore_auto_creation(admin: AdminClient, before: AutoCreation) -> None:
    """Put back the overrides that were read before the fence. Raise the cluster's error."""
    for namespace, policy in before.items():
        if policy is None:
            await admin.namespaces.remove_auto_topic_creation(namespace)
        else:
            await admin.namespaces.set_auto_topic_creation(namespace, policy)


class FenceHolder(AsyncCloses):
    """Exclusive producers on all topic-partitions of a site, except system topics and those of the tool itself.

    They are named after the pair and the epoch; see :func:`fence_name`. ``access`` stays the caller's. A look each
    ``look_s`` covers topics that have appeared.
    """

    def __init__(
        self, access: SiteAccess, pair: str, epoch: int, *, look_s: float = 2.0, clock: Callable[[], int] = now_ms
    ) -> None:
        config = access.client.config
        self.name = fence_name(pair, epoch)
        self._session = Session(replace(config, backoff_max_ms=min(config.backoff_max_ms, _BACKOFF_MAX_MS)))
        self._access = access
        self._look_s = look_s
        self._clock = clock
        self._fences: dict[TopicName, Fence] = {}
        self._past_gaps: list[Gap] = []
        self._looked_ms = 0
        self._looking: asyncio.Task[None] | None = None

    async def hold(self) -> int:
        """Fence every topic, and return the time at which all fences were open, in milliseconds since 1970.

        Auto-creation of the namespaces is off from here on: read it before with :func:`auto_creation`. Raise the first
        refusal; the other fences are closed then.
        """
        for namespace in self._access.namespaces:
            await self._access.admin.namespaces.set_auto_topic_creation(namespace, _NO_CREATION)
        try:
            await self._cover()
            await concurrently(self._open, self._idle_fences(), limit=_AT_ONCE)
        except BaseException:
            await self._close_fences()
            raise
        self._looking = self._session.spawn(self._look_on())
        return self._clock()

    @property
    def topics(self) -> list[TopicName]:
        """Fenced topics and partitions, by name."""
        return sorted(self._fences, key=str)

    @property
    def open_topics(self) -> list[TopicName]:
        """Topics that are open to producers at this moment, by name."""
        return [topic for topic in self.topics if not self._fences[topic].holds]

    def gaps(self) -> list[Gap]:
        """Return all gaps so far, by their beginning. A gap that lasts has no end."""
        present = [gap for fence in self._fences.values() for gap in fence.gaps]
        return sorted([*self._past_gaps, *present], key=lambda gap: (gap.began_ms, str(gap.topic)))

    async def positions(self) -> dict[TopicName, Position]:
        """Return the last position of each topic, read from the broker now. Raise the cluster's error.

        That of an empty log has a negative entry. While :attr:`open_topics` is empty only copies and markers follow;
        read again after a gap.
        """
        topics = self.topics
        return dict(zip(topics, await concurrently(self._access.end, topics, limit=_AT_ONCE), strict=True))

    async def close(self) -> None:
        """Let producers in again. Auto-creation stays off: put it back by :func:`restore_auto_creation`."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._close_fences()
        await self._session.close()

    async def _close_fences(self) -> None:
        await concurrently(Fence.close, list(self._fences.values()), limit=_AT_ONCE)

    # ---- Topics that appear and disappear

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(self._look_s)
            try:
                await self._cover()
                await concurrently(self._open_or_log, self._idle_fences(), limit=_AT_ONCE)
            except PulsarError as error:
                _log.warning("topics of the fence cannot be listed name=%s error=%s", self.name, error)

    async def _cover(self) -> None:
        """Make a fence for each topic that has none, and drop those of topics that are gone."""
        looked_ms = self._clock()
        listed = set(await self._access.topics())
        for topic in self._fences.keys() - listed:
            await self._drop(topic)
        for topic in listed - self._fences.keys():
            self._fences[topic] = self._new_fence(topic)
        self._looked_ms = looked_ms

    def _new_fence(self, topic: TopicName) -> Fence:
        fence = Fence(self._session, topic, self.name, self._clock)
        if self._looking is not None:
            fence.begin_gap("the topic appeared while the namespace was fenced", self._looked_ms)
        return fence

    async def _drop(self, topic: TopicName) -> None:
        fence = self._fences.pop(topic)
        fence.end_gap()
        self._past_gaps += fence.gaps
        await fence.close()

    def _idle_fences(self) -> list[Fence]:
        return [fence for fence in self._fences.values() if fence.is_idle]

    async def _open_or_log(self, fence: Fence) -> None:
        try:
            await self._open(fence)
        except PulsarError as error:
            _log.warning("topic is not fenced topic=%s error=%s", fence.topic, error)

    async def _open(self, fence: Fence) -> None:
        try:
            await fence.open()
        except TopicNotFound:
            await self._drop(fence.topic)

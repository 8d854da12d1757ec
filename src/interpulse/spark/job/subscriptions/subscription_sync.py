"""The subscriptions of one route: what is acknowledged on either cluster is acknowledged on both, each second."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.session import Session
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.spark.job.pipeline_config import SYNC_ALL
from interpulse.spark.job.routes.live_copies import LiveCopies
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.job.selection import reports_acknowledgements
from interpulse.spark.job.subscriptions.copy_map import CopiedTopic, CopyMap
from interpulse.spark.job.subscriptions.exchange import BEHIND, HELD, Side, Standing, TopicExchange
from interpulse.spark.job.subscriptions.our_site import OurSite
from interpulse.spark.job.subscriptions.real_site import RealSite
from interpulse.spark.job.subscriptions.reverse_copies import ReverseCopies
from interpulse.spark.job.subscriptions.site import Site, WantedSubscriptions

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_REBUILDS: Final = 4
"""Topic-partitions of the target that are read at a time, which may take long."""
_HELD_S: Final = 10.0
"""Pause before the next attempt at a topic-partition that a cluster refused, unless something changes there."""


class SubscriptionSync:
    """Exchange of the subscriptions of one route. Call :meth:`follow` repeatedly with what is copied."""

    def __init__(self, route: Route, source: AdminClient, live: LiveCopies, emit: Emit) -> None:
        self._route = route
        self._settings = route.config.subscriptions
        self._admin = source
        self._live = live
        self._emit = emit
        self._files = route.files.positions
        self._source: Site | None = None
        self._target: Site | None = None
        self._source_session: Session | None = None
        self._exchanges: dict[str, TopicExchange] = {}
        self._waiting: set[str] = set()
        """Topic-partitions with something new."""
        self._retry_at: dict[str, float] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._rebuilds = asyncio.Semaphore(_REBUILDS)
        self._copied: Mapping[str, Position] = {}
        """Source positions up to which topic-partitions are copied, read while some are behind."""
        self._loop: asyncio.Task[None] | None = None

    async def follow(self, names: Collection[str], target: AdminClient, session: Session) -> None:
        """Exchange the subscriptions of these topic-partitions, and of no others.

        Raise the error of a cluster that does not answer at the first call, and what ended an exchange unexpectedly.
        """
        if not self._route.config.carries_subscriptions or (not names and self._loop is None):
            return
        if self._loop is not None and self._loop.done():
            ended, self._loop = self._loop, None
            ended.result()
        here, there = self._route.config.source.cluster, self._route.remote
        if self._source is None:
            namespace = TopicName.parse(next(iter(names))).namespace_name
            self._source = await self._site(here, self._admin, self._session_of_source, namespace, other=there)
        if self._target is None:
            namespace = self._target_of(next(iter(names))).namespace_name
            self._target = await self._site(there, target, lambda: session, namespace, other=here)
        self._follow(names, self._source, self._target, partial(self._copies, target, session))
        if self._loop is None:
            self._loop = asyncio.create_task(self._run(self._source, self._target))

    async def _site(
        self, cluster: str, admin: AdminClient, session: Callable[[], Session], namespace: NamespaceName, *, other: str
    ) -> Site:
        wanted = WantedSubscriptions(every=self._settings.sync == SYNC_ALL, include=self._settings.include)
        if await reports_acknowledgements(admin, namespace):
            return OurSite(cluster, admin, wanted)
        return RealSite(cluster, admin, wanted, session, other)

    def _session_of_source(self) -> Session:
        if self._source_session is None:
            self._source_session = self._route.config.source.session()
        return self._source_session

    def _follow(self, names: Collection[str], source: Site, target: Site, copies: Callable[[str], CopyMap]) -> None:
        for name in self._exchanges.keys() - set(names):
            del self._exchanges[name]
        for name in set(names) - self._exchanges.keys():
            topic = TopicName.parse(name)
            reverse = ReverseCopies(topic, self._route.remote, self._admin, self._session_of_source)
            self._exchanges[name] = TopicExchange(
                Side(source, topic),
                Side(target, self._target_of(name)),
                copies(name),
                reverse,
                partial(self._copied_upto, name),
                self._emit,
            )
        source.follow([exchange.source.topic for exchange in self._exchanges.values()])
        target.follow([exchange.target.topic for exchange in self._exchanges.values()])

    def _target_of(self, name: str) -> TopicName:
        return self._route.target_name(TopicName.parse(name))

    def _copies(self, admin: AdminClient, session: Session, name: str) -> CopyMap:
        copied = CopiedTopic(self._target_of(name), self._route.lane_of(name), self._route.config.source.cluster)
        return CopyMap(copied, admin, session, bytes_per_second=self._settings.rebuild_bytes_per_second)

    def _copied_upto(self, name: str) -> Position:
        """Return the source position up to which everything is copied, or is not to be copied."""
        return max(self._live.positions.get(name, EARLIEST), self._copied.get(name, EARLIEST))

    async def _run(self, source: Site, target: Site) -> None:
        while True:
            await asyncio.sleep(self._settings.interval_ms / 1000)
            await self._take_copies()
            there = {str(exchange.target.topic): name for name, exchange in self._exchanges.items()}
            self._waiting |= source.take_changed() | {there[name] for name in target.take_changed() if name in there}
            self._waiting |= self._due()
            self._start()

    async def _take_copies(self) -> None:
        """Take the positions of what was copied since the last call."""
        try:
            new = await asyncio.to_thread(self._files.read_new)
            if any(self._state_of(name) == BEHIND for name in self._exchanges):
                self._copied = await asyncio.to_thread(self._route.files.copied)
        except OSError as error:
            log.warning("positions of copies cannot be read, they are read later error=%s", error)
            return
        for name, runs in new.items():
            if name in self._exchanges:
                self._exchanges[name].copies.add(runs)
                self._waiting.add(name)
        if self._files.has_gap:
            for exchange in self._exchanges.values():
                exchange.copies.clear()
            self._waiting.update(self._exchanges)

    def _due(self) -> set[str]:
        """Return the topic-partitions to look at again although nothing was reported."""
        now = time.monotonic()
        refused = {name for name, at in self._retry_at.items() if at <= now}
        return refused | {name for name in self._exchanges if self._state_of(name) == BEHIND}

    def _state_of(self, name: str) -> str | None:
        standing = self._exchanges[name].standing
        return None if standing is None else standing.state

    def _start(self) -> None:
        """Start an exchange of each topic-partition that waits for one, unless its last one still runs.

        Raise what ended an earlier one unexpectedly.
        """
        for name in [name for name, task in self._running.items() if task.done()]:
            self._running.pop(name).result()
        for name in self._waiting & (self._exchanges.keys() - self._running.keys()):
            self._waiting.discard(name)
            self._retry_at.pop(name, None)
            self._running[name] = asyncio.create_task(self._run_one(name, self._exchanges[name]))

    async def _run_one(self, name: str, exchange: TopicExchange) -> None:
        async with self._slots:
            lowest = await exchange.run()
        if lowest is not None:
            async with self._rebuilds:
                await exchange.rebuild(lowest)
            self._waiting.add(name)
        if exchange.standing is not None and exchange.standing.state == HELD:
            self._waiting.discard(name)
            self._retry_at[name] = time.monotonic() + _HELD_S

    def standing_of(self, name: str) -> Standing | None:
        """Return the standing of the subscriptions of a topic-partition; None if none is on both clusters."""
        exchange = self._exchanges.get(name)
        if exchange is None or self._source is None or self._target is None:
            return None
        problem = self._source.problem(exchange.source.topic) or self._target.problem(exchange.target.topic)
        if problem is None:
            return exchange.standing
        return (exchange.standing or Standing())._replace(state=HELD, reason=problem)

    async def close(self) -> None:
        """Stop. The next start finds what is not carried yet."""
        tasks = [*self._running.values(), *([] if self._loop is None else [self._loop])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for site in (self._source, self._target):
            if site is not None:
                await site.close()
        if self._source_session is not None:
            await self._source_session.close()

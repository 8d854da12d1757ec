"""Session of one client: connections, lookups, ids and background tasks, shared by its producers and consumers."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.failover.site_lookup import SiteLookup
from interpulse.client.failover.sites import Site, SiteChange
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.client.lookup.http_lookup import HttpLookup
from interpulse.client.lookup.lookup import Lookup
from interpulse.client.outages import Outages
from interpulse.client.transport.backoff import Backoff
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.clusters import shown_address
from interpulse.model.errors import AlreadyClosed, NotConnected
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.telemetry import Telemetry

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class Waiting(Protocol):
    """Producer, consumer or reader that waits for a connection."""

    def start_over(self) -> None:
        """Begin waiting again, at the site to which the client has changed."""


class Session:
    """Connections, lookups, ids and background tasks of one client. Needs a running event loop.

    With a ``site`` it may change to another one (:meth:`change_site`). Connections, lookups, positions and
    acknowledgements belong to the *generation* in which they were made, which ends with the change.
    """

    def __init__(
        self,
        config: ClientConfig,
        outages: Outages | None = None,
        *,
        remembers_brokers: bool = False,
        site: Site | None = None,
    ) -> None:
        """Create a session, at ``site`` if the client has several.

        ``outages`` decides how long producers and readers that were open wait for the cluster. With
        ``remembers_brokers`` a reopened topic goes to the same broker without a lookup, unless that broker refuses it.
        """
        self.config = config
        self.outages = outages
        self._remembers_brokers = remembers_brokers
        self.telemetry = _telemetry(config)
        self.pool = ConnectionPool(config)
        self.site = site
        """Present site of a client with several; None for other clients."""
        self.cluster = None if site is None else str(site)
        """Service URL that message ids carry; None if the client knows one cluster only."""
        self.generation = 0
        """Number of changes to another site so far."""
        self.topic_in_use: TopicName | None = None
        """Topic for which a producer, consumer or reader was opened last."""
        self.site_lost = asyncio.Event()
        self.late_acknowledgements = 0
        """Number of acknowledgements of messages of an earlier site, which were not sent."""
        self._site_lookup = None if site is None else SiteLookup(_lookup(config, self.pool))
        self.lookup: Lookup = self._site_lookup or _lookup(config, self.pool)
        self._redirected: dict[str, Session] = {}
        """Sessions of the clusters to which brokers have redirected, by service URL."""
        self._waiting: dict[Waiting, float] = {}
        self._site_listeners: list[Callable[[SiteChange], object]] = []
        self._ids = itertools.count()
        self._remembered: dict[TopicName, BrokerAddress] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_closed = False

    def next_id(self) -> int:
        """Return an id for a producer or consumer that is unique within this client."""
        return next(self._ids)

    def backoff(self) -> Backoff:
        return Backoff(self.config.backoff_initial_ms, self.config.backoff_max_ms)

    async def connect(self, topic: TopicName, *, assigned_url: str | None = None) -> Connection:
        """Return a connection to the topic's broker: the assigned one, otherwise the one that lookup finds."""
        if self.is_closed:
            raise AlreadyClosed("the client is closed")
        if assigned_url:
            return await self.pool.get(BrokerAddress.parse(assigned_url))
        remembered = self._remembered.pop(topic, None)
        pool = self.pool  # of the site that is asked: an address of one site gets no credentials of another
        return await pool.get(remembered or await self.lookup.broker(topic))

    async def look_ahead(self, topics: Sequence[TopicName]) -> None:
        """Find the brokers of many topics. The next :meth:`connect` of each topic uses the result."""
        answers = await self.lookup.brokers(topics)
        self._remembered |= {topic: address for topic, address in answers.items() if isinstance(address, BrokerAddress)}

    def note_closed(self, topic: TopicName, broker: BrokerAddress) -> None:
        """Record that a producer or reader was closed, and that this broker served its topic until then."""
        if self._remembers_brokers:
            self._remembered[topic] = broker

    # ---- Sites

    def redirected(self, service_url: str) -> Session:
        """Return the session of a cluster to which a broker has redirected (TOPIC_MIGRATED).

        It presents the identity of the present site, and ends with it. Raise ValueError for an address that is not a
        service URL.
        """
        session = self._redirected.get(service_url)
        if session is None:
            session = Session(replace(self.config, service_url=service_url, tracing=False, metrics=False))
            session.cluster, session._ids = shown_address(service_url), self._ids
            self._redirected[service_url] = session
        return session

    def note_waiting(self, waiting: Waiting, *, ended: bool = False) -> None:
        """Record that a producer, consumer or reader waits for a connection, or no longer."""
        if ended:
            self._waiting.pop(waiting, None)
            return
        if not self._waiting:
            self.site_lost.set()
        self._waiting.setdefault(waiting, asyncio.get_running_loop().time())

    @property
    def silent_s(self) -> float:
        """Seconds for which a producer, consumer or reader has waited for a connection; 0 if none does."""
        return asyncio.get_running_loop().time() - min(self._waiting.values()) if self._waiting else 0.0

    def on_site_change(self, listener: Callable[[SiteChange], object]) -> Callable[[], None]:
        """Call ``listener`` after every change to another site. Return the function that ends this."""
        self._site_listeners.append(listener)
        return lambda: self._site_listeners.remove(listener) if listener in self._site_listeners else None

    def change_site(self, site: Site, reason: str, *, silent_s: float) -> None:
        """Leave the present site for another one, and begin a generation.

        All connections are broken. Producers, consumers and readers then drop what belongs to the former generation,
        and open again at the new site. Raise ValueError if the client cannot use it.
        """
        before, pool = self.site, self.pool
        assert before is not None, "the client has one site only"
        assert self._site_lookup is not None
        self.config = site.applied_to(self.config)
        self.site, self.cluster, self.generation = site, str(site), self.generation + 1
        self.pool = ConnectionPool(self.config)
        lookup = self._site_lookup.move(_lookup(self.config, self.pool))
        self._remembered.clear()
        waiting = list(self._waiting)
        left = NotConnected(f"the client has left {before} for {site}")
        self._leave_redirected(left)
        pool.leave(left)
        for each in waiting:
            each.start_over()
        self.spawn(_close_all(lookup, pool))
        _log.info(
            "client changed to another site generation=%d before=%s after=%s silent_s=%.1f reason=%s",
            *(self.generation, before, site, silent_s, reason),
        )
        if self.telemetry is not None:
            self.telemetry.count_site_change()
        self._report(SiteChange(self.generation, before, site, reason, silent_s))

    def has_redirected_to(self, cluster: str) -> bool:
        """Return True if a broker has redirected producers or consumers to this cluster since the last change."""
        return any(session.cluster == cluster for session in self._redirected.values())

    def _leave_redirected(self, reason: NotConnected) -> None:
        redirected, self._redirected = list(self._redirected.values()), {}
        for session in redirected:
            session.pool.leave(reason)
            self.spawn(_close_all(session.lookup, session.pool))

    def _report(self, change: SiteChange) -> None:
        for listener in list(self._site_listeners):
            try:
                listener(change)
            except Exception:  # noqa: BLE001  # the application's: the client works at the new site all the same
                _log.exception("listener of site changes failed after=%s", change.after)

    # ---- Tasks

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run a coroutine in the background. It is cancelled and awaited when the client closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("background task of the client failed task=%s", task.get_coro(), exc_info=task.exception())

    async def close(self) -> None:
        self.is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in list(self._redirected.values()):
            await session.close()
        await self.lookup.close()
        await self.pool.close()


def _lookup(config: ClientConfig, pool: ConnectionPool) -> Lookup:
    return (HttpLookup if config.url.is_http else BinaryLookup)(config, pool)


async def _close_all(lookup: Lookup, pool: ConnectionPool) -> None:
    await lookup.close()
    await pool.close()


def _telemetry(config: ClientConfig) -> Telemetry | None:
    """Return the telemetry; None, without importing OpenTelemetry, if spans and metrics are off."""
    if config.tracing is False and config.metrics is False:
        return None
    from interpulse.client.telemetry import Telemetry

    return Telemetry(config.tracing, config.metrics)

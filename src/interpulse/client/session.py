"""Session of one client: connections, lookups, ids and background tasks, shared by its producers and consumers."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.client.lookup.http_lookup import HttpLookup
from interpulse.client.lookup.lookup import Lookup
from interpulse.client.outages import Outages
from interpulse.client.transport.backoff import Backoff
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import AlreadyClosed
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.telemetry import Telemetry

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class Session:
    """Connections, lookups, ids and background tasks of one client. Needs a running event loop."""

    def __init__(
        self, config: ClientConfig, outages: Outages | None = None, *, remembers_brokers: bool = False
    ) -> None:
        """Create a session.

        ``outages`` decides how long producers and readers that were open wait for the cluster. With
        ``remembers_brokers`` a reopened topic goes to the same broker without a lookup, unless that broker refuses it.
        """
        self.config = config
        self.outages = outages
        self._remembers_brokers = remembers_brokers
        self.telemetry = _telemetry(config)
        self.pool = ConnectionPool(config)
        self.lookup: Lookup = (HttpLookup if config.url.is_http else BinaryLookup)(config, self.pool)
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
        return await self.pool.get(remembered or await self.lookup.broker(topic))

    async def look_ahead(self, topics: Sequence[TopicName]) -> None:
        """Find the brokers of many topics. The next :meth:`connect` of each topic uses the result."""
        answers = await self.lookup.brokers(topics)
        self._remembered |= {topic: address for topic, address in answers.items() if isinstance(address, BrokerAddress)}

    def note_closed(self, topic: TopicName, broker: BrokerAddress) -> None:
        """Record that a producer or reader was closed, and that this broker served its topic until then."""
        if self._remembers_brokers:
            self._remembered[topic] = broker

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
        await self.lookup.close()
        await self.pool.close()


def _telemetry(config: ClientConfig) -> Telemetry | None:
    """Return the telemetry; None, without importing OpenTelemetry, if spans and metrics are off."""
    if config.tracing is False and config.metrics is False:
        return None
    from interpulse.client.telemetry import Telemetry

    return Telemetry(config.tracing, config.metrics)

"""What all producers, consumers and readers of one client share."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.lookup import BinaryLookup, HttpLookup, Lookup
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    AlreadyClosed,
    CertificateError,
    ConsumerBusy,
    ProducerBusy,
    PulsarError,
    QuotaExceededError,
    QuotaExceededException,
    UnknownError,
)
from interpulse.model.names import TopicName

__all__ = ["Session", "tolerated_while_returning"]

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_TOLERATED = (
    ProducerBusy,
    ConsumerBusy,
    CertificateError,
    QuotaExceededError,
    QuotaExceededException,
    UnknownError,
)


class Session:
    """Connections, lookups, ids and background tasks of one client. Needs a running event loop."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.pool = ConnectionPool(config)
        self.lookup: Lookup = (HttpLookup if config.url.is_http else BinaryLookup)(config, self.pool)
        self._ids = itertools.count()
        self._known: dict[TopicName, BrokerAddress] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    def next_id(self) -> int:
        """A number for a producer or consumer that no other of this client has."""
        return next(self._ids)

    def backoff(self) -> Backoff:
        return Backoff(self.config.backoff_initial_ms, self.config.backoff_max_ms)

    async def connect(self, topic: TopicName, *, assigned_url: str | None = None) -> Connection:
        """A connection to the broker that serves the topic: the one it was assigned to, else found by lookup."""
        if self._closed:
            raise AlreadyClosed("the client is closed")
        if assigned_url:
            return await self.pool.get(BrokerAddress.parse(assigned_url))
        known = self._known.pop(topic, None)
        return await self.pool.get(known or await self.lookup.broker(topic))

    async def look_ahead(self, topics: Sequence[TopicName]) -> None:
        """Find the brokers of many topics in one go; the next :meth:`connect` of each uses what was found."""
        answers = await self.lookup.brokers(topics)
        self._known |= {topic: found for topic, found in answers.items() if isinstance(found, BrokerAddress)}

    def spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run something in the background; it is cancelled and awaited when the client closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("background task of the client failed task=%s", task.get_coro(), exc_info=task.exception())

    async def return_to_broker(
        self,
        attach: Callable[[str | None], Awaitable[None]],
        *,
        what: str,
        backoff: Backoff,
        held_s: float,
        assigned_url: str | None = None,
        timeout_ms: int | None = None,
        patient: bool = False,
    ) -> None:
        """Attach what a lost connection (or its broker) detached, again and again until it holds.

        ``held_s`` is how long it had been attached, ``assigned_url`` where the broker sends it first, ``timeout_ms``
        how long to try (None = for ever). Raises what no further attempt can change.
        """
        urls = iter([assigned_url])

        async def attempt() -> None:
            await attach(next(urls, None))

        def tell(failure: PulsarError, pause: float) -> None:
            _log.info("cannot come back to the broker yet what=%s pause_s=%.1f error=%s", what, pause, failure)

        await asyncio.sleep(backoff.pause_after(held_s))
        await retry(
            attempt,
            backoff=backoff,
            timeout_ms=timeout_ms,
            attempt_timeout_ms=self.config.operation_timeout_ms,
            retriable=tolerated_while_returning,
            patient=patient,
            on_pause=tell,
        )

    async def close(self) -> None:
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.lookup.close()
        await self.pool.close()


def tolerated_while_returning(error: PulsarError) -> bool:
    """Whether a producer or consumer that was open before should keep trying to come back.

    The broker may still hold the name for the connection that was lost, a certificate may just be being replaced, and
    quotas and full disks hold until somebody makes room.
    """
    return error.retriable or isinstance(error, _TOLERATED)
